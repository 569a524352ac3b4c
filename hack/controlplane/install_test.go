package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	path     = "/release/v1.99.1/bin/linux/amd64/kubectl"
	released = "#!/bin/sh\necho released\n"
)

// screen is what a run logs.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
	wait chan struct{} // is closed when a run waits for another one
}

func (s *screen) log(format string, arguments ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(&s.text, format+"\n", arguments...)
	if strings.HasPrefix(format, "another run") {
		close(s.wait)
	}
}

func (s *screen) mustHave(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(s.text.String(), text) {
			t.Errorf("it does not say %q:\n%s", text, &s.text)
		}
	}
}

// newInstaller returns an installer whose tool module has small programs that print the versions which the linker sets.
func newInstaller(t *testing.T) (*installer, *screen) {
	t.Helper()
	source, goMod := t.TempDir(), "module example.com/programs\n\ngo 1.26\n"
	for module, version := range map[string]string{
		kubernetes: "v1.99.1", kwok: "v0.99.3", etcd: "v3.99.2", "k8s.io/component-base": "v0.99.1",
	} {
		folder := filepath.Join("modules", filepath.Base(module))
		write(t, filepath.Join(source, folder, "go.mod"), "module "+module+"\n\ngo 1.26\n")
		goMod += fmt.Sprintf("\nrequire %s %s\n\nreplace %s => ./%s\n", module, version, module, folder)
	}
	write(t, filepath.Join(source, "go.mod"), goMod)
	write(t, filepath.Join(source, "modules/v3/main.go"), "package main\n\nfunc main() { println(`etcd`) }\n")
	write(t, filepath.Join(source, "modules/component-base/version/base.go"),
		"package version\n\nvar gitVersion, gitMajor, gitMinor string\n\nfunc Get() string { return gitVersion + ` ` + gitMajor + ` ` + gitMinor }\n")
	write(t, filepath.Join(source, "modules/kwok/pkg/consts/consts.go"), "package consts\n\nvar Version, PreRelease string\n")
	write(t, filepath.Join(source, "modules/kwok/cmd/kwok/main.go"),
		"package main\n\nimport \"sigs.k8s.io/kwok/pkg/consts\"\n\nfunc main() { println(consts.Version, consts.PreRelease) }\n")
	for _, p := range controlPlane()[2:] {
		write(t, filepath.Join(source, "modules/kubernetes/cmd", p.name, "main.go"),
			"package main\n\nimport \"k8s.io/component-base/version\"\n\nfunc main() { println(version.Get()) }\n")
	}
	shown := &screen{wait: make(chan struct{})}
	return &installer{
		programs: controlPlane(), source: source, cache: t.TempDir(), platform: "linux/amd64", mirror: "off",
		stall: time.Minute, interval: time.Millisecond, log: shown.log,
	}, shown
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// serve starts a server that has kubectl.
func serve(t *testing.T, i *installer, handlers map[string]http.HandlerFunc) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		switch handler := handlers[request.URL.Path]; {
		case handler != nil:
			handler(answer, request)
		case request.URL.Path == path:
			fmt.Fprint(answer, released)
		case request.URL.Path == path+".sha256":
			fmt.Fprintf(answer, "%x\n", sha256.Sum256([]byte(released)))
		default:
			http.NotFound(answer, request)
		}
	}))
	t.Cleanup(server.Close)
	i.mirror = server.URL
}

// install installs programs and returns what each of them prints.
func install(t *testing.T, i *installer, names ...string) map[string]string {
	t.Helper()
	folder, err := i.install(t.Context(), names)
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	printed := map[string]string{}
	for _, file := range files {
		if file.Name() == ".lock" {
			continue
		}
		text, err := exec.Command(filepath.Join(folder, file.Name())).CombinedOutput()
		if err != nil {
			t.Errorf("running %s: %v", file.Name(), err)
		}
		printed[file.Name()] = strings.TrimSpace(string(text))
	}
	return printed
}

func mustPrint(t *testing.T, got, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the programs print (-want +got):\n%s", diff)
	}
}

func TestProgramsAreBuiltWithTheirVersions(t *testing.T) {
	i, shown := newInstaller(t)
	want := map[string]string{"etcd": "etcd", "kwok": "v0.99.3 GA"}
	for _, p := range controlPlane()[2:] {
		want[p.name] = "v1.99.1 1 99"
	}
	mustPrint(t, install(t, i), want)
	shown.mustHave(t, "building etcd, kwok, kubectl, kube-scheduler, kube-apiserver, kube-controller-manager from Go modules",
		" modules downloaded, ", " packages compiled (0s)", "complete after")
}

func TestAReleasedProgramIsDownloadedAndTheOthersAreBuilt(t *testing.T) {
	i, shown := newInstaller(t)
	serve(t, i, nil)
	mustPrint(t, install(t, i, "kubectl", "etcd"), map[string]string{"kubectl": "released", "etcd": "etcd"})
	shown.mustHave(t, "downloading kubectl v1.99.1 for linux/amd64", "building etcd from")
}

func TestAnExistingProgramStays(t *testing.T) {
	i, _ := newInstaller(t)
	serve(t, i, nil)
	install(t, i, "kubectl")
	i.mirror = "off"
	mustPrint(t, install(t, i, "kubectl"), map[string]string{"kubectl": "released"})
}

func TestAProgramThatCannotBeDownloadedIsBuilt(t *testing.T) {
	for name, test := range map[string]struct {
		handlers map[string]http.HandlerFunc
		stall    time.Duration
		says     string
	}{
		"a wrong checksum": {
			handlers: map[string]http.HandlerFunc{path: func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, released+"exit\n") }},
			says:     "its SHA-256 is ",
		},
		"a missing checksum": {handlers: map[string]http.HandlerFunc{path + ".sha256": http.NotFound}, says: "404 Not Found"},
		"a broken download": {
			handlers: map[string]http.HandlerFunc{path: func(answer http.ResponseWriter, _ *http.Request) {
				answer.Header().Set("Content-Length", "1000")
				fmt.Fprint(answer, released)
			}},
			says: "unexpected EOF",
		},
		"a server that stops sending": {
			handlers: map[string]http.HandlerFunc{path: func(answer http.ResponseWriter, request *http.Request) {
				fmt.Fprint(answer, released)
				answer.(http.Flusher).Flush()
				<-request.Context().Done()
			}},
			stall: 100 * time.Millisecond, says: "no data received for 100ms",
		},
	} {
		t.Run(name, func(t *testing.T) {
			i, shown := newInstaller(t)
			serve(t, i, test.handlers)
			if test.stall > 0 {
				i.stall = test.stall
			}
			mustPrint(t, install(t, i, "kubectl"), map[string]string{"kubectl": "v1.99.1 1 99"})
			shown.mustHave(t, "kubectl is not downloaded: ", test.says)
		})
	}
}

// bundleOf returns an archive with files of this content.
func bundleOf(t *testing.T, content string, names ...string) []byte {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	files := tar.NewWriter(compressed)
	for _, name := range names {
		if err := files.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(files, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(files.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func TestProgramsComeFromTheArchiveOfARelease(t *testing.T) {
	whole := bundleOf(t, released, append(namesOf(controlPlane()), "../outside", "other")...)
	for what, test := range map[string]struct {
		archive []byte
		sum     string
		says    string
		builds  bool
	}{
		"all of them":              {whole, fmt.Sprintf("%x", sha256.Sum256(whole)), "complete after", false},
		"with another checksum":    {whole, "0", "the archive is not used: its SHA-256 is ", true},
		"not from a broken one":    {whole[:len(whole)/2], fmt.Sprintf("%x", sha256.Sum256(whole[:len(whole)/2])), "the archive is not used: unpacking it: ", true},
		"not from a text":          {[]byte("text"), fmt.Sprintf("%x", sha256.Sum256([]byte("text"))), "the archive is not used: unpacking it: ", true},
		"not if there is none":     {nil, "", "the archive is not used: 404 Not Found", true},
		"and the others are built": {bundleOf(t, released, "kubectl"), fmt.Sprintf("%x", sha256.Sum256(bundleOf(t, released, "kubectl"))), "complete after", true},
	} {
		t.Run(what, func(t *testing.T) {
			i, shown := newInstaller(t)
			server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
				name := strings.TrimSuffix(request.URL.Path, ".sha256")
				switch {
				case test.archive == nil || !strings.HasPrefix(name, "/v0.1.0/controlplane-v1.99.1-") || !strings.HasSuffix(name, "_linux_amd64.tar.gz"):
					http.NotFound(answer, request)
				case name != request.URL.Path:
					fmt.Fprintln(answer, test.sum)
				default:
					if _, err := answer.Write(test.archive); err != nil {
						t.Error(err)
					}
				}
			}))
			t.Cleanup(server.Close)
			i.bundle = server.URL + "/v0.1.0"
			folder, err := i.install(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			shown.mustHave(t, test.says)
			if built := strings.Contains(shown.text.String(), "building"); built != test.builds {
				t.Errorf("builds: %v, want %v:\n%s", built, test.builds, &shown.text)
			}
			files, err := os.ReadDir(folder)
			if err != nil || len(files) != len(controlPlane())+1 { // and the lock
				t.Errorf("the folder has %v, %v", files, err)
			}
		})
	}
}

func TestProgramsAreBuiltWithoutANetwork(t *testing.T) {
	i, shown := newInstaller(t)
	i.mirror = "http://127.0.0.1:1"
	mustPrint(t, install(t, i, "kubectl"), map[string]string{"kubectl": "v1.99.1 1 99"})
	shown.mustHave(t, "connection refused")
}

func TestARedirectKeepsEncryption(t *testing.T) {
	request := func(at string) *http.Request {
		parsed, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Request{URL: parsed}
	}
	if err := checkRedirect(request("http://b/"), []*http.Request{request("https://a/")}); err == nil {
		t.Error("a redirect from https to http is followed")
	}
	if err := checkRedirect(request("https://b/"), []*http.Request{request("https://a/")}); err != nil {
		t.Error(err)
	}
}

func TestTwoRunsDownloadOnce(t *testing.T) {
	i, shown := newInstaller(t)
	var downloads int
	serve(t, i, map[string]http.HandlerFunc{path: func(answer http.ResponseWriter, _ *http.Request) {
		downloads++
		<-shown.wait
		fmt.Fprint(answer, released)
	}})
	var runs sync.WaitGroup
	for range 2 {
		runs.Go(func() {
			if _, err := i.install(t.Context(), []string{"kubectl"}); err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	if downloads != 1 {
		t.Errorf("%d downloads, want 1", downloads)
	}
	mustPrint(t, install(t, i, "kubectl"), map[string]string{"kubectl": "released"})
}

func TestAFailedBuildShowsWhatTheCompilerSays(t *testing.T) {
	i, _ := newInstaller(t)
	write(t, filepath.Join(i.source, "modules/kubernetes/cmd/kubectl/more.go"), "package main\n\nvar wrong int = \"text\"\n")
	_, err := i.install(t.Context(), []string{"kubectl"})
	for _, text := range []string{"building kubectl: go build: exit status 1", "more.go:3:17: cannot use \"text\""} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
}

// The compiler and its child process hold a pipe open until they end.
func TestAnInterruptedBuildLeavesNeitherProcessesNorFiles(t *testing.T) {
	i, _ := newInstaller(t)
	tools := t.TempDir()
	write(t, filepath.Join(tools, "go"), `#!/bin/sh
echo half >"$7kubectl"
exec 9>"${0%/*}/open"
(read x <"${0%/*}/never") &
wait
`)
	for _, name := range []string{"open", "never"} {
		if err := syscall.Mkfifo(filepath.Join(tools, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", tools+string(filepath.ListSeparator)+os.Getenv("PATH"))
	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := i.install(ctx, []string{"kubectl"})
		done <- err
	}()
	pipe, err := os.Open(filepath.Join(tools, "open"))
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
	left, err := filepath.Glob(filepath.Join(i.cache, "*", "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != ".lock" {
		t.Errorf("it leaves %q, %v", left, err)
	}
}

func TestFilesOfAKilledRunAreRemoved(t *testing.T) {
	i, _ := newInstaller(t)
	serve(t, i, nil)
	folder, err := i.openFolder(filepath.Join(i.source, "go.mod"), "v1.99.1")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, ".work", "kubectl"), "half")
	mustPrint(t, install(t, i, "kubectl"), map[string]string{"kubectl": "released"})
}

func TestAnotherVersionHasAnotherFolder(t *testing.T) {
	i, _ := newInstaller(t)
	goMod := filepath.Join(i.source, "go.mod")
	before, err := i.openFolder(goMod, "v1.99.1")
	if err != nil {
		t.Fatal(err)
	}
	write(t, goMod, "module example.com/programs\n")
	if after, err := i.openFolder(goMod, "v1.99.1"); err != nil || after == before {
		t.Errorf("both folders are %s, %v", after, err)
	}
}

func TestAnUnknownProgramIsAnError(t *testing.T) {
	i, _ := newInstaller(t)
	if _, err := i.install(t.Context(), []string{"kubelet"}); err == nil || !strings.Contains(err.Error(), `unknown program "kubelet"`) {
		t.Errorf("the error is %v", err)
	}
}

func TestTheToolModulesHaveAllVersions(t *testing.T) {
	if _, err := versionsOf(filepath.Join("programs", "go.mod"), controlPlane()); err != nil {
		t.Error(err)
	}
	folders, err := os.ReadDir("versions")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no versions: %v", err)
	}
	for _, folder := range folders {
		versions, err := versionsOf(filepath.Join("versions", folder.Name(), "go.mod"), slices.DeleteFunc(controlPlane(), isShared))
		if err != nil || !strings.HasPrefix(versions[kubernetes], "v"+folder.Name()+".") {
			t.Errorf("versions/%s pins %v: %v", folder.Name(), versions, err)
		}
	}
}

func TestAnotherVersionOfKubernetes(t *testing.T) {
	i, _ := newInstaller(t)
	modules := t.TempDir()
	pinned := filepath.Join(modules, "1.98")
	if err := os.CopyFS(pinned, os.DirFS(i.source)); err != nil {
		t.Fatal(err)
	}
	goMod, err := os.ReadFile(filepath.Join(pinned, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(pinned, "go.mod"), strings.ReplaceAll(string(goMod), "v1.99.1", "v1.98.7"))

	folder, err := i.installVersion(t.Context(), modules, "1.98", []string{"etcd", "kubectl"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := i.installVersion(t.Context(), modules, "1.98", []string{"etcd", "kubectl"})
	if err != nil || again != folder {
		t.Errorf("a second run installs in %s, after %s: %v", again, folder, err)
	}
	for name, want := range map[string]string{"etcd": "etcd\n", "kubectl": "v1.98.7 1 98\n"} {
		printed, err := exec.Command(filepath.Join(folder, name)).CombinedOutput()
		if err != nil || string(printed) != want {
			t.Errorf("%s prints %q instead of %q: %v", name, printed, want, err)
		}
	}
	if all, err := i.installVersion(t.Context(), modules, "1.98", nil); err != nil || all != folder {
		t.Errorf("all programs are in %s: %v", all, err)
	}
	for _, p := range controlPlane() {
		if _, err := os.Stat(filepath.Join(folder, p.name)); err != nil {
			t.Error(err)
		}
	}
	if current, err := i.install(t.Context(), []string{"kubectl"}); err != nil || current == folder {
		t.Errorf("the version in programs/ has the same folder %s: %v", current, err)
	}
	if _, err := i.installVersion(t.Context(), modules, "1.97", nil); err == nil || err.Error() != `TANDEM_KUBERNETES: "1.97" is none of 1.98` {
		t.Errorf("an unknown version: %v", err)
	}
}
