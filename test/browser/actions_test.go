package browser

import (
	"context"
	"fmt"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// press presses the button with a text, and waits for the page with a heading.
func press(page context.Context, button, heading string) {
	GinkgoHelper()
	Expect(chromedp.Do(page, chromedp.Click(fmt.Sprintf(`//button[normalize-space()=%q]`, button)),
		chromedp.WaitVisible(fmt.Sprintf(`//h1[normalize-space()=%q]`, heading)))).To(Succeed())
}

var _ = Describe("The pages of actions", func() {
	It("preview, run and cancel a plan", func(ctx context.Context) {
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		requested := func() string {
			GinkgoHelper()
			instance := &kudo.Instance{}
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: "cluster-06", Name: "kafka"}, instance)).To(Succeed())
			return instance.Spec.PlanExecution.PlanName
		}
		preview := func() {
			GinkgoHelper()
			Expect(chromedp.Do(page, chromedp.SetValue("select[name=plan]", "backup"))).To(Succeed())
			press(page, "Run…", "Run plan backup of kafka on cluster-06")
		}
		open(page, address, "/clusters/cluster-06/instances/kafka")
		preview()
		Expect(content(page)()).To(And(ContainSubstring("Step dump"), ContainSubstring("kubectl addon plan run kafka backup --cluster cluster-06")))
		Expect(findings(page, "the preview of a plan")).To(BeEmpty())
		Expect(chromedp.Do(page, chromedp.Click(`//a[text()="Back"]`), chromedp.WaitVisible("#live.live"))).To(Succeed())
		Expect(requested()).To(BeEmpty())

		preview()
		press(page, "Run plan backup", "kafka on cluster-06")
		Expect(requested()).To(Equal("backup"))
		Expect(chromedp.Do(page, chromedp.WaitVisible("#live.live"))).To(Succeed())
		press(page, "Cancel plan backup…", "Cancel plan backup of kafka on cluster-06")
		Expect(content(page)()).To(ContainSubstring("Plan backup is no longer requested."))
		Expect(findings(page, "the preview of a cancellation")).To(BeEmpty())
		press(page, "Cancel plan backup", "kafka on cluster-06")
		Expect(requested()).To(BeEmpty())
	})

	It("preview how disabling an add-on affects others, and refuse a stale preview", func(ctx context.Context) {
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		logging := &addonv1alpha1.ManagedClusterAddOn{}
		logging.Namespace, logging.Name = "cluster-07", "logging"
		open(page, address, "/clusters/cluster-07/addons/kafka")
		press(page, "Disable…", "Disable kafka on cluster-07")
		Expect(content(page)()).To(And(ContainSubstring("add-on logging becomes unavailable"), ContainSubstring("kubectl addon disable kafka --cluster cluster-07")))
		Expect(findings(page, "the preview of disabling an add-on")).To(BeEmpty())

		Expect(hub.Delete(ctx, logging)).To(Succeed())
		press(page, "Disable kafka anyway", "Disable kafka on cluster-07")
		Expect(chromedp.Do(page, chromedp.WaitVisible("main > [role=alert]"))).To(Succeed())
		Expect(content(page)()).To(And(ContainSubstring("Nothing was changed"), Not(ContainSubstring("logging"))))
		Expect(findings(page, "a preview that is shown again")).To(BeEmpty())
		press(page, "Disable kafka anyway", "kafka on cluster-07")
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		err := hub.Get(ctx, client.ObjectKey{Namespace: "cluster-07", Name: "kafka"}, addOn)
		Expect(apierrors.IsNotFound(err) || !addOn.DeletionTimestamp.IsZero()).To(BeTrue())
		Eventually(content(page)).Should(ContainSubstring("not enabled"))
	})

	It("preview an add-on that is enabled, and a parameter that is changed", func(ctx context.Context) {
		const cluster = "cluster-12"
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		open(page, address, "/clusters/"+cluster)
		press(page, "Enable…", "Enable shop on "+cluster)
		Expect(content(page)()).To(ContainSubstring("kubectl addon enable shop --cluster " + cluster))
		Expect(findings(page, "the preview of enabling an add-on")).To(BeEmpty())
		press(page, "Enable shop", "shop on "+cluster)
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "shop"}, &addonv1alpha1.ManagedClusterAddOn{})).To(Succeed())

		open(page, address, "/clusters/"+cluster+"/instances/kafka")
		Expect(chromedp.Do(page, chromedp.SetValue("select[name=parameter]", "BROKERS"), chromedp.SetValue("textarea[name=value]", "5"))).To(Succeed())
		press(page, "Change parameter…", "Change parameters of kafka on "+cluster)
		Expect(content(page)()).To(And(ContainSubstring(`Parameter BROKERS: "3" → "5"`), ContainSubstring("kubectl addon update kafka --cluster "+cluster+" -p BROKERS=5")))
		Expect(findings(page, "the preview of changing a parameter")).To(BeEmpty())
		press(page, "Change parameters", "kafka on "+cluster)
		config := &addonv1alpha1.AddOnDeploymentConfig{}
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "kafka-parameters"}, config)).To(Succeed())
		Expect(config.Spec.CustomizedVariables).To(HaveExactElements(HaveField("Value", "5")))
	})
})
