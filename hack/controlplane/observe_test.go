package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// says creates a program that prints a version.
func says(t *testing.T, folder, name, printed string) string {
	t.Helper()
	return script(t, filepath.Join(folder, name), "[ \"$1\" = --version ] || exit 1\necho '"+printed+"'\n")
}

func TestAProgramOnPathIsLinkedIfItIsOfTheVersion(t *testing.T) {
	const hangs = `read never <"${0%/*}/fifo"`
	for name, test := range map[string]struct {
		script string
		short  bool
		linked bool
	}{
		"the version":                    {script: "echo 'Kubernetes v1.99.1'", linked: true},
		"another version":                {script: "echo 'Kubernetes v1.99.2'"},
		"a distribution's version":       {script: "echo 'Kubernetes v1.99.1+k3s1'"},
		"another text":                   {script: "echo 'v1.99.1'"},
		"the version, and that it fails": {script: "echo 'Kubernetes v1.99.1'; exit 1"},
		"nothing, ever":                  {script: hangs, short: true},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := newGetter(t)
			path := os.Getenv("PATH")
			makePipe(t, filepath.Join(path, "fifo"))
			program := script(t, filepath.Join(path, "kube-apiserver"), test.script+"\n")
			if test.short {
				g.timeouts.version = 50 * time.Millisecond
			}
			name := filepath.Join(run(t, g, "kube-apiserver"), "kube-apiserver")
			target, _ := os.Readlink(name)
			if linked := target == program; linked != test.linked {
				t.Errorf("it links to %q, want linked %t", target, test.linked)
			}
		})
	}
}

func TestALinkIsCheckedByEveryRun(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, program string)
		built  bool
	}{
		"nothing changes":         {change: func(*testing.T, string) {}},
		"the program is upgraded": {built: true, change: func(t *testing.T, program string) { says(t, filepath.Dir(program), "etcd", "etcd Version: 3.99.3") }},
		"the program is removed": {built: true, change: func(t *testing.T, program string) {
			if err := os.Remove(program); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g, shown := newGetter(t)
			program := says(t, os.Getenv("PATH"), "etcd", "etcd Version: 3.99.2\nGit SHA: x")
			folder := run(t, g, "etcd")
			if !strings.Contains(shown.String(), "linked from PATH: etcd; ") {
				t.Errorf("it does not say where etcd comes from:\n%s", shown)
			}
			test.change(t, program)
			run(t, g, "etcd")
			content, err := os.ReadFile(filepath.Join(folder, "etcd"))
			if err != nil || (string(content) == built) != test.built {
				t.Errorf("%v, and it is:\n%s", err, content)
			}
		})
	}
}

func TestProgramsOfKubebuilderComeFirst(t *testing.T) {
	g, shown := newGetter(t)
	g.given = t.TempDir()
	says(t, os.Getenv("PATH"), "etcd", "etcd Version: 3.99.2")
	write(t, filepath.Join(g.given, "etcd"), "given", 0o755)
	write(t, filepath.Join(g.given, "kubectl"), "given, but not executable", 0o644)
	folder := run(t, g, "etcd", "kubectl")
	if diff := cmp.Diff(map[string]string{"etcd": "given", "kubectl": built}, contents(t, folder)); diff != "" {
		t.Errorf("the folder differs (-want +got):\n%s", diff)
	}
	if !strings.Contains(shown.String(), "linked from KUBEBUILDER_ASSETS: etcd; built: kubectl (") {
		t.Errorf("no summary in:\n%s", shown)
	}
	said := len(shown.String())
	run(t, g, "etcd", "kubectl")
	if more := shown.String()[said:]; more != "" {
		t.Errorf("the second run says:\n%s", more)
	}
	if err := os.Remove(filepath.Join(g.given, "etcd")); err != nil {
		t.Fatal(err)
	}
	run(t, g, "etcd")
	target, _ := os.Readlink(filepath.Join(folder, "etcd"))
	if want := filepath.Join(os.Getenv("PATH"), "etcd"); target != want {
		t.Errorf("etcd links to %q, want %q", target, want)
	}
}
