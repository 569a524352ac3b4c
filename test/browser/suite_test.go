// Package browser tests the dashboard in a real browser, against a real API server. `make test-ui` runs it: it needs chromium.
package browser

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

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

// serve serves the dashboard as `kubectl addon ui` does, and returns its address and gate.
func serve() (address string, gate *ui.Local) {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	cached, err := ui.NewHub(ctx, env.Config, nil)
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	gate = ui.NewLocal(fmt.Sprintf("tandem-%d", listener.Addr().(*net.TCPAddr).Port))
	server, err := ui.New(ui.Options{Hub: cached, Gate: gate, Hosts: []string{"127.0.0.1"}, Version: "v0.9.0"})
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
	return "http://" + listener.Addr().String(), gate
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
	Expect(chromedp.Do(page, chromedp.Navigate(address+gate.Path()), chromedp.WaitVisible(".matrix"), chromedp.WaitVisible("#live.live"))).To(Succeed())
}

// pictures is the folder for screenshots; without it, none are taken.
var pictures = os.Getenv("TANDEM_SCREENSHOTS")
