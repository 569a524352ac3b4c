// Command controlplane installs the control plane programs into a cache folder, and prints that folder on standard output. It runs in the
// root of Tandem's source tree:
//
//	CGO_ENABLED=0 go run -trimpath ./hack/controlplane [PROGRAM...]      all programs, or the given ones
//
// Programs that are in the folder stay. Kubernetes' programs are downloaded if they are released for this platform; everything else is built
// from Go modules. The go.mod of the tool module in programs/ pins the versions; the modules in versions/ pin Kubernetes in other versions. It
// reads these environment variables:
//
//	TANDEM_KUBERNETES  a minor version in versions/, such as 1.34; without it, the version in programs/
//	TANDEM_CACHE       the cache; without it $XDG_CACHE_HOME/tandem, or ~/.cache/tandem
//	TANDEM_MIRROR      a server with the files of dl.k8s.io; "off" downloads nothing
//	TANDEM_BUNDLE      the URL of a folder of a Tandem release, with an archive of all programs; without it none is used
//	HTTPS_PROXY        and HTTP_PROXY, NO_PROXY: proxies for downloads
//
// It does not connect to a cluster.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/tandem-addons/tandem/pkg/sandbox/cache"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately

	i := &installer{
		programs: controlPlane(),
		source:   filepath.Join("hack", "controlplane", "programs"),
		cache:    cache.Folder(os.Getenv),
		platform: runtime.GOOS + "/" + runtime.GOARCH,
		mirror:   strings.TrimRight(cmp.Or(os.Getenv("TANDEM_MIRROR"), "https://dl.k8s.io"), "/"),
		bundle:   strings.TrimRight(os.Getenv("TANDEM_BUNDLE"), "/"),
		stall:    10 * time.Second,
		interval: 15 * time.Second,
		log: func(format string, arguments ...any) {
			fmt.Fprintf(os.Stderr, "control plane: "+format+"\n", arguments...)
		},
	}
	folder, err := i.installVersion(ctx, filepath.Join("hack", "controlplane", "versions"), os.Getenv("TANDEM_KUBERNETES"), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		os.Exit(1)
	}
	fmt.Println(folder)
}
