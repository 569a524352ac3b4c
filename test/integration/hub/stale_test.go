package hub

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// runStaleHub runs the hub with a view of one resource as of a resource version until current is called or the spec ends.
func runStaleHub(resource, version string) (current func()) {
	GinkgoHelper()
	until := make(chan struct{})
	var watched <-chan struct{}
	_, stopHub = runHub(withWebhooks, func(config *rest.Config, _ *hub.Options) {
		watched = environment.MakeStale(config, resource, version, until)
	})
	Eventually(watched).Should(Receive())
	return func() { close(until) }
}

// revision returns the current resource version of the API server.
func revision(ctx context.Context) string {
	GinkgoHelper()
	var definitions addonv1alpha1.ClusterManagementAddOnList
	Expect(server.List(ctx, &definitions, client.Limit(1))).To(Succeed())
	return definitions.ResourceVersion
}

var _ = Describe("A hub that starts with a stale view", func() {
	var (
		f       fleet
		cluster string
		version *kudo.OperatorVersion
	)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		version = f.push(ctx, "kafka", packages)
	})

	edited := func(ctx context.Context, _ *addonv1alpha1.ManagedClusterAddOn) {
		config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: f.nameOf("one")}}
		edit(ctx, config, func(c *addonv1alpha1.AddOnDeploymentConfig) { c.Spec.CustomizedVariables[0].Value = "two" })
	}
	defaulted := func(ctx context.Context, _ *addonv1alpha1.ManagedClusterAddOn) {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: f.nameOf("kafka")}}
		edit(ctx, definition, withDefault(f.variables(ctx, "two", packages, "TEXT", "two")))
	}
	reconfigured := func(ctx context.Context, kafka *addonv1alpha1.ManagedClusterAddOn) {
		edit(ctx, kafka, withConfigs(f.variables(ctx, "two", packages, "TEXT", "two")))
	}
	DescribeTable("does not revert what an earlier process has applied",
		func(ctx SpecContext, resource string, uninstalled bool, change func(context.Context, *addonv1alpha1.ManagedClusterAddOn)) {
			f.define(ctx, "kafka", both(runs(version), withDefault(f.variables(ctx, "one", packages, "TEXT", "one"))))
			stopHub()
			kafka := f.enable(ctx, cluster, "kafka")
			view := revision(ctx)
			_, stop := runHub(withWebhooks)
			text := func() string { return specOf(instanceOf(kafka))(Default, ctx).Parameters["TEXT"] }
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Status", "True"))
			Expect(text()).To(Equal("one"))
			if !uninstalled {
				view = revision(ctx)
			}
			change(ctx, kafka)
			Eventually(text).Should(Equal("two"))
			stop()

			current := runStaleHub(resource, view)
			Consistently(text).WithTimeout(2 * time.Second).Should(Equal("two"))
			current()
			three := f.variables(ctx, "three", packages, "TEXT", "three")
			edit(ctx, kafka, func(a *addonv1alpha1.ManagedClusterAddOn) {
				a.Spec.Configs = nil
				withConfigs(three)(a)
			})
			Eventually(text).Should(Equal("three"))
			Expect(get(ctx, instanceOf(kafka)).Generation).To(Equal(int64(3)), "each change is applied once")
		},
		Entry("of AddOnDeploymentConfigs", "addondeploymentconfigs", false, edited),
		Entry("of ClusterManagementAddOns", "clustermanagementaddons", false, defaulted),
		Entry("of ManagedClusterAddOns", "managedclusteraddons", false, reconfigured),
		Entry("of ManagedClusterAddOns that had no finalizer yet", "managedclusteraddons", true, reconfigured),
	)

	It("of ManagedClusters keeps the finalizers of Instances on a cluster that was attached again", func(ctx SpecContext) {
		stopHub()
		Expect(server.Delete(ctx, managedCluster(cluster))).To(Succeed())
		view := revision(ctx)
		Expect(server.Create(ctx, managedCluster(cluster))).To(Succeed())
		f.define(ctx, "kafka", runs(version))
		kafka := f.enable(ctx, cluster, "kafka")
		_, stop := runHub(withWebhooks)
		Eventually(resolvedOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("Status", "True"))
		Expect(server.Delete(ctx, kafka)).To(Succeed())
		Eventually(func() bool { return get(ctx, instanceOf(kafka)).DeletionTimestamp.IsZero() }).Should(BeFalse())
		stop()

		current := runStaleHub("managedclusters", view)
		Consistently(exists(instanceOf(kafka))).WithContext(ctx).WithTimeout(2 * time.Second).Should(BeTrue())
		current()
		reportRemoved(ctx, instanceOf(kafka))
		Eventually(exists(kafka)).WithContext(ctx).Should(BeFalse())
	})

	higher := func(ctx context.Context, _, child *kudo.OperatorVersion) {
		version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: child.Namespace, Name: f.nameOf("child") + "-2.0.0"}, Spec: child.Spec}
		version.Spec.Version = "2.0.0"
		Expect(server.Create(ctx, version)).To(Succeed())
	}
	DescribeTable("of OperatorVersions does not apply, keep or fail a child",
		func(ctx SpecContext, wanted string, exists bool, change func(ctx context.Context, parent, child *kudo.OperatorVersion)) {
			child := f.push(ctx, "child", cluster)
			parent := parentOf(child)
			Expect(server.Create(ctx, parent)).To(Succeed())
			instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "shop"}}
			instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: parent.Namespace, Name: parent.Name}
			Expect(server.Create(ctx, instance)).To(Succeed())
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
			acknowledged := func(execution string) func() []kudo.ChildStatus {
				return func() []kudo.ChildStatus {
					return slices.DeleteFunc(get(ctx, instance).Status.Children, func(c kudo.ChildStatus) bool { return string(c.Execution) != execution })
				}
			}
			if exists {
				runsChild(ctx, instance, "1", corev1.ObjectReference{Namespace: parent.Namespace, Name: parent.Name, UID: parent.UID})
				Eventually(acknowledged("1")).Should(ConsistOf(HaveField("State", kudo.ChildApplied)))
			}
			stopHub()
			view := revision(ctx)
			change(ctx, parent, child)
			runsChild(ctx, instance, "2", corev1.ObjectReference{Namespace: parent.Namespace, Name: parent.Name, UID: parent.UID})

			current := runStaleHub("operatorversions", view)
			Consistently(acknowledged("2")).WithTimeout(2 * time.Second).Should(BeEmpty())
			current()
			Eventually(acknowledged("2")).Should(ConsistOf(HaveField("State", kudo.ChildApplied)))
			applied := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: acknowledged("2")()[0].Instance}}
			Expect(get(ctx, applied).Spec.OperatorVersion.Name).To(Equal(f.nameOf("child") + wanted))
		},
		Entry("when a higher version was pushed", "-2.0.0", false, higher),
		Entry("when a higher version was pushed, of a child that exists", "-2.0.0", true, higher),
		Entry("when the parent's version was pushed again", "-1.0.0", false, func(ctx context.Context, parent, _ *kudo.OperatorVersion) {
			Expect(server.Delete(ctx, parent)).To(Succeed())
			parent.ResourceVersion, parent.UID = "", ""
			Expect(server.Create(ctx, parent)).To(Succeed())
		}),
	)
})
