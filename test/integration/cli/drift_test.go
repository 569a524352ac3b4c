package cli

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// The specs act as the agents.
var _ = Describe("the drift of Instances", func() {
	// install creates an Instance on a cluster.
	install := func(ctx context.Context, cluster, name string) *kudo.Instance {
		GinkgoHelper()
		instance := &kudo.Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name},
			Spec:       kudo.InstanceSpec{OperatorVersion: corev1.ObjectReference{Name: "shop-1.0.0"}},
		}
		Expect(hub.Create(ctx, instance)).To(Succeed())
		return instance
	}
	// report reports the result of a comparison.
	report := func(ctx context.Context, instance *kudo.Instance, status metav1.ConditionStatus, reason, message string, objects ...kudo.DriftedObject) {
		GinkgoHelper()
		Expect(environment.EditStatus(ctx, hub, instance, func(i *kudo.Instance) {
			meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{
				Type: kudo.ConditionDrifted, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			})
			i.Status.Drift = objects
		})).To(Succeed())
	}
	web := kudo.DriftedObject{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Fields: []kudo.DriftedField{
		{Path: "/spec/replicas", Applied: "3", Live: "0", Managers: []string{"kubectl-scale"}},
		{Path: "/data/\x1b[2J\nConfigMap shop/other: gone", Managers: []string{"kubectl-edit"}},
	}}

	It("is shown of several clusters, and of one Instance with its fields", func(ctx SpecContext) {
		one, two := newCluster(ctx, map[string]string{"drift": "shown"}), newCluster(ctx, map[string]string{"drift": "shown"})
		shop, kafka := install(ctx, one, "shop"), install(ctx, two, "kafka")
		none := run(ctx, "drift", "--cluster", one)
		Expect(none.err).NotTo(HaveOccurred())
		Expect(none.out).To(Equal("No Instance is known to have drifted: 1 not compared yet.\n"))

		By("reporting comparisons")
		report(ctx, shop, metav1.ConditionTrue, kudo.ReasonDrifted, "Deployment shop/web: /spec/replicas is 0 instead of 3 (by kubectl-scale)", web,
			kudo.DriftedObject{Kind: "ConfigMap", Namespace: "shop", Name: "settings", Gone: true})
		report(ctx, kafka, metav1.ConditionFalse, kudo.ReasonInSync, "all objects are as they were applied")
		golden("drift", run(ctx, "drift", "--cluster", one+","+two, "-o", "wide"), one, "$CLUSTER")
		selected := run(ctx, "drift", "-l", "drift=shown", "-o", "jsonpath={.instances[*].instance} {.instances[*].objects[*].name} {.inSync}")
		Expect(selected.err).NotTo(HaveOccurred())
		Expect(selected.out).To(Equal("shop web settings 1"))
		golden("drift-instance", run(ctx, "drift", "shop", "--cluster", one), one, "$CLUSTER")
		all := run(ctx, "drift")
		Expect(all.err).NotTo(HaveOccurred())
		Expect(all.out).To(ContainSubstring(one))

		By("naming Instances")
		Expect(run(ctx, "drift", "kafka", "--cluster", two).out).To(Equal("Instance kafka on cluster " + two + " has not drifted: all objects are as they were applied.\n"))
		named := run(ctx, "drift", "kafka", "-l", "drift=shown")
		Expect(named.err).NotTo(HaveOccurred())
		Expect(named.out).To(Equal("No Instance is known to have drifted: 1 in sync.\n"))
		both := run(ctx, "drift", "shop", "kafkaa", "--cluster", one)
		Expect(both.err).To(MatchError(ContainSubstring(`cluster "` + one + `" has no Instance or add-on "kafkaa"`)))
		Expect(both.code).To(Equal(cli.ExitFailure))
		Expect(both.out).To(ContainSubstring("  - 3\n  + 0\n"))
		Expect(run(ctx, "drift", "kafkaa", "-l", "drift=shown").err).To(MatchError(
			`no Instance "kafkaa" on the selected clusters (did you mean kafka?); Instances: kafka, shop`))
		Expect(completions(ctx, "drift", "--cluster", one, "")).To(Equal([]string{"shop"}))
		Expect(completions(ctx, "drift", "shop", "--cluster", two, "")).To(Equal([]string{"kafka"}))
	})

	It("is shown to a user of one namespace, and not of Instances that are being deleted", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		shop := install(ctx, cluster, "shop")
		report(ctx, shop, metav1.ConditionTrue, kudo.ReasonDrifted, "changed", web)
		user := "drift-of-" + cluster
		allow(ctx, cluster, user, rbacv1.PolicyRule{APIGroups: []string{kudo.GroupVersion.Group}, Resources: []string{"instances"}, Verbs: []string{"get", "list"}})
		own := run(ctx, "drift", "--cluster", cluster, "--as", user)
		Expect(own.err).NotTo(HaveOccurred())
		Expect(own.out).To(ContainSubstring("shop       drifted   1         0      2"))
		Expect(run(ctx, "drift", "shop", "--cluster", cluster, "--as", user).err).NotTo(HaveOccurred())
		Expect(run(ctx, "drift", "--as", user).err).To(MatchError(ContainSubstring("listing the Instances of all clusters")))

		By("deleting the Instance")
		hold := func(finalizers ...string) {
			GinkgoHelper()
			Expect(environment.Edit(ctx, hub, shop, func(i *kudo.Instance) { i.Finalizers = finalizers })).To(Succeed())
		}
		hold("example.com/held")
		Expect(hub.Delete(ctx, shop)).To(Succeed())
		Expect(run(ctx, "drift", "--cluster", cluster).out).To(Equal("The selected clusters have no Instances.\n"))
		hold()
	})
})
