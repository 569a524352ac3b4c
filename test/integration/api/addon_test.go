package api

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

var _ = Describe("ClusterManagementAddOn", func() {
	create := func(ctx SpecContext, spec string) (*unstructured.Unstructured, error) {
		made := clusterManagementAddOn("kafka", spec)
		err := server.Create(ctx, made)
		if err == nil {
			DeferCleanup(func(ctx SpecContext) { Expect(server.Delete(ctx, made)).To(Succeed()) })
		}
		return made, err
	}

	DescribeTable("is accepted with dependencies that are",
		func(ctx SpecContext, spec string, stored any) {
			made, err := create(ctx, spec)
			Expect(err).NotTo(HaveOccurred())
			Expect(field(made, "spec", "dependencies")).To(Equal(stored))
		},
		Entry("none", `{dependencies: []}`, []any{}),
		Entry("Required by default", `{dependencies: [{name: zookeeper}]}`,
			[]any{map[string]any{"name": "zookeeper", "type": "Required"}}),
		Entry("of both types, with a message, in the order declared",
			`{dependencies: [{name: zookeeper, type: Required}, {name: monitoring, type: Optional, message: No metrics.}]}`,
			[]any{
				map[string]any{"name": "zookeeper", "type": "Required"},
				map[string]any{"name": "monitoring", "type": "Optional", "message": "No metrics."},
			}),
	)

	It("is accepted without dependencies, and gets none", func(ctx SpecContext) {
		made, err := create(ctx, `{}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(field(made, "spec", "dependencies")).To(BeNil())
	})

	DescribeTable("is refused with a dependency",
		func(ctx SpecContext, spec, place string) {
			_, err := create(ctx, spec)
			Expect(err).To(MatchError(ContainSubstring(place)))
		},
		Entry("without a name", `{dependencies: [{type: Optional}]}`, "spec.dependencies[0].name: Required value"),
		Entry("of an empty name", `{dependencies: [{name: ""}]}`, "spec.dependencies[0].name"),
		Entry("of an unknown type", `{dependencies: [{name: zookeeper, type: Nice}]}`, "spec.dependencies[0].type"),
		Entry("that is there twice", `{dependencies: [{name: zookeeper}, {name: zookeeper, type: Optional}]}`,
			"spec.dependencies[1]: Duplicate value"),
	)

	It("keeps everything else of OCM's type beside the dependencies", func(ctx SpecContext) {
		_, err := create(ctx, `{
  addOnMeta: {displayName: Kafka}, installStrategy: {type: Manual},
  supportedConfigs: [{group: kudo.dev, resource: operatorversions, defaultConfig: {namespace: packages, name: kafka-1.3.1}}],
  dependencies: [{name: zookeeper}]
}`)
		Expect(err).NotTo(HaveOccurred())

		typed := &addonv1alpha1.ClusterManagementAddOn{}
		Expect(server.Get(ctx, client.ObjectKey{Name: "kafka"}, typed)).To(Succeed())
		Expect(typed.Spec.AddOnMeta.DisplayName).To(Equal("Kafka"))
		Expect(typed.Spec.InstallStrategy.Type).To(Equal("Manual"))
		Expect(typed.Spec.SupportedConfigs).To(HaveLen(1))
		Expect(typed.Spec.SupportedConfigs[0].Resource).To(Equal(addonv1alpha1.ResourceOperatorVersions))
		Expect(typed.Spec.Dependencies).To(Equal([]addonv1alpha1.AddonDependency{
			{Name: "zookeeper", Type: addonv1alpha1.DependencyTypeRequired},
		}))
	})

	It("has dependencies that several writers may own, each by its name", func(ctx SpecContext) {
		apply := func(manager, dependencies string) *unstructured.Unstructured {
			wanted := clusterManagementAddOn("shared", `{dependencies: `+dependencies+`}`)
			Expect(server.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner(manager))).To(Succeed())
			return wanted
		}
		stored := apply("first", `[{name: zookeeper}]`)
		DeferCleanup(func(ctx SpecContext) { Expect(server.Delete(ctx, stored)).To(Succeed()) })
		Expect(field(apply("second", `[{name: monitoring, type: Optional}]`), "spec", "dependencies")).To(HaveLen(2))
		Expect(field(apply("second", `[]`), "spec", "dependencies")).To(Equal(
			[]any{map[string]any{"name": "zookeeper", "type": "Required"}}))
	})
})

var _ = Describe("ManagedClusterAddOn", func() {
	It("has conditions that several writers own, each by its type", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		stored := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kafka"}}
		Expect(server.Create(ctx, stored)).To(Succeed())
		apply := func(manager, condition string) {
			wanted := object(`status: {conditions: [{type: ` + condition +
				`, status: "True", reason: Because, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`)
			wanted.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))
			wanted.SetNamespace(namespace)
			wanted.SetName("kafka")
			Expect(server.SubResource("status").Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted),
				client.FieldOwner(manager))).To(Succeed())
		}
		apply("hub", addonv1alpha1.ConditionDegraded)
		apply("agent", addonv1alpha1.ConditionAvailable)

		Expect(server.Get(ctx, client.ObjectKeyFromObject(stored), stored)).To(Succeed())
		Expect(stored.Status.Conditions).To(HaveLen(2))
	})
})
