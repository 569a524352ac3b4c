package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func makePipe(t *testing.T, name string) {
	t.Helper()
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
}

// tiny returns a getter for two programs in a small tool module, which the real go command builds.
func tiny(t *testing.T) (*getter, *screen) {
	t.Helper()
	compiler, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	g, shown := newGetter(t)
	t.Setenv("PATH", path)
	g.compiler = compiler
	unreleased := func(string, platform) (release, bool) { return release{}, false }
	g.programs = []program{
		{name: "tandem-test-one", main: "example.com/tiny/one", pin: "example.com/pin", answer: etcdAnswer, released: unreleased},
		{name: "tandem-test-two", main: "example.com/tiny/server/v2", pin: "example.com/pin", answer: etcdAnswer, released: unreleased},
	}
	source := g.source
	// There is no go.sum and no such module: the build does not need it.
	write(t, filepath.Join(source, "go.mod"), "module example.com/tiny\n\ngo 1.26\n\n// example.com/pin v0\n", 0o644)
	write(t, filepath.Join(source, "shared", "shared.go"), "package shared\n\nvar Text = \"shared\"\n", 0o644)
	for _, folder := range []string{"one", "server/v2"} {
		write(t, filepath.Join(source, folder, "main.go"),
			"package main\n\nimport \"example.com/tiny/shared\"\n\nvar version string\n\nfunc main() { println(shared.Text, version) }\n", 0o644)
	}
	return g, shown
}

func (g *getter) tinyItems() []*item {
	var items []*item
	for _, p := range g.programs {
		items = append(items, &item{program: p, version: "v1.2.3", from: fromModules})
	}
	return items
}

func TestProgramsOfOneModuleAreBuiltTogether(t *testing.T) {
	g, shown := tiny(t)
	folder, work := t.TempDir(), t.TempDir()
	if err := g.build(t.Context(), folder, work, g.tinyItems(), nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tandem-test-one", "tandem-test-two"} {
		if printed, err := exec.Command(filepath.Join(folder, name)).CombinedOutput(); err != nil || string(printed) != "shared \n" {
			t.Errorf("%s prints %q, %v", name, printed, err)
		}
	}
	for _, text := range []string{
		"building tandem-test-one, tandem-test-two v1.2.3 from Go modules",
		" packages compiled (0s); not linked yet: tandem-test-one, tandem-test-two",
		"built tandem-test-one, tandem-test-two in ",
	} {
		if !strings.Contains(shown.String(), text) {
			t.Errorf("it does not say %q:\n%s", text, shown)
		}
	}
}

func TestCompiledPackagesAreCounted(t *testing.T) {
	g, shown := newGetter(t)
	run(t, g, "kubectl", "kube-apiserver")
	for _, text := range []string{
		"0 of at most 2 packages compiled (0s); not linked yet: kubectl, kube-apiserver\n",
		": 2 packages compiled, 0 taken from Go's build cache\n",
	} {
		if !strings.Contains(shown.String(), text) {
			t.Errorf("it does not say %q:\n%s", text, shown)
		}
	}
}

func TestLinkerFlagsReachTheProgram(t *testing.T) {
	g, _ := tiny(t)
	work := t.TempDir()
	b := &builder{getter: g, to: filepath.Join(work, "to"), temporary: filepath.Join(work, "go"),
		items: g.tinyItems(), flags: "-s -w -X main.version=v1.2.3 -X example.com/other.Version=v1"}
	if err := b.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if printed, err := exec.Command(filepath.Join(b.to, "server")).CombinedOutput(); err != nil || string(printed) != "shared v1.2.3\n" {
		t.Errorf("it prints %q, %v", printed, err)
	}
	if left := b.unlinked(); len(left) > 0 {
		t.Errorf("%q are not built", left)
	}
}

func TestAFailedBuildShowsWhatTheCompilerSays(t *testing.T) {
	g, _ := tiny(t)
	write(t, filepath.Join(g.source, "one", "more.go"), "package main\n\nvar wrong int = \"text\"\n", 0o644)
	folder := t.TempDir()
	err := g.build(t.Context(), folder, t.TempDir(), g.tinyItems(), nil)
	for _, text := range []string{"building tandem-test-one, tandem-test-two: ", "exit status 1", "more.go:3:17: cannot use \"text\""} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
	if left := contents(t, folder); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

func TestAModuleThatCannotBeReadIsAnError(t *testing.T) {
	g, _ := tiny(t)
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOCACHE", os.Getenv("GOCACHE"))
	write(t, filepath.Join(g.source, "go.mod"), "module example.com/tiny\n\ngo 1.26\n\nrequire example.com/missing v1.0.0\n", 0o644)
	write(t, filepath.Join(g.source, "one", "more.go"), "package main\n\nimport _ \"example.com/missing\"\n", 0o644)
	err := g.build(t.Context(), t.TempDir(), t.TempDir(), g.tinyItems(), nil)
	for _, text := range []string{"reading the Go modules of tandem-test-one, tandem-test-two", "example.com/missing"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
}

// The compiler and its child process hold a pipe open until they end.
func TestAnInterruptedBuildLeavesNeitherProcessesNorFiles(t *testing.T) {
	g, _ := newGetter(t)
	folder := filepath.Dir(g.compiler)
	for _, name := range []string{"open", "never"} {
		makePipe(t, filepath.Join(folder, name))
	}
	script(t, g.compiler, `
here=${0%/*}
[ "$1" = list ] && { echo example.com/main; exit; }
while [ "$1" != -o ]; do shift; done
echo half >"$2etcd"
exec 9>"$here/open"
(read x <"$here/never") &
wait
`)
	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := g.get(ctx, []string{"etcd"})
		done <- err
	}()
	pipe, err := os.Open(filepath.Join(folder, "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	interrupt()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("the error is %v", err)
	}
	if _, err := io.ReadAll(pipe); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{}, contents(t, g.cache)); diff != "" {
		t.Errorf("the cache differs (-want +got):\n%s", diff)
	}
}
