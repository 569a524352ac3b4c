// Command controlplane installs the control plane programs into a cache folder, and prints that folder on standard output.
//
//	CGO_ENABLED=0 go run -trimpath ./hack/controlplane [PROGRAM...]      all programs, or the given ones
//
// It links programs in KUBEBUILDER_ASSETS, keeps existing ones in the folder, links programs on PATH with exactly the required version,
// downloads programs released for this platform, and builds the others from Go modules. The go.mod of the tool module in programs/ pins the
// versions. It reads these environment variables:
//
//	TANDEM_CACHE     the cache; without it $XDG_CACHE_HOME/tandem, or ~/.cache/tandem
//	TANDEM_MIRROR    a server that has the files of dl.k8s.io, github.com and api.github.com; "off" downloads nothing
//	HTTPS_PROXY      and HTTP_PROXY, NO_PROXY: proxies for downloads
//
// The files programs.go, version.go, release.go, decide.go and progress.go decide, and use neither disk nor network. get.go runs the steps
// in order: folder.go, observe.go, download.go (with transfer.go, host.go and unpack.go), build.go. It does not connect to a cluster.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/tandem-addons/tandem/pkg/sandbox/cache"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately

	folder, err := fromEnvironment(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		os.Exit(1)
	}
	fmt.Println(folder)
}

func fromEnvironment(ctx context.Context) (string, error) {
	source, err := sourceFolder()
	if err != nil {
		return "", err
	}
	mirror, err := parseMirror(os.Getenv("TANDEM_MIRROR"))
	if err != nil {
		return "", err
	}
	getter := &getter{
		programs: controlPlane(),
		source:   source,
		cache:    cache.Folder(os.Getenv),
		given:    os.Getenv("KUBEBUILDER_ASSETS"),
		mirror:   mirror,
		on:       platform{runtime.GOOS, runtime.GOARCH},
		timeouts: timeouts{answer: 3 * time.Second, stall: 10 * time.Second, version: 5 * time.Second},
		interval: 15 * time.Second,
		compiler: "go",
		log:      &log{to: os.Stderr},
	}
	return getter.get(ctx, os.Args[1:])
}

// sourceFolder returns the folder of the tool module, below the working directory or one of its parents.
func sourceFolder() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := start; ; at = filepath.Dir(at) {
		source := filepath.Join(at, "hack", "controlplane")
		if _, err := os.Stat(filepath.Join(source, "main.go")); err == nil {
			return filepath.Join(source, toolModule), nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in Tandem's source tree: hack/controlplane not found", start)
		}
	}
}
