package hub

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
})
