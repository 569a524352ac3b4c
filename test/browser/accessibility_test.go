package browser

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/dashboard"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

//go:embed axe/axe.min.js
var axe string

// audit has axe-core examine a page with all of its rules, best practices included. Its result has the findings, and the rules that the page meets.
const audit = `axe.run(document, {resultTypes: ["violations"], preload: false}).then((result) => ({
  met: result.passes.map((rule) => rule.id),
  found: result.violations.map((rule) => rule.impact + ": " + rule.id + ": " + rule.help + rule.nodes.map((n) => "\n" + n.html + "\n" + n.failureSummary)),
}))`

// flaws returns what axe-core does not examine: header cells of tables without a scope, and content that is wider than the window.
const flaws = `(() => {
  const found = [...document.querySelectorAll("th")].filter((e) => !e.scope).map((e) => "no scope: " + e.outerHTML);
  if (document.documentElement.scrollWidth > innerWidth) found.push("wider than the window: " + document.documentElement.scrollWidth + " > " + innerWidth);
  return found;
})()`

// twins returns the keys of details that others have, too: the state of details is kept by key when a page is updated.
const twins = `[...document.querySelectorAll("details")].map((e) => e.dataset.key).filter((key, i, all) => all.indexOf(key) !== i)`

// appearance emulates a width and a colour scheme.
func appearance(width int64, scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		if err != nil {
			return err
		}
		_, err = chromedp.EmulateViewport(width, 900)(ctx, t)
		return err
	})
}

// findings examines the page that a tab shows, in dark and light mode, on a phone and on a large screen.
func findings(page context.Context, name string) []string {
	GinkgoHelper()
	Expect(chromedp.Run(page, chromedp.Evaluate[chromedp.Void](axe))).Error().NotTo(HaveOccurred())
	var all []string
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 3840, 1280} {
			Expect(chromedp.Do(page, appearance(width, scheme))).To(Succeed())
			found, err := chromedp.Run(page, chromedp.Evaluate[[]string](flaws))
			Expect(err).NotTo(HaveOccurred())
			if width < 2000 { // at 3840 pixels, the content is the same
				result, err := chromedp.Run(page, chromedp.Evaluate[struct{ Met, Found []string }](audit, chromedp.EvalAwaitPromise))
				Expect(err).NotTo(HaveOccurred())
				Expect(result.Met).To(ContainElements("document-title", "html-has-lang", "page-has-heading-one"), name)
				found = append(found, result.Found...)
			}
			for _, finding := range found {
				all = append(all, fmt.Sprintf("%s, %d pixels, %s: %s", name, width, scheme, finding))
			}
		}
	}
	return all
}

// everyPage lists a path of each page, and of the forms that some have.
var everyPage = []string{
	"/", "/?state=NotAvailable&cluster=cluster&addon=kafka&reason=PlanFailed", "/?alike=cluster-05", "/?selector=" + url.QueryEscape("a=("), "/?cluster=none",
	"/addons/kafka", "/addons/kafka/history", "/addons/shop/history", "/clusters/cluster-01", "/clusters/cluster-02/addons/shop", "/clusters/cluster-01/instances/kafka",
	"/addons/kafka/what-if", "/clusters/cluster-01/instances/kafka/what-if?change=upgrade", "/clusters/cluster-04/instances/kafka/what-if",
	"/clusters", "/clusters?group=region", "/clusters?l=none", "/clusters?l=" + url.QueryEscape("a=(") + "&group=" + url.QueryEscape("<b>"), "/?group=region",
	"/search", "/search?q=a", "/search?q=none-has-this-name", "/search?q=" + strings.Repeat("long", 100),
	"/packages", "/packages/addon-packages/" + dashboard.Version, "/none",
}

var _ = Describe("Everyone can use", func() {
	It("every page", func() {
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		var found []string
		for _, path := range everyPage {
			open(page, address, path)
			found = append(found, findings(page, path)...)
		}
		Expect(found).To(BeEmpty())
	})

	It("the answer of an agent with logs", func() {
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		open(page, address, "/clusters/cluster-01/instances/kafka")
		_, err := chromedp.Run(page, chromedp.Evaluate[chromedp.Void](`for (const log of document.querySelectorAll("section[aria-labelledby=diagnosis] details")) log.open = true`))
		Expect(err).NotTo(HaveOccurred())
		Expect(chromedp.Run(page, chromedp.Text("section[aria-labelledby=diagnosis]"))).To(And(ContainSubstring("no answer yet"), ContainSubstring("FailedScheduling"),
			ContainSubstring("no space left on device"), ContainSubstring("It is empty")))
		Expect(findings(page, "a diagnosis")).To(BeEmpty())
		Expect(chromedp.Run(page, chromedp.Evaluate[[]string](twins))).To(BeEmpty(), "keys of details that are not unique")
	})

	It("suspensions and notices", func(ctx context.Context) {
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-05", Name: "resting"}}
		instance.Spec.OperatorVersion.Name, instance.Spec.Suspend = dashboard.Version, true
		Expect(hub.Create(ctx, instance)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, instance)).To(Succeed()) })
		Expect(environment.EditStatus(ctx, hub, instance, func(i *kudo.Instance) {
			meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{Type: kudo.ConditionDrifted, Status: metav1.ConditionTrue, Reason: kudo.ReasonDrifted,
				Message: "Deployment web/web: /spec/template/spec/containers/web/image is evil:latest instead of web:1.2 (by kubectl-edit)"})
		})).To(Succeed())
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		for _, path := range []string{"/", "/clusters/cluster-05", "/clusters/cluster-05/instances/resting"} {
			open(page, address, path)
			Eventually(content(page)).Should(And(ContainSubstring("kubectl addon resume resting --cluster cluster-05"), ContainSubstring("kubectl addon drift resting")))
			Expect(findings(page, path)).To(BeEmpty())
		}
	})

	It("graphs with versions, alternatives and clusters", func(ctx context.Context) {
		objects, err := dashboard.FillDrawn(ctx, hub)
		DeferCleanup(func(ctx context.Context) {
			for _, object := range objects {
				Expect(hub.Delete(ctx, object)).To(Succeed())
			}
		})
		Expect(err).NotTo(HaveOccurred())
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		for _, path := range []string{"/clusters/" + dashboard.Drawn, "/addons/forge"} {
			open(page, address, path)
			Expect(chromedp.Do(page, chromedp.WaitVisible("text.label"))).To(Succeed())
			Expect(findings(page, path)).To(BeEmpty())
		}
	})

	It("the matrix and the tables of 40 add-ons", func(ctx context.Context) {
		for i := range 40 {
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-05", Name: fmt.Sprintf("addon-%02d", i)}}
			Expect(hub.Create(ctx, addOn)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, addOn)).To(Succeed()) })
		}
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		for _, path := range []string{"/", "/clusters/cluster-05"} {
			open(page, address, path)
			Eventually(content(page)).Should(ContainSubstring("addon-39"))
			Expect(findings(page, path)).To(BeEmpty())
		}
	})

	It("the pages that ask users to sign in", func(ctx context.Context) {
		page := tab()
		local, _ := serve()
		Expect(chromedp.Do(page, front, chromedp.Navigate(local+"/"), chromedp.WaitVisible("[role=alert]"))).To(Succeed())
		Expect(findings(page, "a page without a session")).To(BeEmpty())

		address := serveUsers(env.Config, anywhere).address
		Expect(chromedp.Do(page, chromedp.Navigate(address+"/"), chromedp.WaitVisible("#bearer"))).To(Succeed())
		Expect(findings(page, "sign-in")).To(BeEmpty())
		Expect(chromedp.Do(page, chromedp.SetValue("#bearer", "wrong"), chromedp.Click("form.entrance button"), chromedp.WaitVisible("[role=alert]"))).To(Succeed())
		Expect(findings(page, "sign-in with a wrong token")).To(BeEmpty())
		signIn(page, address, user(ctx, "accessible", "", dashboard.Reading).Token)
		Expect(findings(page, "Fleet of a user who can sign out")).To(BeEmpty())
	})
})
