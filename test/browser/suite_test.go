// Package browser tests the dashboard in a real browser, against a real API server. `make test-ui` runs it: it needs chromium.
package browser

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
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
	SetDefaultEventuallyTimeout(time.Minute)
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

// site is a served dashboard.
type site struct {
	address string
	stop    func()
}

// start serves the dashboard of a hub at HOST:PORT until it is stopped, or the spec ends. The port 0 selects a free one.
func start(config *rest.Config, at string, gate func(hub *ui.Hub, port int) ui.Gate, change ...func(*ui.Options)) site {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	cached, err := ui.NewHub(ctx, config, nil)
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", at)
	Expect(err).NotTo(HaveOccurred())
	options := ui.Options{Hub: cached, Gate: gate(cached, listener.Addr().(*net.TCPAddr).Port), Hosts: []string{"127.0.0.1"}, Version: "v0.9.0"}
	for _, c := range change {
		c(&options)
	}
	server, err := ui.New(options)
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	stop := sync.OnceFunc(func() {
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
	})
	DeferCleanup(stop)
	return site{address: "http://" + listener.Addr().String(), stop: stop}
}

// anywhere is a free port.
const anywhere = "127.0.0.1:0"

// serve serves the dashboard as `kubectl addon ui` does, and returns its address and gate.
func serve() (address string, gate *ui.Local) {
	GinkgoHelper()
	served, gate := serveAt(anywhere)
	return served.address, gate
}

// serveAt serves the dashboard as `kubectl addon ui` does, at HOST:PORT.
func serveAt(at string) (served site, gate *ui.Local) {
	GinkgoHelper()
	served = start(env.Config, at, func(_ *ui.Hub, port int) ui.Gate {
		gate = ui.NewLocal(fmt.Sprintf("tandem-%d", port))
		return gate
	})
	return served, gate
}

// serveUsers serves the dashboard of a hub as `addon-manager ui` does, at HOST:PORT.
func serveUsers(config *rest.Config, at string, change ...func(*ui.Options)) site {
	GinkgoHelper()
	return start(config, at, func(hub *ui.Hub, _ int) ui.Gate { return ui.NewTokens(hub, false, nil) }, change...)
}

// tab opens a tab without cookies that ends with the spec.
func tab() context.Context {
	ctx, closing := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	DeferCleanup(closing)
	limited, end := context.WithTimeout(ctx, 4*time.Minute)
	DeferCleanup(end)
	return limited
}

// open opens a path of a dashboard, and waits for the page to be live.
func open(page context.Context, address, path string) {
	GinkgoHelper()
	Expect(chromedp.Do(page, chromedp.Navigate(address+path), chromedp.WaitVisible("#live.live"))).To(Succeed())
}

// enter opens the URL that starts the session, and waits for page Fleet to be live.
func enter(page context.Context, address string, gate *ui.Local) {
	GinkgoHelper()
	Expect(chromedp.Do(page, front, chromedp.Navigate(address+gate.Path()), chromedp.WaitVisible(".matrix"), chromedp.WaitVisible("#live.live"))).To(Succeed())
}

// signIn pastes a token, and waits for page Fleet to be live.
func signIn(page context.Context, address, token string) {
	GinkgoHelper()
	Expect(chromedp.Do(page, front, chromedp.Navigate(address+"/"), chromedp.SetValue("#bearer", token), chromedp.Click("form.entrance button"),
		chromedp.WaitVisible(`//h1[text()="Fleet"]`), chromedp.WaitVisible("#live.live"))).To(Succeed())
}

// user creates a user of the hub that is removed when the spec ends.
func user(ctx context.Context, name, namespace string, rules []rbacv1.PolicyRule) dashboard.Account {
	GinkgoHelper()
	account, err := dashboard.NewAccount(ctx, hub, name, namespace, rules)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) { Expect(account.Remove(ctx, hub)).To(Succeed()) })
	return account
}

// content returns the text of a page.
func content(page context.Context) func() (string, error) {
	return func() (string, error) { return chromedp.Run(page, chromedp.Text("main")) }
}

// report makes an add-on unavailable with a message, or available with none.
func report(ctx context.Context, cluster, name, message string) {
	GinkgoHelper()
	condition := metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Healthy"}
	if message != "" {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "ProbeUnavailable", message
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	Expect(hub.Get(ctx, client.ObjectKeyFromObject(addOn), addOn)).To(Succeed())
	Expect(environment.EditStatus(ctx, hub, addOn, func(a *addonv1alpha1.ManagedClusterAddOn) { meta.SetStatusCondition(&a.Status.Conditions, condition) })).To(Succeed())
}

// front shows a tab: pages that are not visible are not updated.
var front = chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
	_, err := cdp.Call(ctx, t, cdppage.BringToFront, cdp.Empty{})
	return err
})

// pictures is the folder for screenshots; without it, none are taken.
var pictures = os.Getenv("TANDEM_SCREENSHOTS")

// review is the folder for screenshots of every page at 360 pixels and in 4K; without it, none are taken.
var review = os.Getenv("TANDEM_REVIEW")
