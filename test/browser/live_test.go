package browser

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/ui"
	"github.com/tandem-addons/tandem/test/dashboard"
)

// status returns the text that states whether a page is live.
func status(page context.Context) func() (string, error) {
	return func() (string, error) { return chromedp.Run(page, chromedp.Text("#live")) }
}

// shifts observes the layout shifts of a page that no input of the user has caused: https://web.dev/cls.
const shifts = `window.shift = 0; new PerformanceObserver((list) => list.getEntries().forEach((e) => {
    if (!e.hadRecentInput) window.shift = Math.max(window.shift, e.value);
  })).observe({type: "layout-shift", buffered: true}); true`

// shifted returns the largest layout shift of a frame since the last call, after the next frame. One that is rendered late counts in the next call.
const shifted = `new Promise((done) => requestAnimationFrame(() => setTimeout(() => { done(window.shift); window.shift = 0; })))`

var _ = Describe("A live page", func() {
	DescribeTable("says since when the hub cannot be read, keeps the last state, and shows the current one when the hub is back",
		func(ctx context.Context, cluster string, fail func(*relay), enters func(context.Context, *rest.Config, context.Context)) {
			link, config := startRelay()
			page := tab()
			enters(ctx, config, page)
			where, err := chromedp.Run(page, chromedp.Location())
			Expect(err).NotTo(HaveOccurred())
			open(page, strings.TrimSuffix(where, "/"), "/clusters/"+cluster+"/addons/ingress")
			fail(link)
			Eventually(status(page), time.Minute).Should(MatchRegexp(`^Stale since \d\d:\d\d:\d\dZ: the hub cannot be read$`))
			report(ctx, cluster, "ingress", "no route meanwhile")
			By("keeping the last state longer than answers about users and permissions are kept")
			Consistently(content(page), 15*time.Second, time.Second).Should(And(ContainSubstring("is available on cluster"), Not(ContainSubstring("no route"))))
			Expect(status(page)()).To(HavePrefix("Stale since "))
			Expect(findings(page, "a stale page")).To(BeEmpty())
			link.mend()
			Eventually(status(page), time.Minute).Should(Equal("Live"))
			Eventually(content(page), time.Minute).Should(ContainSubstring("no route meanwhile"))
		},
		Entry("that closes connections, for one user", "cluster-09", (*relay).refuse, oneUser),
		Entry("that closes connections, for many users", "cluster-10", (*relay).refuse, manyUsers),
		Entry("that is silent, for one user", "cluster-11", (*relay).silence, oneUser),
		Entry("that is silent, for many users", "cluster-12", (*relay).silence, manyUsers),
	)

	It("reconnects to a dashboard that was restarted, without a new sign-in", func(ctx context.Context) {
		served := serveUsers(env.Config, anywhere)
		page := tab()
		signIn(page, served.address, user(ctx, "patient", "", dashboard.Reading).Token)
		open(page, served.address, "/clusters/cluster-08/addons/ingress")
		served.stop()
		Eventually(status(page), time.Minute).Should(HavePrefix("Reconnecting: stale since "))
		Expect(content(page)()).To(ContainSubstring("is available on cluster"))
		report(ctx, "cluster-08", "ingress", "no route after the restart")
		serveUsers(env.Config, strings.TrimPrefix(served.address, "http://"))
		Eventually(status(page), time.Minute).Should(Equal("Live"))
		Eventually(content(page), time.Minute).Should(ContainSubstring("no route after the restart"))
	})

	It("offers what can be selected now, and keeps what is selected", func(ctx context.Context) {
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		define := func(name string) {
			GinkgoHelper()
			definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
			definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
			Expect(hub.Create(ctx, definition)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, definition)).To(Succeed()) })
		}
		define("billing")
		define("search")
		open(page, address, "/clusters/cluster-05")
		Expect(chromedp.Do(page, chromedp.SetValue("select[name=addon]", "search"))).To(Succeed())
		define("archive")
		offered := func() ([]string, error) {
			return chromedp.Run(page, chromedp.Evaluate[[]string](`[...document.querySelectorAll("select[name=addon] option")].map((o) => o.value)`))
		}
		Eventually(offered).Should(Equal([]string{"archive", "billing", "search"}))
		Expect(chromedp.Run(page, chromedp.Value("select[name=addon]"))).To(Equal("search"))
	})

	It("asks to sign in when the session ends, and shows nothing else", func(ctx context.Context) {
		served := serveUsers(env.Config, anywhere)
		page := tab()
		leaving := user(ctx, "leaving", "", dashboard.Reading)
		signIn(page, served.address, leaving.Token)
		open(page, served.address, "/clusters/cluster-01")
		Expect(leaving.Remove(ctx, hub)).To(Succeed())
		Expect(chromedp.Do(page, chromedp.WaitVisible("#bearer"))).To(Succeed())
		Expect(chromedp.Run(page, chromedp.Text("body"))).NotTo(ContainSubstring("kafka"))
	})

	It("does not shift its content while it is loaded, or when states change", func(ctx context.Context) {
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		for _, path := range []string{"/", "/addons/monitoring", "/clusters/cluster-05", "/clusters/cluster-05/addons/monitoring"} {
			open(page, address, path)
			Expect(chromedp.Run(page, chromedp.Evaluate[bool](shifts))).To(BeTrue())
			for _, message := range []string{"0 of 1 replicas available", "", "0 of 2 replicas available", ""} {
				before, err := content(page)()
				Expect(err).NotTo(HaveOccurred())
				report(ctx, "cluster-05", "monitoring", message)
				Eventually(content(page)).ShouldNot(Equal(before), path)
				score, err := chromedp.Run(page, chromedp.Evaluate[float64](shifted, chromedp.EvalAwaitPromise))
				Expect(err).NotTo(HaveOccurred())
				AddReportEntry(fmt.Sprintf("layout shift of %s: %.4f", path, score))
				Expect(score).To(BeNumerically("<", 0.05), path) // a row that moves, or a command below which others follow
			}
		}
	})
})

// oneUser serves the dashboard of a hub to one user, who enters.
func oneUser(_ context.Context, config *rest.Config, page context.Context) {
	GinkgoHelper()
	var gate *ui.Local
	served := start(config, anywhere, func(_ *ui.Hub, port int) ui.Gate {
		gate = ui.NewLocal(fmt.Sprintf("tandem-%d", port))
		return gate
	})
	enter(page, served.address, gate)
}

// manyUsers serves the dashboard of a hub to many users, of whom one signs in.
func manyUsers(ctx context.Context, config *rest.Config, page context.Context) {
	GinkgoHelper()
	signIn(page, serveUsers(config, anywhere).address, user(ctx, "stays", "", dashboard.Reading).Token)
}
