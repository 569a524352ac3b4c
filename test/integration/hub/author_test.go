package hub

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/author"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

var _ = Describe("The author of a change", func() {
	var (
		f       fleet
		cluster string
	)
	BeforeEach(runWithoutWebhooks)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
	})

	// changedBy returns the author as the history has it; empty if none is recorded for the present values.
	changedBy := func(instance *kudo.Instance) func(context.Context) string {
		return func(ctx context.Context) string {
			current := &kudo.Instance{}
			if err := server.Get(ctx, client.ObjectKeyFromObject(instance), current); err != nil {
				return err.Error()
			}
			return author.Text(current.Spec.ChangedBy, author.Values(install.VersionOf(current), current.Spec))
		}
	}
	requestedBy := func(instance *kudo.Instance) func(context.Context) string {
		return func(ctx context.Context) string {
			spec := get(ctx, instance).Spec
			return author.Text(spec.RequestedBy, author.Request(spec.PlanExecution))
		}
	}
	// patch changes an object as a manager.
	patch := func(ctx context.Context, o client.Object, manager, change string) {
		GinkgoHelper()
		Expect(server.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(change)), client.FieldOwner(manager))).To(Succeed())
	}
	isResolved := func(instance *kudo.Instance) func(context.Context) bool {
		return func(ctx context.Context) bool {
			current := &kudo.Instance{}
			if err := server.Get(ctx, client.ObjectKeyFromObject(instance), current); err != nil {
				return false
			}
			at := meta.FindStatusCondition(current.Status.Conditions, kudo.ConditionResolved)
			return at != nil && at.Status == metav1.ConditionTrue && at.ObservedGeneration == current.Generation
		}
	}

	It("of an Instance is its writer, and later writes of anything else change nothing", func(ctx SpecContext) {
		version := f.push(ctx, "kafka", packages)
		mine := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine"}}
		mine.Spec.OperatorVersion = corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name}
		Expect(server.Create(ctx, mine, client.FieldOwner("kubectl-create"))).To(Succeed())
		Eventually(isResolved(mine)).WithContext(ctx).Should(BeTrue())
		Expect(changedBy(mine)(ctx)).To(Equal("kubectl-create (Instance " + cluster + "/mine)"))
		written := get(ctx, mine).Spec.ChangedBy

		By("another writer of other fields, and of the author")
		patch(ctx, mine, "labeler", `{"metadata":{"labels":{"a":"b"}},"spec":{"suspend":true}}`)
		patch(ctx, mine, "forger", `{"spec":{"changedBy":{"manager":"ceo"}}}`)
		Eventually(func(ctx context.Context) *kudo.ChangeAuthor { return get(ctx, mine).Spec.ChangedBy }).WithContext(ctx).Should(Equal(written))
		Eventually(isResolved(mine)).WithContext(ctx).Should(BeTrue())

		By("a request")
		deploys(ctx, mine, version)
		patch(ctx, mine, "asker", `{"spec":{"planExecution":{"planName":"deploy"}}}`)
		Eventually(requestedBy(mine)).WithContext(ctx).Should(Equal("asker (Instance " + cluster + "/mine)"))
		Eventually(isResolved(mine)).WithContext(ctx).Should(BeTrue())
		Expect(get(ctx, mine).Spec.ChangedBy).To(Equal(written))
		f.writesNothing(ctx, cluster)
	})

	It("of an add-on is the writer of the object that its values come from", func(ctx SpecContext) {
		version := f.push(ctx, "kafka", packages)
		next := f.pushVersion(ctx, "kafka", packages, "2.0.0", func(*kudo.OperatorVersion) {})
		definition := f.define(ctx, "kafka", runs(version))
		config := f.variables(ctx, "config", cluster, "TEXT", "1")
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: f.nameOf("kafka")}}
		withConfigs(config)(addOn)
		Expect(server.Create(ctx, addOn, client.FieldOwner("enabler"))).To(Succeed())
		kafka := instanceOf(addOn)
		Eventually(changedBy(kafka)).WithContext(ctx).Should(Equal(fmt.Sprintf("enabler (ManagedClusterAddOn %s/%s)", cluster, addOn.Name)))
		first := get(ctx, kafka)

		By("writers of other fields")
		patch(ctx, config, "labeler", `{"metadata":{"labels":{"a":"b"},"annotations":{"kudo.dev/maintenance-windows":"always"}}}`)
		patch(ctx, addOn, "labeler", `{"metadata":{"labels":{"a":"b"}}}`)
		patch(ctx, definition, "labeler", `{"metadata":{"labels":{"a":"b"},"annotations":{"kudo.dev/suspend":"a bad release"}}}`)
		Eventually(func(ctx context.Context) bool {
			now := get(ctx, kafka).Spec
			return now.SuspendedBy != "" && now.Windows != ""
		}).WithContext(ctx).Should(BeTrue())
		Expect(get(ctx, kafka).Spec.ChangedBy).To(Equal(first.Spec.ChangedBy))

		By("a variable, a version, and an edit of the author")
		patch(ctx, config, "tuner", `{"spec":{"customizedVariables":[{"name":"TEXT","value":"2"}]}}`)
		Eventually(changedBy(kafka)).WithContext(ctx).Should(Equal(fmt.Sprintf("tuner (AddOnDeploymentConfig %s/%s)", cluster, config.Name)))
		patch(ctx, config, "labeler", `{"metadata":{"labels":{"a":"c"}}}`)
		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) { runs(next)(d) })
		Eventually(func(ctx context.Context) string { return get(ctx, kafka).Spec.OperatorVersion.Name }).WithContext(ctx).Should(Equal(next.Name))
		Expect(changedBy(kafka)(ctx)).To(HaveSuffix(fmt.Sprintf("(ClusterManagementAddOn %s)", definition.Name)))
		patch(ctx, kafka, "forger", `{"spec":{"changedBy":{"manager":"ceo"}}}`)
		Eventually(changedBy(kafka)).WithContext(ctx).ShouldNot(Or(BeEmpty(), ContainSubstring("ceo")))
		Eventually(isResolved(kafka)).WithContext(ctx).Should(BeTrue())
		Eventually(conditionOf(addOn, addonv1alpha1.ConditionResolved)).WithContext(ctx).Should(HaveField("Message", ContainSubstring(next.Name)))
		f.writesNothing(ctx, cluster)
	})

	It("of a child is its parent", func(ctx SpecContext) {
		child := f.push(ctx, "child", packages)
		parent := parentOf(child)
		Expect(server.Create(ctx, parent)).To(Succeed())
		f.define(ctx, "kafka", runs(parent))
		kafka := instanceOf(f.enable(ctx, cluster, "kafka"))
		Eventually(isResolved(kafka)).WithContext(ctx).Should(BeTrue())
		deploys(ctx, kafka, parent)
		below := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: kafka.Name + "." + child.Spec.Operator.Name}}
		Eventually(changedBy(below)).WithContext(ctx).Should(Equal(fmt.Sprintf("(Instance %s/%s)", cluster, kafka.Name)))
	})

	It("is not recorded while the CRD on the hub is too old to store it, and holds up nothing", func(ctx SpecContext) {
		version := f.push(ctx, "kafka", packages)
		f.define(ctx, "kafka", runs(version))
		definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "instances.kudo.dev"}}
		Expect(server.Get(ctx, client.ObjectKeyFromObject(definition), definition)).To(Succeed())
		current := definition.DeepCopy()
		DeferCleanup(func(ctx SpecContext) {
			Expect(server.Get(ctx, client.ObjectKeyFromObject(definition), definition)).To(Succeed())
			definition.Spec = *current.Spec.DeepCopy()
			Expect(server.Update(ctx, definition)).To(Succeed())
			Eventually(func() *kudo.ChangeAuthor { return probeAuthor(ctx, cluster) }).ShouldNot(BeNil())
		})
		for v := range definition.Spec.Versions {
			for _, field := range []string{"changedBy", "requestedBy"} {
				delete(definition.Spec.Versions[v].Schema.OpenAPIV3Schema.Properties["spec"].Properties, field)
			}
		}
		Expect(server.Update(ctx, definition)).To(Succeed())
		Eventually(func() *kudo.ChangeAuthor { return probeAuthor(ctx, cluster) }).Should(BeNil())
		kafka := instanceOf(f.enable(ctx, cluster, "kafka"))
		mine := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine"}}
		mine.Spec.OperatorVersion = corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name}
		Expect(server.Create(ctx, mine)).To(Succeed())
		for _, instance := range []*kudo.Instance{kafka, mine} {
			Eventually(isResolved(instance)).WithContext(ctx).Should(BeTrue())
			stored := get(ctx, instance)
			Expect(stored.Spec.ChangedBy).To(BeNil())
			Consistently(func() string { return get(ctx, instance).ResourceVersion }, "1s").Should(Equal(stored.ResourceVersion))
		}
	})
})

// probeAuthor returns the author that the API server stores of an Instance, according to the schema that it uses.
func probeAuthor(ctx context.Context, cluster string) *kudo.ChangeAuthor {
	GinkgoHelper()
	probe := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "probe"}}
	probe.Spec.OperatorVersion.Name, probe.Spec.ChangedBy = "none", &kudo.ChangeAuthor{Kind: "x", Name: "x"}
	Expect(server.Create(ctx, probe, client.DryRunAll)).To(Succeed())
	return probe.Spec.ChangedBy
}
