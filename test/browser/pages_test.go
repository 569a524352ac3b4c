package browser

import (
	"context"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/dashboard"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// everyPage lists a path of each page.
var everyPage = []string{
	"/", "/?state=NotAvailable&cluster=cluster", "/addons/kafka", "/clusters/cluster-01", "/clusters/cluster-02/addons/shop",
	"/clusters/cluster-01/instances/kafka", "/packages", "/packages/addon-packages/" + dashboard.Version, "/none",
}

// flaws returns what is wrong with a page for those who use it without a mouse, without sight, or on a small screen.
const flaws = `(() => {
  const found = [];
  const luminance = (c) => {
    const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const color = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = color(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c.slice(0, 3);
    }
    return [255, 255, 255];
  };
  if (document.querySelectorAll("h1").length !== 1) found.push("there is not one h1");
  if (!document.documentElement.lang) found.push("no language");
  if (!document.querySelector("main")) found.push("no main");
  let last = 0;
  document.querySelectorAll("h1,h2,h3").forEach((h) => {
    const level = Number(h.nodeName[1]);
    if (level > last + 1) found.push("heading level " + level + " after " + last + ": " + h.textContent);
    last = level;
  });
  document.querySelectorAll("a,button").forEach((e) => { if (!(e.textContent.trim() || e.getAttribute("aria-label"))) found.push("no name: " + e.outerHTML); });
  document.querySelectorAll("input:not([type=hidden]),select").forEach((e) => { if (!e.labels.length) found.push("no label: " + e.outerHTML); });
  document.querySelectorAll("th").forEach((e) => { if (!e.scope) found.push("no scope: " + e.outerHTML); });
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  ids.forEach((id, i) => { if (ids.indexOf(id) !== i) found.push("id twice: " + id); });
  document.querySelectorAll("[aria-labelledby]").forEach((e) => { if (!document.getElementById(e.getAttribute("aria-labelledby"))) found.push("label is missing: " + e.getAttribute("aria-labelledby")); });
  document.querySelectorAll("body *").forEach((e) => {
    if (e.closest("svg") || ![...e.childNodes].some((n) => n.nodeType === 3 && n.nodeValue.trim()) || !e.offsetParent) return;
    const [a, b] = [luminance(color(getComputedStyle(e).color).slice(0, 3)), luminance(ground(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push("contrast " + ((a + 0.05) / (b + 0.05)).toFixed(2) + ": " + e.outerHTML.slice(0, 120));
  });
  if (document.documentElement.scrollWidth > innerWidth) found.push("wider than the window: " + document.documentElement.scrollWidth + " > " + innerWidth);
  return found;
})()`

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

var _ = Describe("A browser", func() {
	It("shows every page so that everyone can use it, in dark and light, from 360 pixels to 4K", func() {
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		for _, path := range everyPage {
			for _, width := range []int64{360, 1280, 3840} {
				for _, scheme := range []string{"light", "dark"} {
					Expect(chromedp.Do(page, appearance(width, scheme), chromedp.Navigate(address+path), chromedp.WaitVisible("h1"))).To(Succeed())
					found, err := chromedp.Run(page, chromedp.Evaluate[[]string](flaws))
					Expect(err).NotTo(HaveOccurred())
					Expect(found).To(BeEmpty(), "%s, %d pixels, %s", path, width, scheme)
				}
			}
		}
	})

	It("shows a change within a second, and keeps focus and scrolling", func(ctx context.Context) {
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		const path = "/clusters/cluster-06/addons/ingress"
		Expect(chromedp.Do(page, chromedp.Navigate(address+path), chromedp.WaitVisible("#live.live"))).To(Succeed())
		_, err := chromedp.Run(page, chromedp.Evaluate[bool](`window.kept = document.querySelector("main h1 a"); kept.focus(); true`))
		Expect(err).NotTo(HaveOccurred())
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-06", Name: "ingress"}}
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(addOn), addOn)).To(Succeed())
		begun := time.Now()
		Expect(environment.EditStatus(ctx, hub, addOn, func(a *addonv1alpha1.ManagedClusterAddOn) {
			meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
				Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: "ProbeUnavailable", Message: "no route",
			})
		})).To(Succeed())
		Eventually(func() (string, error) { return chromedp.Run(page, chromedp.Text("main")) }, 20*time.Second, 50*time.Millisecond).Should(ContainSubstring("no route"))
		GinkgoWriter.Println("the change was shown after", time.Since(begun))
		Expect(chromedp.Run(page, chromedp.Evaluate[bool](`document.activeElement === window.kept`))).To(BeTrue())
	})

	It("runs no script that a user wrote, whatever the text", func(ctx context.Context) {
		const evil = `"><script>window.taken=1</script><img src=x onerror="window.taken=1"><svg onload="window.taken=1">{{.}}`
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-07", Name: "monitoring"}}
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(addOn), addOn)).To(Succeed())
		Expect(environment.EditStatus(ctx, hub, addOn, func(a *addonv1alpha1.ManagedClusterAddOn) {
			meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: "Evil", Message: evil})
		})).To(Succeed())
		instance := dashboard.Instance("cluster-07", false)
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
		Expect(environment.Edit(ctx, hub, instance, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"BROKERS": evil, evil: evil} })).To(Succeed())
		Expect(environment.EditStatus(ctx, hub, instance, func(i *kudo.Instance) {
			deploy := i.Status.PlanStatus["deploy"]
			deploy.Message, deploy.Phases[0].Message, deploy.Phases[0].Steps[0].Message = evil, evil, evil
			deploy.Phases[0].Name, deploy.Phases[0].Steps[0].Name, deploy.Phases[0].Steps[0].Tasks[0].Message = evil, evil, evil
			i.Status.PlanStatus["deploy"] = deploy
			i.Status.Inventory[0].Name = evil
		})).To(Succeed())
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		for _, path := range []string{"/", "/?cluster=" + "%22%3E%3Cscript%3Ewindow.taken%3D1%3C%2Fscript%3E", "/clusters/cluster-07", "/clusters/cluster-07/addons/monitoring", "/clusters/cluster-07/instances/kafka"} {
			Expect(chromedp.Do(page, chromedp.Navigate(address+path), chromedp.WaitVisible("#live.live"))).To(Succeed())
			Expect(chromedp.Run(page, chromedp.Evaluate[bool](`window.taken === undefined && !document.querySelector("main script, main img")`))).To(BeTrue(), path)
		}
		Expect(chromedp.Run(page, chromedp.Text("main"))).To(ContainSubstring("window.taken=1"))
	})

	It("shows that the dashboard is gone, and asks to sign in once it is back", func() {
		address, gate, stop := serveUntil()
		page := tab()
		enter(page, address, gate)
		stop()
		Expect(chromedp.Do(page, chromedp.WaitVisible("#live.stale"))).To(Succeed())
		Expect(chromedp.Run(page, chromedp.Text("#live"))).To(HavePrefix("Reconnecting: stale since "))
		Expect(chromedp.Run(page, chromedp.Text("h1"))).To(Equal("Fleet"))
		again, _, _ := serveAt(address)
		Expect(again).To(Equal(address))
		Expect(chromedp.Do(page, chromedp.WaitVisible(`//h1[text()="Sign in"]`))).To(Succeed())
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
