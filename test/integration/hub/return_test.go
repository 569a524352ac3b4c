package hub

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("What happens if the upgrade of an add-on fails", func() {
	BeforeEach(runWithoutWebhooks)

	It("reaches its Instances, whatever their users set, and a malformed policy is named", func(ctx SpecContext) {
		f := newFleet()
		cluster := f.cluster(ctx, "cluster")
		definition := f.define(ctx, "kafka", runs(f.push(ctx, "kafka", packages)))
		config := f.variables(ctx, "config", cluster, "TEXT", "one")
		kafka := f.enable(ctx, cluster, "kafka", withConfigs(config))
		own := instanceOf(kafka)
		policy := func(g Gomega, ctx context.Context) kudo.FailurePolicy { return specOf(own)(g, ctx).OnFailure }
		onDefinition := func(value string) {
			GinkgoHelper()
			edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) {
				d.Annotations = map[string]string{kudo.AnnotationOnFailure: value}
			})
		}
		onConfig := func(annotations map[string]string) {
			GinkgoHelper()
			edit(ctx, config, func(c *addonv1alpha1.AddOnDeploymentConfig) { c.Annotations = annotations })
		}
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Status", "True"))
		Expect(policy(Default, ctx)).To(BeEmpty())
		onDefinition("Return")
		Eventually(policy).WithContext(ctx).Should(Equal(kudo.FailureReturn))

		By("a config, which has precedence")
		onConfig(map[string]string{kudo.AnnotationOnFailure: "Stop"})
		Eventually(policy).WithContext(ctx).Should(Equal(kudo.FailureStop))

		By("a user who changes it")
		edit(ctx, own, func(i *kudo.Instance) { i.Spec.OnFailure = kudo.FailureReturn })
		Eventually(policy).WithContext(ctx).Should(Equal(kudo.FailureStop))

		By("a malformed one, which stops")
		onConfig(map[string]string{kudo.AnnotationOnFailure: "return"})
		Eventually(policy).WithContext(ctx).Should(BeEmpty())
		Eventually(eventsOn(kafka)).WithContext(ctx).Should(ContainElement(ContainSubstring("annotation kudo.dev/on-failure of AddOnDeploymentConfig " +
			cluster + "/" + config.Name + ` is "return", and an upgrade that fails stops: set it to Stop or Return, or remove it`)))

		By("removing all")
		onConfig(nil)
		Eventually(policy).WithContext(ctx).Should(Equal(kudo.FailureReturn))
		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) { d.Annotations = nil })
		Eventually(policy).WithContext(ctx).Should(BeEmpty())
		Eventually(resolvedOf(own)).WithContext(ctx).Should(HaveField("Status", "True"))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Message", Not(ContainSubstring("annotation"))), "it says so no more")
		f.writesNothing(ctx, cluster)
	})
})
