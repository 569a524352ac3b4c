package hub

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// firstResolution watches an Instance of a cluster, and returns a function that returns what suspends it when it is first resolved.
func firstResolution(ctx context.Context, cluster, name string) func() string {
	GinkgoHelper()
	watcher, err := client.NewWithWatch(config, client.Options{Scheme: server.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	found, err := watcher.Watch(ctx, &kudo.InstanceList{}, client.InNamespace(cluster), client.MatchingFields{"metadata.name": name})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(found.Stop)
	return func() string {
		for event := range found.ResultChan() {
			instance, is := event.Object.(*kudo.Instance)
			if is && meta.IsStatusConditionTrue(instance.Status.Conditions, kudo.ConditionResolved) {
				return instance.Spec.SuspendedBy
			}
		}
		return "it is never resolved"
	}
}

var _ = Describe("A suspension", func() {
	var f fleet
	BeforeEach(runWithoutWebhooks)
	BeforeEach(func() { f = newFleet() })

	// annotate sets the annotation of a cluster, or removes it if there is no reason.
	annotate := func(ctx context.Context, cluster string, reason *string) {
		GinkgoHelper()
		stored := managedCluster(cluster)
		Expect(server.Get(ctx, client.ObjectKeyFromObject(stored), stored)).To(Succeed())
		stored.SetAnnotations(nil)
		if reason != nil {
			stored.SetAnnotations(map[string]string{kudo.AnnotationSuspend: *reason})
		}
		Expect(server.Update(ctx, stored)).To(Succeed())
	}
	suspendedBy := func(instance *kudo.Instance) func(Gomega, context.Context) string {
		spec := specOf(instance)
		return func(g Gomega, ctx context.Context) string { return spec(g, ctx).SuspendedBy }
	}
	// suspendAll creates the ConfigMap that suspends everything, and returns what deletes it.
	suspendAll := func(ctx context.Context, reason string) func(context.Context) {
		GinkgoHelper()
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tandem-system", Name: kudo.SuspendConfigMap}}
		config.Data = map[string]string{kudo.SuspendKey: reason}
		Expect(server.Create(ctx, config)).To(Succeed())
		resume := func(ctx context.Context) {
			GinkgoHelper()
			Expect(client.IgnoreNotFound(server.Delete(ctx, config.DeepCopy()))).To(Succeed())
		}
		DeferCleanup(resume)
		return resume
	}
	isResolved := func(instance *kudo.Instance) func(Gomega, context.Context) bool {
		resolved := resolvedOf(instance)
		return func(g Gomega, ctx context.Context) bool {
			return resolved(g, ctx).Status == string(metav1.ConditionTrue)
		}
	}
	own := func(ctx context.Context, cluster, name string, version *kudo.OperatorVersion) *kudo.Instance {
		GinkgoHelper()
		made := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
		made.Spec.OperatorVersion = corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name}
		Expect(server.Create(ctx, made)).To(Succeed())
		return made
	}

	It("of a cluster reaches its Instances of today and of tomorrow, survives edits of users, and ends with its annotation", func(ctx SpecContext) {
		cluster, other := f.cluster(ctx, "cluster"), f.cluster(ctx, "other")
		version := f.push(ctx, "kafka", packages)
		f.define(ctx, "kafka", runs(version))
		addOn := f.enable(ctx, cluster, "kafka")
		kafka, elsewhere := instanceOf(addOn), instanceOf(f.enable(ctx, other, "kafka"))
		Eventually(isResolved(kafka)).WithContext(ctx).Should(BeTrue())
		Expect(suspendedBy(kafka)(Default, ctx)).To(BeEmpty())

		annotate(ctx, cluster, ptrTo("storage\n fails"))
		want := fmt.Sprintf(`ManagedCluster %s ("storage fails")`, cluster)
		Eventually(suspendedBy(kafka)).WithContext(ctx).Should(Equal(want))
		Eventually(isResolved(kafka)).WithContext(ctx).Should(BeTrue())
		first := firstResolution(ctx, cluster, "late")
		late := own(ctx, cluster, "late", version)
		Eventually(isResolved(late)).WithContext(ctx).Should(BeTrue())
		Expect(first()).To(Equal(want))

		By("users who edit the field")
		for _, edited := range []string{"", "nothing"} {
			edit(ctx, kafka, func(i *kudo.Instance) { i.Spec.SuspendedBy = edited })
			Eventually(suspendedBy(kafka)).WithContext(ctx).Should(Equal(want))
		}

		By("another reason, of any length, or none")
		annotate(ctx, cluster, ptrTo(strings.Repeat("\u202e", 1000)))
		Eventually(suspendedBy(kafka)).WithContext(ctx).Should(HaveLen(len(fmt.Sprintf(`ManagedCluster %s ("…")`, cluster)) + 200*len(`\u202e`)))
		annotate(ctx, cluster, ptrTo(""))
		Eventually(suspendedBy(kafka)).WithContext(ctx).Should(Equal("ManagedCluster " + cluster))
		annotate(ctx, cluster, ptrTo("false"))
		Eventually(eventsOn(late)).WithContext(ctx).Should(ContainElement(ContainSubstring(
			`is "false", and suspends regardless of its value: remove the annotation to resume (kubectl addon resume --all --cluster ` + cluster + ")")))
		Expect(suspendedBy(elsewhere)(Default, ctx)).To(BeEmpty())

		By("the end")
		annotate(ctx, cluster, nil)
		for _, instance := range []*kudo.Instance{kafka, late} {
			Eventually(suspendedBy(instance)).WithContext(ctx).Should(BeEmpty())
			Eventually(isResolved(instance)).WithContext(ctx).Should(BeTrue())
		}
		edit(ctx, kafka, func(i *kudo.Instance) { i.Spec.SuspendedBy = "me" })
		Eventually(suspendedBy(kafka)).WithContext(ctx).Should(BeEmpty())
		Eventually(isResolved(kafka)).WithContext(ctx).Should(BeTrue())
		f.writesNothing(ctx, cluster)
	})

	It("of an add-on reaches its Instances on all clusters with their children, and no other Instance", func(ctx SpecContext) {
		cluster, later := f.cluster(ctx, "cluster"), f.cluster(ctx, "later")
		child := f.push(ctx, "child", packages)
		parent := parentOf(child)
		Expect(server.Create(ctx, parent)).To(Succeed())
		definition := f.define(ctx, "kafka", runs(parent))
		kafka := instanceOf(f.enable(ctx, cluster, "kafka"))
		mine := own(ctx, cluster, "mine", child)
		Eventually(isResolved(kafka)).WithContext(ctx).Should(BeTrue())
		deploys(ctx, kafka, parent)
		below := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: kafka.Name + "." + child.Spec.Operator.Name}}
		Eventually(exists(below)).WithContext(ctx).Should(BeTrue())

		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, kudo.AnnotationSuspend, "a bad release")
		})
		want := fmt.Sprintf(`ClusterManagementAddOn %s ("a bad release")`, definition.Name)
		for _, instance := range []*kudo.Instance{kafka, below} {
			Eventually(suspendedBy(instance)).WithContext(ctx).Should(Equal(want))
		}
		added := instanceOf(f.enable(ctx, later, "kafka"))
		Eventually(isResolved(added)).WithContext(ctx).Should(BeTrue())
		Expect(suspendedBy(added)(Default, ctx)).To(Equal(want), "before it is resolved")
		Expect(suspendedBy(mine)(Default, ctx)).To(BeEmpty())

		By("a suspension of everything, and of the cluster")
		resume := suspendAll(ctx, "")
		annotate(ctx, cluster, ptrTo(""))
		wider := "ConfigMap tandem-system/tandem-suspend, ManagedCluster " + cluster
		Eventually(suspendedBy(below)).WithContext(ctx).Should(Equal(wider + ", " + want))
		Eventually(suspendedBy(mine)).WithContext(ctx).Should(Equal(wider))
		Eventually(suspendedBy(added)).WithContext(ctx).Should(Equal("ConfigMap tandem-system/tandem-suspend, " + want))

		By("a removal meanwhile")
		Expect(server.Delete(ctx, mine)).To(Succeed())
		reportRemoved(ctx, mine)
		Eventually(exists(mine)).WithContext(ctx).Should(BeFalse())

		By("the ends")
		resume(ctx)
		annotate(ctx, cluster, nil)
		Eventually(suspendedBy(below)).WithContext(ctx).Should(Equal(want))
		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) { delete(d.Annotations, kudo.AnnotationSuspend) })
		for _, instance := range []*kudo.Instance{kafka, below, added} {
			Eventually(suspendedBy(instance)).WithContext(ctx).Should(BeEmpty())
		}
	})

	It("holds up Instances while the CRD on the hub is too old to store it", func(ctx SpecContext) {
		cluster := f.cluster(ctx, "cluster")
		version := f.push(ctx, "kafka", packages)
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
			delete(definition.Spec.Versions[v].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "suspendedBy")
		}
		Expect(server.Update(ctx, definition)).To(Succeed())
		stored := func(g Gomega) string { // according to the schema that the API server uses
			probe := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "probe"}}
			probe.Spec.OperatorVersion.Name, probe.Spec.SuspendedBy = "none", "x"
			g.Expect(server.Create(ctx, probe, client.DryRunAll)).To(Succeed())
			return probe.Spec.SuspendedBy
		}
		Eventually(stored).Should(BeEmpty())
		annotate(ctx, cluster, ptrTo("storage"))
		mine := own(ctx, cluster, "mine", version)
		Eventually(resolvedOf(mine)).WithContext(ctx).Should(Equal(seen{"False", "FieldNotStored", fmt.Sprintf(
			"CustomResourceDefinition instances.kudo.dev on the hub has no field spec.suspendedBy, and the Instance is suspended by ManagedCluster %s (\"storage\"): "+
				"apply crds/ of the version of addon-manager on the hub", cluster)}))
		written := get(ctx, mine).ResourceVersion
		Consistently(func() string { return get(ctx, mine).ResourceVersion }, "1s").Should(Equal(written))

		By("applying the current one")
		restore(ctx)
		Eventually(stored).ShouldNot(BeEmpty())
		runWithoutWebhooks() // else the API server serves its watches by the old schema for two more minutes
		Eventually(isResolved(mine)).WithContext(ctx).Should(BeTrue())
		Expect(suspendedBy(mine)(Default, ctx)).To(Equal(fmt.Sprintf(`ManagedCluster %s ("storage")`, cluster)))
	})
})
