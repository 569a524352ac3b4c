package hub

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("The maintenance windows of a cluster", func() {
	BeforeEach(runWithoutWebhooks)

	annotate := func(ctx context.Context, cluster string, annotations map[string]string) {
		GinkgoHelper()
		stored := managedCluster(cluster)
		Expect(server.Get(ctx, client.ObjectKeyFromObject(stored), stored)).To(Succeed())
		stored.SetAnnotations(annotations)
		Expect(server.Update(ctx, stored)).To(Succeed())
	}

	It("reach its Instances as they are, even if they are malformed, and are removed", func(ctx SpecContext) {
		f := newFleet()
		cluster := f.cluster(ctx, "cluster")
		f.define(ctx, "kafka", runs(f.push(ctx, "kafka", packages)))
		instance := instanceOf(f.enable(ctx, cluster, "kafka"))
		found := func() kudo.InstanceSpec {
			GinkgoHelper()
			current := &kudo.Instance{}
			if err := server.Get(ctx, client.ObjectKeyFromObject(instance), current); err != nil {
				return kudo.InstanceSpec{ClusterWindows: err.Error()}
			}
			return current.Spec
		}
		Eventually(found).Should(HaveField("ClusterWindows", ""))
		const windows = "allow: [{from: 22:00, to: 04:00}]"
		annotate(ctx, cluster, map[string]string{kudo.AnnotationWindows: windows})
		Eventually(found).Should(HaveField("ClusterWindows", windows))
		annotate(ctx, cluster, map[string]string{kudo.AnnotationWindows: "always"})
		Eventually(found).Should(HaveField("ClusterWindows", "always"))
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", string(metav1.ConditionTrue)))
		annotate(ctx, cluster, nil)
		Eventually(found).Should(HaveField("ClusterWindows", ""))
	})

	It("of an AddOnDeploymentConfig reach the Instances of its add-ons, whatever their users set, and a malformed one is named", func(ctx SpecContext) {
		f := newFleet()
		cluster := f.cluster(ctx, "cluster")
		version := f.push(ctx, "kafka", packages)
		f.define(ctx, "kafka", runs(version))
		first, second := f.variables(ctx, "first", cluster, "TEXT", "one"), f.variables(ctx, "second", cluster, "COUNT", "2")
		set := func(config *addonv1alpha1.AddOnDeploymentConfig, windows string) {
			GinkgoHelper()
			edit(ctx, config, func(c *addonv1alpha1.AddOnDeploymentConfig) {
				c.Annotations = map[string]string{kudo.AnnotationWindows: windows}
			})
		}
		const nights, freeze = "allow: [{from: 22:00, to: 04:00}]", "freeze: [{from: 2026-12-20, to: 2027-01-04}]"
		set(first, nights)
		kafka := f.enable(ctx, cluster, "kafka", withConfigs(first, second))
		spec := specOf(instanceOf(kafka))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Status", "True"))
		Expect(spec(Default, ctx).Windows).To(Equal(nights))

		By("another config that has some, too")
		set(second, freeze)
		Eventually(spec).WithContext(ctx).Should(HaveField("Windows", freeze))

		By("a user who removes them")
		edit(ctx, instanceOf(kafka), func(i *kudo.Instance) { i.Spec.Windows = "" })
		Eventually(spec).WithContext(ctx).Should(HaveField("Windows", freeze))

		By("a malformed one")
		set(second, "always")
		Eventually(spec).WithContext(ctx).Should(HaveField("Windows", "always"))
		Eventually(eventsOn(kafka)).WithContext(ctx).Should(ContainElement(ContainSubstring(
			"annotation kudo.dev/maintenance-windows of the AddOnDeploymentConfig is malformed, and no plan starts: ")))

		By("removing all")
		for _, config := range []*addonv1alpha1.AddOnDeploymentConfig{first, second} {
			edit(ctx, config, func(c *addonv1alpha1.AddOnDeploymentConfig) { c.Annotations = nil })
		}
		Eventually(spec).WithContext(ctx).Should(HaveField("Windows", ""))
		Eventually(resolvedOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("Status", "True"))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Message", Not(ContainSubstring("annotation"))), "it says so no more")
		f.writesNothing(ctx, cluster)
	})
})
