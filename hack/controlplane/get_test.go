package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The versions in the test tool module, and the platform of its released programs.
const (
	kubernetesVersion = "v1.99.1"
	etcdVersion       = "v3.99.2"
	kwokVersion       = "v0.99.3"
)

var linux = platform{"linux", "amd64"}

// The paths of these versions' files on a mirror.
const (
	kubectlPath   = "/dl.k8s.io/release/v1.99.1/bin/linux/amd64/kubectl"
	apiserverPath = "/dl.k8s.io/release/v1.99.1/bin/linux/amd64/kube-apiserver"
	etcdFolder    = "/github.com/etcd-io/etcd/releases/download/v3.99.2"
	etcdPath      = etcdFolder + "/etcd-v3.99.2-linux-amd64.tar.gz"
	kwokPath      = "/github.com/kubernetes-sigs/kwok/releases/download/v0.99.3/kwok-linux-amd64"
	kwokDigests   = "/api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v0.99.3"
)

// The contents of the test programs, by origin.
const (
	released = "#!/bin/sh\n# released\n"
	built    = "built\n"
)

// newGetter returns a getter with the test tool module, an empty PATH and a fake compiler.
func newGetter(t *testing.T) (*getter, *screen) {
	t.Helper()
	source, shown := t.TempDir(), &screen{}
	writeGoMod(t, source, etcdVersion)
	t.Setenv("PATH", t.TempDir())
	return &getter{
		programs: controlPlane(),
		source:   source,
		cache:    t.TempDir(),
		mirror:   mirror{off: true},
		on:       linux,
		timeouts: timeouts{answer: time.Minute, stall: time.Minute, version: time.Minute},
		interval: time.Hour,
		compiler: fakeCompiler(t),
		log:      &log{to: shown},
	}, shown
}

func writeGoMod(t *testing.T, source, etcd string) {
	t.Helper()
	write(t, filepath.Join(source, "go.mod"), "module x\n\ntool go.etcd.io/etcd/server/v3\n\nrequire (\n"+
		"\tgo.etcd.io/etcd/server/v3 "+etcd+" // indirect\n\tk8s.io/kubernetes "+kubernetesVersion+"\n\tsigs.k8s.io/kwok "+kwokVersion+"\n)\n", 0o644)
}

// fakeCompiler returns a program that lists and builds packages as go does, without reading sources.
func fakeCompiler(t *testing.T) string {
	t.Helper()
	return script(t, filepath.Join(t.TempDir(), "go"), `
if [ "$1" = list ]; then
  shift 2
  for package; do echo "$package"; done
  exit
fi
while [ "$1" != -o ]; do shift; done
to=$2
shift 2
for package; do
  echo "$package" >&2
  name=${package##*/}
  case $name in v[0-9]*) package=${package%/*} name=${package##*/} ;; esac
  echo built >"$to$name"
done
`)
}

func script(t *testing.T, name, text string) string {
	t.Helper()
	write(t, name, "#!/bin/sh\n"+text, 0o755)
	return name
}

func write(t *testing.T, name, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// screen is the output of a run.
type screen struct {
	mu    sync.Mutex
	text  strings.Builder
	await string
	shown chan struct{}
}

func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(text)
	if s.await != "" && strings.Contains(s.text.String(), s.await) {
		s.await = ""
		close(s.shown)
	}
	return len(text), nil
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// when returns a channel that is closed when the text is shown.
func (s *screen) when(text string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.await, s.shown = text, make(chan struct{})
	return s.shown
}

// site is a test mirror: its responses by path, and the number of requests by path.
type site struct {
	files map[string]http.HandlerFunc
	mu    sync.Mutex
	asked map[string]int
}

func (s *site) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	s.asked[request.URL.Path]++
	s.mu.Unlock()
	if file, found := s.files[request.URL.Path]; found {
		file(answer, request)
		return
	}
	http.NotFound(answer, request)
}

func (s *site) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := 0
	for _, times := range s.asked {
		sum += times
	}
	return sum
}

// newSite starts a mirror that has all programs with valid checksums.
func newSite(t *testing.T) (*site, mirror) {
	t.Helper()
	tarball := pack(t, map[string]string{"etcd-v3.99.2-linux-amd64/README.md": "text", "etcd-v3.99.2-linux-amd64/etcd": released})
	s := &site{asked: map[string]int{}, files: map[string]http.HandlerFunc{
		etcdPath:                   text(tarball),
		etcdFolder + "/SHA256SUMS": text(sum("other") + "  etcd-v3.99.2-linux-arm64.tar.gz\n" + sum(tarball) + "  etcd-v3.99.2-linux-amd64.tar.gz\n"),
		kwokPath:                   text(released),
		kwokDigests: text(fmt.Sprintf(`{"tag_name": "v0.99.3", "assets": [{"name": "kwok-linux-arm64", "digest": null},
			{"name": "kwok-linux-amd64", "size": 21, "digest": "sha256:%s"}]}`, sum(released))),
	}}
	for _, name := range []string{"kubectl", "kube-apiserver", "kube-scheduler", "kube-controller-manager"} {
		file := filepath.Join(filepath.Dir(kubectlPath), name)
		s.files[file], s.files[file+".sha256"] = text(released), text(sum(released))
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, mirror{url: server.URL}
}

func text(content string) http.HandlerFunc {
	return func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, content) }
}

func sum(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }

func pack(t *testing.T, files map[string]string) string {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	for name, content := range files {
		header := &tar.Header{Name: name, Size: int64(len(content)), Mode: 0o755, Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(archive, content)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.String()
}

// contents returns the files below a folder, except the lock.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == ".lock" {
			return err
		}
		content, err := os.ReadFile(name)
		below, _ := filepath.Rel(folder, name)
		found[below] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func run(t *testing.T, g *getter, names ...string) (folder string) {
	t.Helper()
	folder, err := g.get(t.Context(), names)
	if err != nil {
		t.Fatalf("%v\n%s", err, g.log.to)
	}
	return folder
}

func TestAllProgramsAreDownloadedAndNothingElseStays(t *testing.T) {
	g, shown := newGetter(t)
	_, g.mirror = newSite(t)
	folder := run(t, g)
	want := map[string]string{}
	for _, p := range g.programs {
		want[p.name] = released
		if !isProgram(filepath.Join(folder, p.name)) {
			t.Errorf("%s is not executable", p.name)
		}
	}
	if diff := cmp.Diff(want, contents(t, folder)); diff != "" {
		t.Errorf("the folder differs (-want +got):\n%s", diff)
	}
	if !strings.Contains(shown.String(), "downloaded: etcd, kwok, kubectl, kube-scheduler, kube-apiserver, kube-controller-manager (") {
		t.Errorf("no summary in:\n%s", shown)
	}
}

func TestASecondRunDoesNothing(t *testing.T) {
	g, _ := newGetter(t)
	site, mirror := newSite(t)
	g.mirror = mirror
	folder := run(t, g, "etcd", "kubectl")
	asked := site.requests()
	before := times(t, folder)

	shown := &screen{}
	g.log, g.compiler = &log{to: shown}, "/nonexistent"
	if again := run(t, g, "kubectl", "etcd"); again != folder {
		t.Errorf("got %q, then %q", folder, again)
	}
	if site.requests() != asked || shown.String() != "" {
		t.Errorf("%d requests after %d, and it says:\n%s", site.requests(), asked, shown)
	}
	if diff := cmp.Diff(before, times(t, folder)); diff != "" {
		t.Errorf("the folder has changed:\n%s", diff)
	}
}

func times(t *testing.T, folder string) map[string]time.Time {
	t.Helper()
	found := map[string]time.Time{}
	for _, name := range []string{".", "etcd", "kubectl"} {
		info, err := os.Lstat(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = info.ModTime()
	}
	return found
}

func TestAnUnknownProgramIsRefused(t *testing.T) {
	g, _ := newGetter(t)
	_, err := g.get(t.Context(), []string{"etcd", "kubelet"})
	if err == nil || !strings.Contains(err.Error(), `unknown program "kubelet": available programs are etcd, kwok`) {
		t.Errorf("the error is %v", err)
	}
}

func TestWhatAnInterruptedRunLeftIsRemoved(t *testing.T) {
	g, _ := newGetter(t)
	folder := run(t, g, "etcd")
	write(t, filepath.Join(folder, ".work-123", "go-0", "part"), "part", 0o644)
	run(t, g, "etcd")
	if diff := cmp.Diff(map[string]string{"etcd": built}, contents(t, folder)); diff != "" {
		t.Errorf("the folder differs (-want +got):\n%s", diff)
	}
}

func TestARunWaitsForAnother(t *testing.T) {
	g, shown := newGetter(t)
	folder := run(t, g, "kubectl")
	other, err := os.Open(filepath.Join(folder, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := flock(other, syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	waiting := shown.when("waiting for it")
	done := make(chan error, 1)
	go func() {
		_, err := g.get(t.Context(), []string{"kubectl"})
		done <- err
	}()
	<-waiting
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	if err := flock(other, syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAWaitingRunCanBeInterrupted(t *testing.T) {
	g, shown := newGetter(t)
	folder := run(t, g, "kubectl")
	other, err := os.Open(filepath.Join(folder, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := flock(other, syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waiting := shown.when("waiting for it")
	done := make(chan error, 1)
	go func() {
		_, err := g.get(ctx, []string{"kubectl"})
		done <- err
	}()
	<-waiting
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("the error is %v", err)
	}
}

func TestTheFolderDependsOnVersionsAndPlatform(t *testing.T) {
	g, _ := newGetter(t)
	g.given = ""
	first := run(t, g, "etcd")
	if name := filepath.Base(first); !strings.HasPrefix(name, "controlplane-"+kubernetesVersion+"-") {
		t.Errorf("the folder is called %s", name)
	}
	folders := []string{first}
	g.on.arch = "arm64"
	folders = append(folders, run(t, g, "etcd"))
	writeGoMod(t, g.source, "v3.99.9")
	folders = append(folders, run(t, g, "etcd"))
	g.given = t.TempDir()
	folders = append(folders, run(t, g, "etcd"))
	slices.Sort(folders)
	if different := slices.Compact(slices.Clone(folders)); len(different) != 4 {
		t.Errorf("some folders are the same: %q", folders)
	}
}

// The tool module pins every version that the table of programs refers to.
func TestToolModuleHasVersions(t *testing.T) {
	g, _ := newGetter(t)
	g.source = toolModule
	pins, err := g.readPins()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range g.programs {
		if pins.versions[p.pin] == "" {
			t.Errorf("%s has no version", p.name)
		}
	}
}
