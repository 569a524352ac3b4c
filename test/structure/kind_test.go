package structure

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// hack/kind.sh checks before it creates clusters whether their nodes get inotify instances: those that get none end at their start.
func TestKindChecksInotifyInstances(t *testing.T) {
	for name, tc := range map[string]struct {
		limit, used int
		want        string
	}{
		"enough are free":    {128, 28, ""},
		"too few are free":   {128, 29, "fs.inotify.max_user_instances is 128, and 29 instances are in use; the clusters need about 100: sysctl -w fs.inotify.max_user_instances=512\n"},
		"most are used":      {512, 500, "fs.inotify.max_user_instances is 512, and 500 instances are in use; the clusters need about 100: sysctl -w fs.inotify.max_user_instances=1024\n"},
		"there is no limit":  {0, 0, ""},
		"the limit is lower": {64, 0, "fs.inotify.max_user_instances is 64, and 0 instances are in use; the clusters need about 100: sysctl -w fs.inotify.max_user_instances=512\n"},
	} {
		t.Run(name, func(t *testing.T) {
			proc := t.TempDir()
			write := func(file string, limit int) {
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, fmt.Appendln(nil, limit), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tc.limit > 0 {
				write(filepath.Join(proc, "sys/fs/inotify/max_user_instances"), tc.limit)
			}
			write(filepath.Join(proc, "7/fd/0"), 0) // another file of a process
			for i := range tc.used {
				if err := os.Symlink("anon_inode:inotify", filepath.Join(proc, "7/fd", fmt.Sprint(i+1))); err != nil {
					t.Fatal(err)
				}
			}
			command := exec.Command("bash", "-euc", `. hack/kind/limits.sh; check_inotify 100 "$1"`, "-", proc)
			command.Dir = root
			got, err := command.Output()
			if string(got) != tc.want || (err != nil) != (tc.want != "") {
				t.Errorf("%v, got %q, want %q", err, got, tc.want)
			}
		})
	}
}

// The README's commands for kind are those of docs/kind.md.
func TestReadmeInstallsOnKindAsThePageDoes(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "kind.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(readme), "\nOn [kind](")
	_, commands, _ := strings.Cut(after, "```sh\n")
	commands, _, found := strings.Cut(commands, "\n```")
	if !found {
		t.Fatal("README.md has no commands for kind")
	}
	for _, command := range strings.Split(commands, "\n") {
		command = strings.ReplaceAll(command, "addon check --context kind-hub", "addon check") // the page has switched to that context
		if !strings.Contains(string(page), "\n"+command+"\n") {
			t.Errorf("docs/kind.md does not run %s", command)
		}
	}
}

// hack/kind.sh --release installs the images, manifests and plugin of a release, and builds nothing.
func TestKindInstallsRelease(t *testing.T) {
	run := func(release string) (string, error) {
		command := exec.Command("bash", "hack/kind.sh", "up", "--release", release, "--dry-run")
		command.Dir = root
		command.Env = append(os.Environ(), "KIND_IMAGE=node", "KIND_EXPERIMENTAL_PROVIDER=docker")
		output, err := command.CombinedOutput()
		return string(output), err
	}
	if got, err := run(""); err == nil || !strings.Contains(got, "--release FOLDER") {
		t.Errorf("without a folder: %v, got %q", err, got)
	}
	release := t.TempDir()
	want := release + "/install-hub.yaml does not name the image of addon-manager; make release writes it\n"
	if got, err := run(release); err == nil || !strings.HasSuffix(got, want) {
		t.Errorf("%v, got %q, want %q", err, got, want)
	}
	manifest := "spec:\n  containers:\n  - name: addon-manager\n    image: registry.corp/tandem/addon-manager:v1.2.3\n"
	if err := os.WriteFile(filepath.Join(release, "install-hub.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := run(release)
	if err != nil {
		t.Fatal(err, got)
	}
	for _, command := range []string{
		"tar -xzf " + release + "/kubectl-addon_v1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz -C bin/kind kubectl-addon",
		"kind load image-archive " + release + "/addon-manager_v1.2.3_oci.tar --name tandem-hub",
		"kind load image-archive " + release + "/addon-agent_v1.2.3_oci.tar --name tandem-cluster2",
		"kubectl --kubeconfig bin/kind/hub.kubeconfig apply --server-side -f " + release + "/install-hub.yaml",
		"bin/kind/kubectl-addon join cluster1 --kubeconfig bin/kind/hub.kubeconfig --cluster-kubeconfig bin/kind/cluster1.kubeconfig --hub-server https://tandem-hub-control-plane:6443",
		"kubectl --kubeconfig bin/kind/cluster1.kubeconfig apply --server-side -f " + release + "/install-agent.yaml",
	} {
		if !strings.Contains(got, "\n+ "+command+"\n") {
			t.Errorf("it does not run %q:\n%s", command, got)
		}
	}
	if strings.Contains(got, "make images") {
		t.Errorf("it builds images:\n%s", got)
	}
}
