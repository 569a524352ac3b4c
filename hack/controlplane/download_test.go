package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWhatIsNotVerifiedIsBuilt corrupts one file of a mirror in each case.
func TestWhatIsNotVerifiedIsBuilt(t *testing.T) {
	const sums, kubectlSum = etcdFolder + "/SHA256SUMS", kubectlPath + ".sha256"
	stalls := func(content string) http.HandlerFunc {
		return func(answer http.ResponseWriter, request *http.Request) {
			answer.Header().Set("Content-Length", "1000")
			fmt.Fprint(answer, content)
			answer.(http.Flusher).Flush()
			<-request.Context().Done()
		}
	}
	fails := func(answer http.ResponseWriter, _ *http.Request) { answer.WriteHeader(http.StatusServiceUnavailable) }
	hangs := func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }
	without := pack(t, map[string]string{"etcd-v3.99.2-linux-amd64/etcdctl": released, "etcd": released})
	for name, test := range map[string]struct {
		program string
		files   map[string]http.HandlerFunc
		missing string
		timeout timeouts
		says    []string
	}{
		"a file with another checksum": {
			program: "kubectl", files: map[string]http.HandlerFunc{kubectlPath: text("changed")},
			says: []string{kubectlPath + ": its SHA-256 is " + sum("changed"), "has " + sum(released), "building it instead"},
		},
		"a tarball with another checksum": {
			program: "etcd", files: map[string]http.HandlerFunc{etcdPath: text("changed")},
			says: []string{"its SHA-256 is " + sum("changed"), "SHA256SUMS has", "building it instead"},
		},
		"a digest of another file": {
			program: "kwok", files: map[string]http.HandlerFunc{kwokPath: text("changed")},
			says: []string{"its SHA-256 is " + sum("changed"), "api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v0.99.3 has"},
		},
		"a file that is cut off": {
			program: "kubectl", files: map[string]http.HandlerFunc{
				kubectlPath: func(answer http.ResponseWriter, _ *http.Request) {
					answer.Header().Set("Content-Length", "1000")
					fmt.Fprint(answer, released)
				},
			}, says: []string{kubectlPath, "unexpected EOF", "building it instead"},
		},
		"a file without a checksum": {
			program: "kubectl", missing: kubectlSum, says: []string{kubectlSum + ": 404 Not Found", "building it instead"},
		},
		"a missing file": {program: "kubectl", missing: kubectlPath, says: []string{kubectlPath + ": 404 Not Found", "building it instead"}},
		"a checksum that is none": {
			program: "kubectl", files: map[string]http.HandlerFunc{kubectlSum: text("<html>Welcome to the airport!</html>")},
			says: []string{kubectlSum + ": it has no checksum of kubectl", "building it instead"},
		},
		"checksums of other files": {
			program: "etcd", files: map[string]http.HandlerFunc{sums: text(sum("") + "  etcd-v3.99.2-linux-arm64.tar.gz\n")},
			says: []string{sums + ": it has no checksum of etcd-v3.99.2-linux-amd64.tar.gz", "building it instead"},
		},
		"a release without digests": {
			program: "kwok", files: map[string]http.HandlerFunc{kwokDigests: text(`{"assets": [{"name": "kwok-linux-amd64"}]}`)},
			says: []string{kwokDigests + ": it has no SHA-256 digest of kwok-linux-amd64", "building it instead"},
		},
		"a page in place of a release": {
			program: "kwok", files: map[string]http.HandlerFunc{kwokDigests: text("<html>")},
			says: []string{kwokDigests + ": it is not a GitHub release", "building it instead"},
		},
		"a tarball without the program": {
			program: "etcd", files: map[string]http.HandlerFunc{
				etcdPath: text(without), sums: text(sum(without) + "  etcd-v3.99.2-linux-amd64.tar.gz\n"),
			}, says: []string{etcdPath + ": it has no file etcd-v3.99.2-linux-amd64/etcd", "building it instead"},
		},
		"a tarball that is none": {
			program: "etcd", files: map[string]http.HandlerFunc{
				etcdPath: text("text"), sums: text(sum("text") + " *etcd-v3.99.2-linux-amd64.tar.gz\n"),
			}, says: []string{etcdPath + ": it is not a tarball", "building it instead"},
		},
		"a file that is too large": {
			program: "kubectl", files: map[string]http.HandlerFunc{
				kubectlPath: func(answer http.ResponseWriter, _ *http.Request) {
					answer.Header().Set("Content-Length", "987654321987")
				},
			}, says: []string{kubectlPath + ": it has 987654 MB, more than 537 MB", "building it instead"},
		},
		"checksums that are too large": {
			program: "kubectl", files: map[string]http.HandlerFunc{
				kubectlSum: func(answer http.ResponseWriter, _ *http.Request) {
					answer.(http.Flusher).Flush() // without Content-Length
					fmt.Fprint(answer, strings.Repeat("0", largestChecksums+1))
				},
			}, says: []string{kubectlSum + ": it has more than 4 MB", "building it instead"},
		},
		"a server that fails": {
			program: "kubectl", files: map[string]http.HandlerFunc{kubectlSum: fails},
			says: []string{kubectlSum + ": 503 Service Unavailable", "building it instead, and all other programs"},
		},
		"a server that never answers": {
			program: "kubectl", files: map[string]http.HandlerFunc{kubectlSum: hangs}, timeout: timeouts{answer: 50 * time.Millisecond},
			says: []string{kubectlSum + ": no response within 50ms", "building it instead, and all other programs"},
		},
		"a body that stalls": {
			program: "kubectl", files: map[string]http.HandlerFunc{kubectlPath: stalls(released)}, timeout: timeouts{stall: 50 * time.Millisecond},
			says: []string{kubectlPath + ": after 0 MB: no data received for 50ms", "building it instead, and all other programs"},
		},
		"redirects without an end": {
			program: "kubectl", files: map[string]http.HandlerFunc{
				kubectlSum: func(answer http.ResponseWriter, request *http.Request) {
					http.Redirect(answer, request, kubectlSum, http.StatusFound)
				},
			}, says: []string{"more than ten redirects", "building it instead"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, shown := newGetter(t)
			site, mirror := newSite(t)
			g.mirror = mirror
			for path, file := range test.files {
				site.files[path] = file
			}
			delete(site.files, test.missing)
			if test.timeout.answer != 0 {
				g.timeouts.answer = test.timeout.answer
			}
			if test.timeout.stall != 0 {
				g.timeouts.stall = test.timeout.stall
			}
			folder := run(t, g, test.program)
			if diff := cmp.Diff(map[string]string{test.program: built}, contents(t, folder)); diff != "" {
				t.Errorf("the folder differs (-want +got):\n%s", diff)
			}
			for _, text := range test.says {
				if !strings.Contains(shown.String(), text) {
					t.Errorf("it does not say %q:\n%s", text, shown)
				}
			}
			for path, times := range site.asked {
				if times > 1 && name != "redirects without an end" {
					t.Errorf("%s was asked for %d times", path, times)
				}
			}
		})
	}
}

func TestRedirectsAreFollowed(t *testing.T) {
	g, _ := newGetter(t)
	site, mirror := newSite(t)
	g.mirror = mirror
	other := httptest.NewServer(text(released))
	t.Cleanup(other.Close)
	site.files[kwokPath] = func(answer http.ResponseWriter, request *http.Request) {
		http.Redirect(answer, request, other.URL+"/storage?signature=x", http.StatusFound)
	}
	folder := run(t, g, "kwok")
	if diff := cmp.Diff(map[string]string{"kwok": released}, contents(t, folder)); diff != "" {
		t.Errorf("the folder differs (-want +got):\n%s", diff)
	}
}

func TestOnlyTheProgramOfATarballIsUnpacked(t *testing.T) {
	g, _ := newGetter(t)
	site, mirror := newSite(t)
	g.mirror = mirror
	tarball := pack(t, map[string]string{
		"../../escaped": "x", "/escaped": "x", "etcd-v3.99.2-linux-amd64/../../escaped": "x", "etcd-v3.99.2-linux-amd64/../etcd": "x",
		"etcd-v3.99.2-linux-amd64/etcd": released, "etcd": "x",
	})
	site.files[etcdPath] = text(tarball)
	site.files[etcdFolder+"/SHA256SUMS"] = text(sum(tarball) + "  etcd-v3.99.2-linux-amd64.tar.gz\n")
	folder := run(t, g, "etcd")
	if diff := cmp.Diff(map[string]string{filepath.Base(folder) + "/etcd": released}, contents(t, g.cache)); diff != "" {
		t.Errorf("the cache differs (-want +got):\n%s", diff)
	}
}

func TestOneMissingFileDoesNotKeepOthersFromBeingDownloaded(t *testing.T) {
	g, _ := newGetter(t)
	site, mirror := newSite(t)
	g.mirror = mirror
	delete(site.files, kubectlPath)
	site.files[apiserverPath] = text("changed")
	folder := run(t, g)
	want := map[string]string{"etcd": released, "kwok": released, "kubectl": built, "kube-apiserver": built,
		"kube-scheduler": released, "kube-controller-manager": released}
	if diff := cmp.Diff(want, contents(t, folder)); diff != "" {
		t.Errorf("the folder differs (-want +got):\n%s", diff)
	}
}

func TestAHostThatCannotBeReachedIsTriedOnce(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	var connections atomic.Int32
	broken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { broken.Close() })
	go func() {
		for {
			connection, err := broken.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			connection.Close()
		}
	}()
	for name, test := range map[string]struct {
		address net.Addr
		says    string
	}{
		"no server":                        {closed.Addr(), "connection refused; building it instead, and all other programs from " + closed.Addr().String()},
		"a server that closes connections": {broken.Addr(), "; building it instead, and all other programs from " + broken.Addr().String()},
	} {
		t.Run(name, func(t *testing.T) {
			g, shown := newGetter(t)
			g.mirror = mirror{url: "http://" + test.address.String()}
			folder := run(t, g)
			for name, content := range contents(t, folder) {
				if content != built {
					t.Errorf("%s is not built", name)
				}
			}
			if times := strings.Count(shown.String(), "instead"); times != 1 || !strings.Contains(shown.String(), test.says) {
				t.Errorf("it says %d times that a host fails, and not once %q:\n%s", times, test.says, shown)
			}
		})
	}
	if got := connections.Load(); got != 1 {
		t.Errorf("%d connections", got)
	}
}

func TestAHostThatBreaksOffIsReportedOnce(t *testing.T) {
	g, shown := newGetter(t)
	site, mirror := newSite(t)
	g.mirror = mirror
	for path := range site.files {
		if strings.HasPrefix(path, "/dl.k8s.io/") && !strings.HasSuffix(path, ".sha256") {
			site.files[path] = func(answer http.ResponseWriter, _ *http.Request) {
				answer.Header().Set("Content-Length", "1000")
				fmt.Fprint(answer, released)
			}
		}
	}
	folder := run(t, g, "kubectl", "kube-scheduler", "kube-apiserver", "kube-controller-manager")
	for name, content := range contents(t, folder) {
		if content != built {
			t.Errorf("%s is not built", name)
		}
	}
	if times := strings.Count(shown.String(), "instead"); times != 1 {
		t.Errorf("it says %d times that the host fails:\n%s", times, shown)
	}
}

func TestNothingIsAskedForWithoutNeed(t *testing.T) {
	for name, change := range map[string]func(g *getter){
		"downloads are off":               func(g *getter) { g.mirror.off = true },
		"nothing is released for riscv64": func(g *getter) { g.on = platform{"linux", "riscv64"} },
	} {
		t.Run(name, func(t *testing.T) {
			g, shown := newGetter(t)
			site, mirror := newSite(t)
			g.mirror = mirror
			change(g)
			if folder := run(t, g); contents(t, folder)["kube-apiserver"] != built {
				t.Error("kube-apiserver is not built")
			}
			if site.requests() != 0 || strings.Contains(shown.String(), "download") {
				t.Errorf("%d requests:\n%s", site.requests(), shown)
			}
		})
	}
}

func TestAnInterruptedDownloadLeavesNothing(t *testing.T) {
	g, shown := newGetter(t)
	site, mirror := newSite(t)
	g.mirror = mirror
	ctx, interrupt := context.WithCancel(t.Context())
	site.files[kubectlPath] = func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Set("Content-Length", "1000")
		fmt.Fprint(answer, released)
		answer.(http.Flusher).Flush()
		interrupt()
		<-request.Context().Done()
	}
	if _, err := g.get(ctx, []string{"kubectl"}); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("the error is %v", err)
	}
	if left := contents(t, g.cache); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
	if strings.Contains(shown.String(), "building") {
		t.Errorf("it builds after an interruption:\n%s", shown)
	}
}
