// Package browser tests the dashboard in a real browser, against a real API server. `make test-ui` runs it: it needs chromium.
package browser

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/ui"
	"github.com/tandem-addons/tandem/test/dashboard"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// Set once before the specs run.
var (
	hub     client.Client
	env     *environment.Environment
	browser context.Context
)

func TestBrowser(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
	RunSpecs(t, "Browser")
}

var _ = BeforeSuite(func(ctx context.Context) {
	ctrl.SetLogger(GinkgoLogr)
	var err error
	env, err = environment.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	scheme, err := dashboard.Scheme()
	Expect(err).NotTo(HaveOccurred())
	hub, err = client.New(env.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(dashboard.Fill(ctx, hub, 12)).To(Succeed())
	browser = launch()
})

// launch starts chromium, with a profile that is removed at the end.
func launch() context.Context {
	GinkgoHelper()
	program, err := exec.LookPath("chromium")
	Expect(err).NotTo(HaveOccurred(), "the tests of the dashboard need chromium: install it, for example with 'apt-get install chromium'")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.UserDataDir(GinkgoT().TempDir()), chromedp.Flag("force-color-profile", "srgb"))
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	DeferCleanup(stop)
	first, closing := chromedp.NewContext(allocated)
	DeferCleanup(closing)
	Expect(chromedp.Do(first)).To(Succeed())
	return first
}

// serve serves the dashboard until the spec ends, as `kubectl addon ui` does, and returns its address and gate.
func serve() (address string, gate *ui.Local) {
	GinkgoHelper()
	address, gate, _ = serveUntil()
	return address, gate
}

// serveUntil serves the dashboard until stop is called, or the spec ends.
func serveUntil() (address string, gate *ui.Local, stop func()) {
	GinkgoHelper()
	return serveAt("http://127.0.0.1:0")
}

// serveAt serves the dashboard at an address.
func serveAt(wanted string) (address string, gate *ui.Local, stop func()) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	cached, err := ui.NewHub(ctx, env.Config, nil)
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", strings.TrimPrefix(wanted, "http://"))
	Expect(err).NotTo(HaveOccurred())
	gate = ui.NewLocal(fmt.Sprintf("tandem-%d", listener.Addr().(*net.TCPAddr).Port))
	server, err := ui.New(ui.Options{Hub: cached, Gate: gate, Hosts: []string{"127.0.0.1"}, Version: "v0.9.0"})
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	stop = sync.OnceFunc(func() {
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
	})
	DeferCleanup(stop)
	return "http://" + listener.Addr().String(), gate, stop
}

// tab opens a tab that ends with the spec.
func tab() context.Context {
	ctx, closing := chromedp.NewContext(browser)
	DeferCleanup(closing)
	limited, end := context.WithTimeout(ctx, time.Minute)
	DeferCleanup(end)
	return limited
}

// enter opens the URL that starts the session, and waits for page Fleet to be live.
func enter(page context.Context, address string, gate *ui.Local) {
	GinkgoHelper()
	Expect(chromedp.Do(page, front, chromedp.Navigate(address+gate.Path()), chromedp.WaitVisible(".matrix"), chromedp.WaitVisible("#live.live"))).To(Succeed())
}

// front shows a tab: pages that are not visible are not updated.
var front = chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
	_, err := cdp.Call(ctx, t, cdppage.BringToFront, cdp.Empty{})
	return err
})

// pictures is the folder for screenshots; without it, none are taken.
var pictures = os.Getenv("TANDEM_SCREENSHOTS")
