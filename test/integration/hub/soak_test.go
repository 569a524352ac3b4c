package hub

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("The time for which an add-on has to be healthy after a plan", func() {
	BeforeEach(runWithoutWebhooks)

	probeIn := func(cluster string) *kudo.Instance {
		probe := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "probe"}}
		probe.Spec.OperatorVersion.Name = "none"
		return probe
	}
	healthyFor := func(instance *kudo.Instance) func(g Gomega, ctx context.Context) time.Duration {
		spec := specOf(instance)
		return func(g Gomega, ctx context.Context) time.Duration {
			if required := spec(g, ctx).HealthyFor; required != nil {
				return required.Duration
			}
			return 0
		}
	}
	annotate := func(ctx context.Context, object client.Object, value string) {
		GinkgoHelper()
		patch := client.MergeFrom(object.DeepCopyObject().(client.Object))
		annotations := map[string]string{}
		if value != "" {
			annotations[kudo.AnnotationHealthyFor] = value
		}
		object.SetAnnotations(annotations)
		Expect(server.Patch(ctx, object, patch)).To(Succeed())
	}

	It("reaches its Instances, whatever their users set, and a malformed one changes nothing and is named", func(ctx SpecContext) {
		f := newFleet()
		cluster := f.cluster(ctx, "cluster")
		definition := f.define(ctx, "kafka", runs(f.push(ctx, "kafka", packages)))
		config := f.variables(ctx, "config", cluster, "TEXT", "one")
		kafka := f.enable(ctx, cluster, "kafka", withConfigs(config))
		own := instanceOf(kafka)
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Status", "True"))
		Expect(specOf(own)(Default, ctx).HealthyFor).To(BeNil())
		annotate(ctx, definition, "10m")
		Eventually(healthyFor(own)).WithContext(ctx).Should(Equal(10 * time.Minute))

		By("a config, which has precedence")
		annotate(ctx, config, "1h")
		Eventually(healthyFor(own)).WithContext(ctx).Should(Equal(time.Hour))

		By("a user who changes it")
		edit(ctx, own, func(i *kudo.Instance) { i.Spec.HealthyFor = &metav1.Duration{Duration: time.Second} })
		Eventually(healthyFor(own)).WithContext(ctx).Should(Equal(time.Hour))

		By("a malformed one")
		annotate(ctx, config, "soon")
		Eventually(eventsOn(kafka)).WithContext(ctx).Should(ContainElement(ContainSubstring(
			"annotation kudo.dev/healthy-for of AddOnDeploymentConfig " + cluster + "/" + config.Name + " is malformed, and no rollout counts a cluster as done: ")))
		Expect(healthyFor(own)(Default, ctx)).To(Equal(time.Hour))

		By("removing all")
		annotate(ctx, config, "")
		annotate(ctx, definition, "")
		Eventually(healthyFor(own)).WithContext(ctx).Should(BeZero())
		Eventually(resolvedOf(own)).WithContext(ctx).Should(HaveField("Status", "True"))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Message", Not(ContainSubstring("annotation"))), "it says so no more")
		f.writesNothing(ctx, cluster)
	})

	It("is at most a day", func(ctx SpecContext) {
		f := newFleet()
		cluster := f.cluster(ctx, "cluster")
		for value, valid := range map[string]bool{"24h": true, "0s": true, "24h0m1s": false, "-1s": false, "soon": false} {
			probe := probeIn(cluster)
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"healthyFor":"`+value+`"}}`))
			Expect(client.IgnoreAlreadyExists(server.Create(ctx, probe))).To(Succeed())
			if err := server.Patch(ctx, probe, patch); valid {
				Expect(err).NotTo(HaveOccurred(), value)
			} else {
				Expect(err).To(HaveOccurred(), value)
			}
		}
	})

	It("blocks the Instance while the CRD on the hub is too old to store it", func(ctx SpecContext) {
		definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "instances.kudo.dev"}}
		Expect(server.Get(ctx, client.ObjectKeyFromObject(definition), definition)).To(Succeed())
		current := definition.DeepCopy()
		restore := func(ctx context.Context) {
			Expect(server.Get(ctx, client.ObjectKeyFromObject(definition), definition)).To(Succeed())
			definition.Spec = *current.Spec.DeepCopy()
			Expect(server.Update(ctx, definition)).To(Succeed())
		}
		DeferCleanup(restore)
		for v := range definition.Spec.Versions {
			delete(definition.Spec.Versions[v].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "healthyFor")
		}
		Expect(server.Update(ctx, definition)).To(Succeed())
		f := newFleet()
		cluster := f.cluster(ctx, "cluster")
		stored := func(g Gomega) *metav1.Duration { // according to the schema that the API server uses
			probe := probeIn(cluster)
			probe.Spec.HealthyFor = &metav1.Duration{Duration: time.Second}
			g.Expect(server.Create(ctx, probe, client.DryRunAll)).To(Succeed())
			return probe.Spec.HealthyFor
		}
		Eventually(stored).Should(BeNil())
		kept := f.define(ctx, "kafka", runs(f.push(ctx, "kafka", packages)))
		annotate(ctx, kept, "10m")
		kafka := f.enable(ctx, cluster, "kafka")
		Eventually(conditionOf(kafka, addonv1alpha1.ConditionResolved)).WithContext(ctx).Should(And(HaveField("Status", "False"),
			HaveField("Reason", kudo.ReasonFieldNotStored), HaveField("Message", And(HavePrefix("CustomResourceDefinition instances.kudo.dev on the hub lacks a field "+
				"of the add-on's Instance: apply crds/ of the version of addon-manager on the hub: "), ContainSubstring("healthyFor")))))

		By("applying the current one")
		restore(ctx)
		Eventually(stored).ShouldNot(BeNil())
		runWithoutWebhooks()
		Eventually(healthyFor(instanceOf(kafka))).WithContext(ctx).Should(Equal(10 * time.Minute))
	})
})
