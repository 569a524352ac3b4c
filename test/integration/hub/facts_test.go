package hub

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// describeCluster sets the labels, the version and the claims of a ManagedCluster.
func describeCluster(ctx context.Context, cluster string, labels map[string]string, version string, claims ...any) {
	GinkgoHelper()
	stored := managedCluster(cluster)
	Expect(server.Get(ctx, client.ObjectKeyFromObject(stored), stored)).To(Succeed())
	stored.SetLabels(labels)
	Expect(server.Update(ctx, stored)).To(Succeed())
	Expect(unstructured.SetNestedSlice(stored.Object, claims, "status", "clusterClaims")).To(Succeed())
	Expect(unstructured.SetNestedField(stored.Object, version, "status", "version", "kubernetes")).To(Succeed())
	Expect(server.Status().Update(ctx, stored)).To(Succeed())
}

func claim(name, value string) any { return map[string]any{"name": name, "value": value} }

var _ = Describe("The facts of a cluster", func() {
	var (
		f       fleet
		cluster string
	)
	BeforeEach(runWithoutWebhooks)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
	})
	describe := func(ctx context.Context, labels map[string]string, claims ...any) {
		GinkgoHelper()
		describeCluster(ctx, cluster, labels, "v1.37.2", claims...)
	}
	// describing returns an OperatorVersion whose template uses the facts.
	describing := func(ctx context.Context, name string) *kudo.OperatorVersion {
		GinkgoHelper()
		version := f.push(ctx, name, packages)
		used := version.DeepCopy()
		used.ObjectMeta = metav1.ObjectMeta{Namespace: version.Namespace, Name: version.Name + "-facts"}
		used.Spec.Templates["config.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}\n" +
			"data:\n  text: {{ .Params.TEXT }}{{ .Params.COUNT }}\n  region: {{ index .Cluster.Labels \"region\" | quote }}\n"
		Expect(server.Create(ctx, used)).To(Succeed())
		return used
	}
	isResolved := func(i *kudo.Instance) func(Gomega) bool {
		return func(g Gomega) bool {
			current := &kudo.Instance{}
			g.Expect(server.Get(context.Background(), client.ObjectKeyFromObject(i), current)).To(Succeed())
			for _, c := range current.Status.Conditions {
				if c.Type == kudo.ConditionResolved {
					return c.Status == metav1.ConditionTrue && c.ObservedGeneration == current.Generation
				}
			}
			return false
		}
	}

	It("reach the Instances whose templates use them, before these are resolved, and no others", func(ctx SpecContext) {
		describe(ctx, map[string]string{"region": "eu", "feature.open-cluster-management.io/addon-x": "available"}, claim("id", "a: {b"))
		uses, plain := describing(ctx, "kafka"), f.push(ctx, "plain", packages)
		f.define(ctx, "kafka", runs(uses))
		f.define(ctx, "plain", runs(plain))
		kafka, other := instanceOf(f.enable(ctx, cluster, "kafka")), instanceOf(f.enable(ctx, cluster, "plain"))
		own := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "own"}, Spec: kudo.InstanceSpec{
			OperatorVersion: corev1.ObjectReference{Namespace: packages, Name: uses.Name}, InstallNamespace: "own",
			Cluster: &kudo.ClusterFacts{Name: "forged"},
		}}
		Expect(server.Create(ctx, own)).To(Succeed())
		want := &kudo.ClusterFacts{Name: cluster, Labels: map[string]string{"region": "eu"}, Claims: map[string]string{"id": "a: {b"}}
		for _, i := range []*kudo.Instance{kafka, other, own} {
			Eventually(isResolved(i)).Should(BeTrue())
		}
		Expect(get(ctx, kafka).Spec.Cluster).To(Equal(want))
		Expect(get(ctx, own).Spec.Cluster).To(Equal(want))
		Expect(get(ctx, other).Spec.Cluster).To(BeNil())
		untouched := get(ctx, other).ResourceVersion

		By("a change of what is no fact")
		before := get(ctx, kafka).ResourceVersion
		describe(ctx, map[string]string{"region": "eu", "feature.open-cluster-management.io/addon-x": "unhealthy"}, claim("id", "a: {b"))
		Consistently(func() string { return get(ctx, kafka).ResourceVersion }, "500ms").Should(Equal(before))

		By("a change of facts, which is written once")
		generation := get(ctx, kafka).Generation
		describe(ctx, map[string]string{"region": "us"}, claim("id", "a: {b"))
		Eventually(func() string { return get(ctx, kafka).Spec.Cluster.Labels["region"] }).Should(Equal("us"))
		Eventually(isResolved(kafka)).Should(BeTrue())
		Eventually(isResolved(own)).Should(BeTrue())
		Expect(get(ctx, kafka).Generation).To(Equal(generation + 1))
		Expect(get(ctx, other).ResourceVersion).To(Equal(untouched))

		By("a user who sets others")
		edit(ctx, own, func(i *kudo.Instance) { i.Spec.Cluster.Labels["region"] = "moon" })
		Eventually(func() string { return get(ctx, own).Spec.Cluster.Labels["region"] }).Should(Equal("us"))
		Eventually(isResolved(own)).Should(BeTrue())

		By("more labels than can be passed on")
		many := map[string]string{}
		for n := range 65 {
			many[fmt.Sprintf("l%d", n)] = "x"
		}
		describe(ctx, many)
		Eventually(resolvedOf(own)).WithContext(ctx).Should(Equal(seen{"False", "ClusterFactsInvalid", fmt.Sprintf(
			`ManagedCluster %q cannot be described to templates of OperatorVersion %s/%s, which use .Cluster: it has more than 64 labels: remove some`,
			cluster, packages, uses.Name)}))
		Expect(get(ctx, own).Spec.Cluster.Labels).To(Equal(map[string]string{"region": "us"}))
		describe(ctx, nil)
		Eventually(isResolved(own)).Should(BeTrue())
		Eventually(isResolved(kafka)).Should(BeTrue())
		Expect(get(ctx, own).Spec.Cluster).To(Equal(&kudo.ClusterFacts{Name: cluster}))

		By("another version, which does not use them")
		edit(ctx, own, func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = plain.Name })
		Eventually(func() *kudo.ClusterFacts { return get(ctx, own).Spec.Cluster }).Should(BeNil())
		Eventually(isResolved(own)).Should(BeTrue())
		f.writesNothing(ctx, cluster)
	})

	It("block an Instance while the CRD on the hub is too old to store them", func(ctx SpecContext) {
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
			delete(definition.Spec.Versions[v].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "cluster")
		}
		Expect(server.Update(ctx, definition)).To(Succeed())
		describe(ctx, map[string]string{"region": "eu"})
		uses := describing(ctx, "kafka")
		stored := func(g Gomega) *kudo.ClusterFacts { // according to the schema that the API server uses
			probe := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "probe"}}
			probe.Spec.OperatorVersion.Name, probe.Spec.Cluster = "none", &kudo.ClusterFacts{Name: "x"}
			g.Expect(server.Create(ctx, probe, client.DryRunAll)).To(Succeed())
			return probe.Spec.Cluster
		}
		Eventually(stored).Should(BeNil())
		f.define(ctx, "kafka", runs(uses))
		kafka := instanceOf(f.enable(ctx, cluster, "kafka"))
		Eventually(exists(kafka)).WithContext(ctx).Should(BeTrue())
		Eventually(resolvedOf(kafka)).WithContext(ctx).Should(Equal(seen{"False", "FieldNotStored", fmt.Sprintf(
			"CustomResourceDefinition instances.kudo.dev on the hub has no field spec.cluster, and templates of OperatorVersion %s/%s use .Cluster: "+
				"apply crds/ of the version of addon-manager on the hub", packages, uses.Name)}))
		written := get(ctx, kafka).ResourceVersion
		Consistently(func() string { return get(ctx, kafka).ResourceVersion }, "1s").Should(Equal(written))

		By("applying the current one")
		restore(ctx)
		Eventually(stored).ShouldNot(BeNil())
		runWithoutWebhooks() // else the API server serves its watches by the old schema for two more minutes
		Eventually(isResolved(kafka)).Should(BeTrue())
		Expect(get(ctx, kafka).Spec.Cluster).To(Equal(&kudo.ClusterFacts{Name: cluster, Labels: map[string]string{"region": "eu"}}))
	})

	It("are values in the parameter file of a child, as those of the start of its parent's plan", func(ctx SpecContext) {
		describe(ctx, map[string]string{"region": "eu"}, claim("id", "a: {b"))
		child := f.push(ctx, "child", cluster)
		parent := parentOf(child)
		parent.Spec.Tasks[0].Spec.ParameterFile = "child.yaml"
		parent.Spec.Templates = map[string]string{
			"child.yaml": "TEXT: '{{ .Cluster.Name }} {{ index .Cluster.Labels \"region\" }} {{ index .Cluster.Claims \"id\" }} {{ .Capabilities.KubeVersion.Minor }}'\n",
		}
		Expect(server.Create(ctx, parent)).To(Succeed())
		mine := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine"}}
		mine.Spec.OperatorVersion = corev1.ObjectReference{Namespace: parent.Namespace, Name: parent.Name}
		Expect(server.Create(ctx, mine)).To(Succeed())
		Eventually(isResolved(mine)).Should(BeTrue())
		deploys(ctx, mine, parent)
		describe(ctx, map[string]string{"region": "us"})
		created := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine." + child.Spec.Operator.Name}}
		Eventually(exists(created)).WithContext(ctx).Should(BeTrue())
		Expect(specOf(created)(Default, ctx).Parameters).To(HaveKeyWithValue("TEXT", cluster+" eu a: {b 34"))
		Expect(get(ctx, created).Spec.Cluster).To(BeNil())
	})
})
