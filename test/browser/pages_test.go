package browser

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tandem-addons/tandem/pkg/ui"
	"github.com/tandem-addons/tandem/test/dashboard"
)

var _ = Describe("A browser", func() {
	It("shows a change without loading the page again, and keeps the focus", func(ctx context.Context) {
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		open(page, address, "/clusters/cluster-06/addons/ingress")
		_, err := chromedp.Run(page, chromedp.Evaluate[bool](`window.kept = document.querySelector("main h1 a"); kept.focus(); true`))
		Expect(err).NotTo(HaveOccurred())
		start := time.Now()
		report(ctx, "cluster-06", "ingress", "no route")
		Eventually(content(page)).WithPolling(50 * time.Millisecond).Should(ContainSubstring("no route"))
		GinkgoWriter.Println("the change was shown after", time.Since(start))
		Expect(chromedp.Run(page, chromedp.Evaluate[bool](`document.activeElement === window.kept`))).To(BeTrue())
	})

	It("shows that the dashboard is gone, and asks to sign in once it is back", func() {
		served, gate := serveAt(anywhere)
		page := tab()
		enter(page, served.address, gate)
		served.stop()
		Expect(chromedp.Do(page, chromedp.WaitVisible("#live.stale"))).To(Succeed())
		Expect(chromedp.Run(page, chromedp.Text("#live"))).To(HavePrefix("Reconnecting: stale since "))
		Expect(chromedp.Run(page, chromedp.Text("h1"))).To(Equal("Fleet"))
		again, _ := serveAt(strings.TrimPrefix(served.address, "http://"))
		Expect(again.address).To(Equal(served.address))
		Expect(chromedp.Do(page, chromedp.WaitVisible(`//h1[text()="Sign in"]`))).To(Succeed())
	})

	It("says why a page is not live, and makes it live later", func(ctx context.Context) {
		served := serveUsers(env.Config, anywhere, func(o *ui.Options) { o.Limits.MaxLivePages = 1 })
		token := user(ctx, "many", "", dashboard.Reading).Token
		other, err := http.NewRequestWithContext(ctx, http.MethodGet, served.address+"/", nil)
		Expect(err).NotTo(HaveOccurred())
		other.Header.Set("Accept", "text/event-stream")
		other.AddCookie(&http.Cookie{Name: "tandem", Value: token})
		stream, err := http.DefaultTransport.RoundTrip(other)
		Expect(err).NotTo(HaveOccurred())
		Expect(stream.StatusCode).To(Equal(http.StatusOK))
		page := tab()
		Expect(chromedp.Do(page, front, chromedp.Navigate(served.address+"/"), chromedp.SetValue("#bearer", token), chromedp.Click("form.entrance button"),
			chromedp.WaitVisible(`//h1[text()="Fleet"]`))).To(Succeed())
		Eventually(status(page), time.Minute).Should(Equal("Not live: the dashboard has the maximum of 1 live page"))
		_, err = chromedp.Run(page, chromedp.Evaluate[bool](`window.kept = true`))
		Expect(err).NotTo(HaveOccurred())
		Expect(stream.Body.Close()).To(Succeed())
		Eventually(status(page), time.Minute).Should(Equal("Live"))
		Expect(chromedp.Run(page, chromedp.Evaluate[bool](`window.kept === true`))).To(BeTrue(), "the page was not loaded again")
	})

	It("focuses the search field when / is pressed, and leaves the key to fields", func() {
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		open(page, address, "/clusters/cluster-01")
		// The driver sends a character even if a script has prevented that: the event is dispatched instead.
		const press = `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true, cancelable: true}))`
		Expect(chromedp.Run(page, chromedp.Evaluate[bool](press))).To(BeFalse(), "no character is entered")
		Expect(chromedp.Run(page, chromedp.Evaluate[string](`document.activeElement.id`))).To(Equal("search"))
		Expect(chromedp.Run(page, chromedp.Evaluate[bool](press))).To(BeTrue(), "in the field, it is a character")
		Expect(chromedp.Do(page, chromedp.SetValue("#search", "kafka"), chromedp.KeyEvent("\r"), chromedp.WaitVisible(`//h1[text()="Search"]`))).To(Succeed())
		Expect(chromedp.Run(page, chromedp.Evaluate[string](`location.search`))).To(Equal("?q=kafka"))
	})

	It("can be used by keyboard", func() {
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		Expect(chromedp.Do(page, chromedp.Navigate(address+"/"), chromedp.WaitVisible("#live.live"), chromedp.KeyEvent("\t"))).To(Succeed())
		Expect(chromedp.Run(page, chromedp.Evaluate[string](`document.activeElement.textContent`))).To(Equal("Skip to content"))
		unreachable, err := chromedp.Run(page, chromedp.Evaluate[[]string](fmt.Sprintf(`[...document.querySelectorAll(%q)].filter((e) => e.tabIndex < 0).map((e) => e.outerHTML)`,
			"a, button, input:not([type=hidden]), select, .scroll")))
		Expect(err).NotTo(HaveOccurred())
		Expect(unreachable).To(BeEmpty())
	})
})
