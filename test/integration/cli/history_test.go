package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// The specs act as addon-manager and the agents.
var _ = Describe("the history of an Instance", func() {
	const older, newer = "shop-1.10-1.2.0", "shop-1.10-1.3.0"

	// pushTwo pushes two versions of a package for a cluster.
	pushTwo := func(ctx context.Context, cluster string) {
		GinkgoHelper()
		Expect(run(ctx, "package", "push", packageDir(configMap), "-n", cluster).err).NotTo(HaveOccurred())
		dir := packageDir(configMap)
		text, err := os.ReadFile(filepath.Join(dir, "operator.yaml"))
		Expect(err).NotTo(HaveOccurred())
		text = bytes.Replace(text, []byte("operatorVersion: 1.2.0"), []byte("operatorVersion: 1.3.0"), 1)
		Expect(os.WriteFile(filepath.Join(dir, "operator.yaml"), text, 0o600)).To(Succeed())
		Expect(run(ctx, "package", "push", dir, "-n", cluster).err).NotTo(HaveOccurred())
	}
	// install creates an Instance of a version.
	install := func(ctx context.Context, cluster, version string) *kudo.Instance {
		GinkgoHelper()
		instance := &kudo.Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "shop"},
			Spec:       kudo.InstanceSpec{OperatorVersion: corev1.ObjectReference{Namespace: cluster, Name: version}},
		}
		Expect(hub.Create(ctx, instance)).To(Succeed())
		return instance
	}
	// report reports an execution of the spec that has completed, and that changed the parameters.
	report := func(ctx context.Context, instance *kudo.Instance, cause kudo.HistoryCause, parameters ...string) {
		GinkgoHelper()
		Expect(environment.EditStatus(ctx, hub, instance, func(i *kudo.Instance) {
			var version kudo.OperatorVersion
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: i.Spec.OperatorVersion.Name}, &version)).To(Succeed())
			of := corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name, UID: version.UID}
			number := int64(len(i.Status.History) + 1)
			uid := types.UID("run-" + i.ResourceVersion)
			entry := kudo.HistoryEntry{
				Revision: number, UID: uid, Plan: "deploy", Cause: cause, OperatorVersion: of, Parameters: parameters, Outcome: kudo.HistoryComplete,
				StartedTimestamp: &metav1.Time{Time: time.Date(2026, 1, 2, 3, int(number), 0, 0, time.UTC)},
				EndedTimestamp:   &metav1.Time{Time: time.Date(2026, 1, 2, 3, int(number), 20, 0, time.UTC)},
			}
			if last := i.Status.Execution; last != nil && last.OperatorVersion.Name != of.Name {
				entry.From = last.OperatorVersion.Name
			}
			i.Status.History = append(i.Status.History, entry)
			i.Status.Execution = &kudo.Execution{UID: uid, Plan: "deploy", Generation: i.Generation, Parameters: i.Spec.Parameters, OperatorVersion: of}
			i.Status.Whole, i.Status.ObservedGeneration = &kudo.WholeVersion{OperatorVersion: of}, i.Generation
			i.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {Name: "deploy", UID: uid, Status: kudo.Complete}}
			meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{
				Type: kudo.ConditionResolved, Status: metav1.ConditionTrue, Reason: kudo.ReasonResolved, ObservedGeneration: i.Generation,
			})
		})).To(Succeed())
	}
	versionOf := func(ctx context.Context, instance *kudo.Instance) string {
		GinkgoHelper()
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
		return instance.Spec.OperatorVersion.Name
	}

	It("is shown, and rollback returns to the version of a revision", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		pushTwo(ctx, cluster)
		instance := install(ctx, cluster, older)
		Expect(run(ctx, "history", "shop", "--cluster", cluster).out).To(HavePrefix("No execution is recorded"))
		Expect(run(ctx, "rollback", "shop", "--cluster", cluster).err).To(MatchError(ContainSubstring(
			"cluster " + cluster + ": the history of Instance \"shop\" has no earlier OperatorVersion than " + older)))
		report(ctx, instance, kudo.CauseInstall)
		Expect(run(ctx, "upgrade", "shop", "--cluster", cluster).err).NotTo(HaveOccurred())
		report(ctx, instance, kudo.CauseVersion)
		Expect(run(ctx, "update", "shop", "--cluster", cluster, "-p", "SIZE=3").err).NotTo(HaveOccurred())
		report(ctx, instance, kudo.CauseParameters, "SIZE")
		golden("history", run(ctx, "history", "shop", "--cluster", cluster))

		By("rolling back")
		Expect(completions(ctx, "rollback", "shop", "--cluster", cluster, "--to", "")).To(Equal([]string{"1", "2", "3"}))
		shown := run(ctx, "rollback", "shop", "--cluster", cluster, "--dry-run")
		golden("rollback-dry-run", shown, cluster, "$CLUSTER")
		Expect(versionOf(ctx, instance)).To(Equal(newer))
		Expect(run(ctx, "rollback", "shop", "--cluster", cluster, "--to", "9").err).To(MatchError(ContainSubstring("has no revision 9, only 1 to 3")))
		Expect(run(ctx, "rollback", "shop", "--cluster", cluster, "--to", "2").err).To(MatchError(ContainSubstring("has the present OperatorVersion " + newer)))
		done := begin(ctx, "rollback", "shop", "--cluster", cluster, "--wait")
		Eventually(func() string { return versionOf(ctx, instance) }).Should(Equal(older))
		report(ctx, instance, kudo.CauseVersion)
		var rolledBack result
		Eventually(done).Should(Receive(&rolledBack))
		golden("rollback", rolledBack, cluster, "$CLUSTER")
		Expect(rolledBack.errOut).To(ContainSubstring("Warning: on cluster " + cluster + ": parameters that changed since revision 1 keep their present values, which the history does not store: SIZE\n"))
		Expect(instance.Spec.Parameters).To(Equal(map[string]string{"SIZE": "3"}))

		By("returning again, to the version before the rollback")
		gone := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: newer}}
		Expect(run(ctx, "rollback", "shop", "--cluster", cluster, "--dry-run").out).To(ContainSubstring(older + " -> " + newer))
		Expect(hub.Delete(ctx, gone)).To(Succeed())
		refused := run(ctx, "rollback", "shop", "--cluster", cluster)
		Expect(refused.code).To(Equal(cli.ExitFailure))
		Expect(refused.err).To(MatchError(ContainSubstring("OperatorVersion " + cluster + "/" + newer + " of revision 3 no longer exists: push its package again")))
	})

	It("is shown for a fleet, with the last execution on each cluster", func(ctx SpecContext) {
		clusters := []string{newCluster(ctx, map[string]string{"history": "fleet"}), newCluster(ctx, map[string]string{"history": "fleet"})}
		pushTwo(ctx, clusters[0])
		instance := install(ctx, clusters[0], older)
		report(ctx, instance, kudo.CauseInstall)
		report(ctx, instance, kudo.CauseParameters, "SIZE")
		waiting := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: clusters[1], Name: "shop"}}
		Expect(hub.Create(ctx, waiting)).To(Succeed())
		found := run(ctx, "history", "shop", "--selector", "history=fleet", "-o", "jsonpath={range .histories[*]}{.cluster} {.revisions[*].revision}\n{end}")
		Expect(found.err).NotTo(HaveOccurred())
		Expect(found.out).To(And(ContainSubstring(clusters[0]+" 2\n"), ContainSubstring(clusters[1]+" \n")))
		Expect(run(ctx, "history", "shop", "--selector", "history=fleet").out).To(MatchRegexp(`(?m)^` + clusters[0] + ` +2 .* parameters: SIZE `))
		Expect(run(ctx, "history", "mill", "--selector", "history=fleet").err).To(MatchError(ContainSubstring(`has an Instance or add-on "mill"`)))
	})

	It("is completed by the values of the Instance, and by the events on the hub", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		pushTwo(ctx, cluster)
		instance := install(ctx, cluster, older)
		golden("values", run(ctx, "values", "shop", "--cluster", cluster))
		Expect(run(ctx, "update", "shop", "--cluster", cluster, "-p", "SIZE=3").err).NotTo(HaveOccurred())
		Expect(run(ctx, "values", "shop", "--cluster", cluster).out).To(MatchRegexp(`SIZE +3 +Instance ` + cluster + `/shop\n`))
		Expect(run(ctx, "values", "mill", "--cluster", cluster).err).To(MatchError(ContainSubstring(`has no Instance or add-on "mill"`)))

		none := run(ctx, "events", "shop", "--cluster", cluster)
		Expect(none.err).NotTo(HaveOccurred())
		Expect(none.out).To(Equal("No events of shop on the hub.\n"))
		for name, of := range map[string]corev1.ObjectReference{
			"a": {APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Namespace: cluster, Name: "shop", UID: instance.UID},
			"b": {APIVersion: "v1", Kind: "ConfigMap", Namespace: cluster, Name: "shop"},
			"c": {APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ClusterManagementAddOn", Name: "shop"},
		} {
			namespace := of.Namespace
			if namespace == "" {
				namespace = metav1.NamespaceDefault
			}
			e := &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster + name}, InvolvedObject: of, Type: "Normal", Reason: "Noted", Message: "about " + of.Kind,
				FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
			}
			Expect(hub.Create(ctx, e)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, e)).To(Succeed()) })
		}
		for _, args := range [][]string{{"--cluster", cluster}, nil} {
			all := run(ctx, append([]string{"events", "shop"}, args...)...)
			Expect(all.err).NotTo(HaveOccurred())
			Expect(all.out).To(And(ContainSubstring("Instance/shop "), ContainSubstring("ClusterManagementAddOn/shop "), Not(ContainSubstring("ConfigMap"))))
		}

		By("reading as a user of one namespace")
		user := "user-of-" + cluster
		allow(ctx, cluster, user, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}})
		own := run(ctx, "events", "shop", "--cluster", cluster, "--as", user)
		Expect(own.err).NotTo(HaveOccurred())
		Expect(own.out).To(And(ContainSubstring("Instance/shop "), Not(ContainSubstring("ClusterManagementAddOn/shop "))))
		Expect(own.errOut).To(ContainSubstring("Warning: events of the ClusterManagementAddOn are not shown"))
		Expect(run(ctx, "values", "shop", "--cluster", cluster, "--as", user).err).NotTo(HaveOccurred())
		Expect(run(ctx, "history", "shop", "--cluster", cluster, "--as", user).err).NotTo(HaveOccurred())
	})
})
