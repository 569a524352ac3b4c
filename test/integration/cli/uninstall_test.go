package cli

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// The specs act as addon-manager and the agent.
var _ = Describe("uninstall", func() {
	enable := func(ctx context.Context, cluster, name string) *addonv1alpha1.ManagedClusterAddOn {
		GinkgoHelper()
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: name, Finalizers: []string{kudo.Finalizer},
		}}
		Expect(hub.Create(ctx, addOn)).To(Succeed())
		return addOn
	}
	install := func(ctx context.Context, cluster, name string, owners ...metav1.OwnerReference) *kudo.Instance {
		GinkgoHelper()
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: name, Finalizers: []string{kudo.Finalizer}, OwnerReferences: owners,
		}}
		Expect(hub.Create(ctx, instance)).To(Succeed())
		instance.Status.Inventory = []kudo.InventoryEntry{{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: name}}
		Expect(hub.Status().Update(ctx, instance)).To(Succeed())
		return instance
	}
	owned := func(addOn *addonv1alpha1.ManagedClusterAddOn) metav1.OwnerReference {
		return *metav1.NewControllerRef(addOn, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))
	}
	release := func(ctx context.Context, object client.Object) {
		GinkgoHelper()
		none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		Expect(client.IgnoreNotFound(hub.Patch(ctx, object, none))).To(Succeed())
	}
	isDeleted := func(ctx context.Context, object client.Object) func() bool {
		return func() bool {
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			return object.GetDeletionTimestamp() != nil
		}
	}

	It("deletes an add-on, shows what it waits for, and ends when it is gone", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		addOn := enable(ctx, cluster, "kafka")
		instance := install(ctx, cluster, "kafka", owned(addOn))
		progress := gbytes.NewBuffer()
		done := beginTo(ctx, progress, "uninstall", "kafka", "--cluster", cluster, "--yes")
		Eventually(isDeleted(ctx, addOn)).Should(BeTrue())
		Expect(hub.Delete(ctx, instance)).To(Succeed())
		Expect(environment.EditStatus(ctx, hub, instance, func(i *kudo.Instance) {
			meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{
				Type: kudo.ConditionReady, Status: metav1.ConditionFalse, Reason: kudo.ReasonRemoving, Message: "waiting for Deployment ns/kafka",
			})
		})).To(Succeed())
		Eventually(progress).Should(gbytes.Say("waiting: Removing: waiting for Deployment ns/kafka\n"))
		Consistently(done).WithTimeout(2 * time.Second).ShouldNot(Receive())
		Expect(instance.Annotations).NotTo(HaveKey(kudo.AnnotationForceRelease))
		release(ctx, instance)
		release(ctx, addOn)

		var ended result
		Eventually(done).Should(Receive(&ended))
		Expect(ended.err).NotTo(HaveOccurred())
		Expect(ended.out).To(Equal("managedclusteraddon.addon.open-cluster-management.io/kafka deleted from " + cluster + "\n"))
	})

	It("deletes an Instance without an add-on", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		instance := install(ctx, cluster, "mine")
		done := begin(ctx, "uninstall", "mine", "--cluster", cluster, "--yes")
		Eventually(isDeleted(ctx, instance)).Should(BeTrue())
		release(ctx, instance)
		var ended result
		Eventually(done).Should(Receive(&ended))
		Expect(ended.err).NotTo(HaveOccurred())
		Expect(ended.out).To(Equal("instance.kudo.dev/mine deleted from " + cluster + "\n"))
	})

	It("names the pending object after its timeout, and fails", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		instance := install(ctx, cluster, "mine")
		late := run(ctx, "uninstall", "mine", "--cluster", cluster, "--yes", "--timeout", "3s")
		Expect(late.code).To(Equal(cli.ExitTimeout))
		Expect(late.err).To(MatchError(ContainSubstring("the removal of instance.kudo.dev/mine is still in progress after 3s: " +
			"the agent of cluster " + cluster + " has not started to remove Instance mine")))
		Expect(isDeleted(ctx, instance)()).To(BeTrue())
	})

	Describe("from a detached cluster", func() {
		stays := func(cluster, name, did string) string {
			return name + " " + did + " from the hub. Objects that are not removed yet stay on cluster " + cluster + ":\n"
		}
		It("names the objects that stay, and fails unless it is forced", func(ctx SpecContext) {
			cluster := newNamespace(ctx)
			instance := install(ctx, cluster, "mine")
			child := install(ctx, cluster, "mine.child", *metav1.NewControllerRef(instance, kudo.GroupVersion.WithKind("Instance")))
			Expect(environment.EditStatus(ctx, hub, instance, func(i *kudo.Instance) {
				i.Status.Children = []kudo.ChildStatus{{Task: "main.main.child", Instance: child.Name, UID: child.UID, State: kudo.ChildApplied}}
			})).To(Succeed())
			const warning = "the cluster is detached, so its objects stay"
			Expect(run(ctx, "uninstall", "mine", "--cluster", cluster, "--dry-run").out).To(
				Equal("cluster " + cluster + ": instance.kudo.dev/mine would be removed\n  warning: " + warning + "\n  no plan runs\n"))
			done := begin(ctx, "uninstall", "mine", "--cluster", cluster, "--yes")
			Eventually(isDeleted(ctx, instance)).Should(BeTrue())
			release(ctx, instance)
			var ended result
			Eventually(done).Should(Receive(&ended))
			Expect(ended.errOut).To(HavePrefix("Warning: on cluster " + cluster + ": " + warning + "\n"))
			Expect(ended.out).To(Equal(stays(cluster, "instance.kudo.dev/mine", "deleted") + "  Deployment ns/mine\n  Deployment ns/mine.child\n"))
			Expect(ended.err).To(MatchError("2 objects of Instance mine stay on cluster " + cluster + ", because it is detached; " +
				"to remove them, attach the cluster again and re-create the Instance, or delete them there"))
			Expect(ended.code).To(Equal(cli.ExitFailure))

			other := install(ctx, cluster, "other")
			late := run(ctx, "uninstall", "other", "--cluster", cluster, "--yes", "--wait=false")
			Expect(late.out).To(Equal(stays(cluster, "instance.kudo.dev/other", "is being deleted") + "  Deployment ns/other\n"))
			Expect(late.code).To(Equal(cli.ExitFailure))
			Expect(run(ctx, "uninstall", "other", "--cluster", cluster, "--release", "--yes", "--wait=false").err).NotTo(HaveOccurred())
			release(ctx, other)
		})

		It("does so if the cluster is detached during the removal", func(ctx SpecContext) {
			cluster := newNamespace(ctx)
			registered := managedCluster(cluster)
			Expect(hub.Create(ctx, registered)).To(Succeed())
			instance := install(ctx, cluster, "mine")
			done := begin(ctx, "uninstall", "mine", "--cluster", cluster, "--yes")
			Eventually(isDeleted(ctx, instance)).Should(BeTrue())
			Expect(hub.Delete(ctx, registered)).To(Succeed())
			release(ctx, instance)
			var ended result
			Eventually(done).Should(Receive(&ended))
			Expect(ended.out).To(Equal(stays(cluster, "instance.kudo.dev/mine", "deleted") + "  Deployment ns/mine\n"))
			Expect(ended.code).To(Equal(cli.ExitFailure))
		})

		It("does so for an add-on that is disabled while its cluster is being deleted", func(ctx SpecContext) {
			cluster := newNamespace(ctx)
			registered := managedCluster(cluster)
			registered.SetFinalizers([]string{"example.com/held"})
			Expect(hub.Create(ctx, registered)).To(Succeed())
			addOn := enable(ctx, cluster, "kafka")
			instance := install(ctx, cluster, "kafka", owned(addOn))
			Expect(hub.Delete(ctx, registered)).To(Succeed())
			disabled := run(ctx, "disable", "kafka", "--cluster", cluster, "--yes", "--wait=false")
			Expect(disabled.out).To(Equal(stays(cluster, "managedclusteraddon.addon.open-cluster-management.io/kafka", "is being deleted") +
				"  Deployment ns/kafka\n"))
			Expect(disabled.code).To(Equal(cli.ExitFailure))
			for _, object := range []client.Object{registered, addOn, instance} {
				release(ctx, object)
			}
		})
	})

	It("continues when the command is interrupted, which says so", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		instance := install(ctx, cluster, "kafka", owned(enable(ctx, cluster, "kafka")))
		patient, interrupt := context.WithCancel(ctx)
		defer interrupt()
		shown := gbytes.NewBuffer()
		done := beginTo(patient, shown, "uninstall", "kafka", "--cluster", cluster, "--yes")
		Eventually(shown).Should(gbytes.Say("waiting"))
		interrupt()
		var ended result
		Eventually(done).Should(Receive(&ended))
		Expect(ended.code).To(Equal(cli.ExitInterrupted))
		Expect(cli.ErrorText(ended.err)).To(And(HavePrefix("interrupted; the operation continues on the hub and its clusters: the removal of "), Not(ContainSubstring("canceled"))))
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
	})

	It("with --release releases the Instance and lists the objects that stay, at first or when it hangs", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		addOn := enable(ctx, cluster, "kafka")
		instance := install(ctx, cluster, "kafka", owned(addOn))
		Expect(run(ctx, "uninstall", "kafka", "--cluster", cluster, "--yes", "--wait=false").out).To(
			Equal("managedclusteraddon.addon.open-cluster-management.io/kafka is being deleted from " + cluster + "\n"))
		Expect(hub.Delete(ctx, instance)).To(Succeed())
		Expect(isDeleted(ctx, instance)()).To(BeTrue())
		Expect(instance.IsForceReleased()).To(BeFalse())

		By("asking first")
		Expect(run(ctx, "uninstall", "kafka", "--cluster", cluster, "--release").err).To(MatchError(ContainSubstring("cannot prompt for confirmation without a terminal")))
		Expect(run(ctx, "uninstall", "kafka", "--cluster", cluster, "--release", "--dry-run").err).To(MatchError(ContainSubstring("use only one of them")))
		Expect(isDeleted(ctx, instance)()).To(BeTrue())
		Expect(instance.IsForceReleased()).To(BeFalse())

		released := run(ctx, "uninstall", "kafka", "--cluster", cluster, "--yes", "--wait=false", "--release")
		Expect(released.err).NotTo(HaveOccurred())
		Expect(released.out).To(Equal("Releasing Instance kafka. Objects that are not removed yet stay on cluster " + cluster + ":\n" +
			"  Deployment ns/kafka\nmanagedclusteraddon.addon.open-cluster-management.io/kafka is being deleted from " + cluster + "\n"))
		Expect(isDeleted(ctx, instance)()).To(BeTrue())
		Expect(instance.IsForceReleased()).To(BeTrue())

		By("an Instance that was not deleted before")
		mine := install(ctx, cluster, "mine")
		Expect(run(ctx, "uninstall", "mine", "--cluster", cluster, "--yes", "--wait=false", "--release").err).NotTo(HaveOccurred())
		Expect(isDeleted(ctx, mine)()).To(BeTrue())
		Expect(mine.IsForceReleased()).To(BeTrue())
	})

	It("names the affected add-ons on the cluster", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		for _, name := range []string{"base", "upper", "elsewhere"} {
			definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + cluster}}
			definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
			if name != "base" {
				definition.Spec.Dependencies = []addonv1alpha1.AddonDependency{{Name: "base-" + cluster, Type: addonv1alpha1.DependencyTypeRequired}}
			}
			Expect(hub.Create(ctx, definition)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(hub.Delete(ctx, definition)).To(Succeed()) })
		}
		enable(ctx, cluster, "base-"+cluster)
		enable(ctx, cluster, "upper-"+cluster)
		warned := run(ctx, "uninstall", "base-"+cluster, "--cluster", cluster, "--yes", "--wait=false")
		Expect(warned.err).NotTo(HaveOccurred())
		Expect(warned.errOut).To(Equal("Warning: on cluster " + cluster + ": without base-" + cluster + ", add-on upper-" + cluster +
			" becomes unavailable\n"))
	})

	It("names what goes with a definition, and what is kept, before it is agreed to, as disable does", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		addOn := enable(ctx, cluster, "certs")
		certs, shop := install(ctx, cluster, "certs", owned(addOn)), install(ctx, cluster, "shop")
		Expect(environment.EditStatus(ctx, hub, certs, func(i *kudo.Instance) {
			i.Status.Inventory = append(i.Status.Inventory,
				kudo.InventoryEntry{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "certificates.example.com"},
				kudo.InventoryEntry{Kind: "Secret", Namespace: "ns", Name: "ca", Keep: true})
		})).To(Succeed())
		Expect(environment.EditStatus(ctx, hub, shop, func(i *kudo.Instance) {
			i.Status.Inventory = append(i.Status.Inventory, kudo.InventoryEntry{Group: "example.com", Kind: "Certificate", Namespace: "shop", Name: "tls"})
		})).To(Succeed())
		warnings := "Warning: on cluster " + cluster + ": CustomResourceDefinition certificates.example.com is deleted with every object of its kind, " +
			"including objects that users have created, which the hub does not know; Instances have 1 object of its API group\n" +
			"Warning: on cluster " + cluster + ": the package keeps Secret ns/ca\n"
		for _, command := range []string{"uninstall", "disable"} {
			asked := run(ctx, command, "certs", "--cluster", cluster)
			Expect(asked.err).To(MatchError(ContainSubstring("cannot prompt for confirmation without a terminal")))
			Expect(asked.errOut).To(Equal(warnings), command)
		}
		shown := run(ctx, "uninstall", "certs", "--cluster", cluster, "--dry-run").out
		Expect(shown).To(ContainSubstring("remove     CustomResourceDefinition certificates.example.com: with every object of its kind"))
		Expect(shown).To(ContainSubstring("keep       Secret ns/ca: the package keeps it"))
		Expect(run(ctx, "uninstall", "certs", "--cluster", cluster, "--release", "--yes", "--wait=false").errOut).To(BeEmpty(), "everything stays")
		release(ctx, certs)
	})

	It("lists the volume claims first that are deleted with their data, as disable does", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "db-1.0.0"}}
		version.Spec.Operator.Name, version.Spec.Version = "db", "1.0.0"
		version.Spec.Templates = map[string]string{"db.yaml": "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  replicas: 2\n" +
			"  volumeClaimTemplates:\n  - metadata: {name: data}\n    spec: {resources: {requests: {storage: 3Gi}}}\n"}
		version.Spec.Tasks = []kudo.Task{{Name: "app", Kind: kudo.TaskApply}}
		version.Spec.Tasks[0].Spec.Resources = []string{"db.yaml"}
		version.Spec.Plans = map[string]kudo.Plan{kudo.DeployPlan: {Strategy: kudo.Serial, Phases: []kudo.Phase{
			{Name: "main", Strategy: kudo.Serial, Steps: []kudo.Step{{Name: "all", Tasks: []string{"app"}}}},
		}}}
		Expect(hub.Create(ctx, version)).To(Succeed())
		db := install(ctx, cluster, "db", owned(enable(ctx, cluster, "db")))
		Expect(environment.EditStatus(ctx, hub, db, func(i *kudo.Instance) {
			i.Status.Execution = &kudo.Execution{UID: "1", Plan: kudo.DeployPlan, OperatorVersion: corev1.ObjectReference{
				Namespace: version.Namespace, Name: version.Name, UID: version.UID,
			}}
			i.Status.PlanStatus = map[string]kudo.PlanStatus{kudo.DeployPlan: {Name: kudo.DeployPlan, UID: "1", Status: kudo.Complete}}
			i.Status.Inventory = []kudo.InventoryEntry{{Group: "apps", Kind: "StatefulSet", Namespace: cluster, Name: "db", Task: "app"}}
		})).To(Succeed())
		claims := "  remove     PersistentVolumeClaim " + cluster + "/data-db-0: 3Gi, with its data\n" +
			"  remove     PersistentVolumeClaim " + cluster + "/data-db-1: 3Gi, with its data\n"
		for _, command := range []string{"uninstall", "disable"} {
			shown := run(ctx, command, "db", "--cluster", cluster, "--dry-run")
			Expect(shown.err).NotTo(HaveOccurred())
			Expect(shown.out).To(MatchRegexp(`^cluster .*\n(  writes .*\n)?`+claims+`  no plan runs\n`), command)
			Expect(run(ctx, command, "db", "--cluster", cluster, "--dry-run", "-o", "wide").out).To(ContainSubstring(claims), command)
			Expect(run(ctx, command, "db", "--cluster", cluster, "--dry-run", "-o", "json").out).To(ContainSubstring(`"note": "3Gi, with its data"`), command)
		}
		Expect(run(ctx, "disable", "db", "--cluster", cluster, "-o", "json").err).To(MatchError(ContainSubstring("--output requires --dry-run")))
		Expect(isDeleted(ctx, db)()).To(BeFalse(), "nothing was written")
	})

	It("refuses an add-on that OCM would enable again, unless it is forced, and shows the same before", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		name := "placed-" + cluster
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		definition.Spec.InstallStrategy = upstream.InstallStrategy{Type: upstream.AddonInstallStrategyPlacements, Placements: []upstream.PlacementStrategy{
			{PlacementRef: upstream.PlacementRef{Namespace: "default", Name: "all"}},
		}}
		Expect(hub.Create(ctx, definition)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(hub.Delete(ctx, definition)).To(Succeed()) })
		addOn := enable(ctx, cluster, name)
		const refusal = "only on clusters that these Placements select: default/all"
		Expect(run(ctx, "uninstall", name, "--cluster", cluster, "--dry-run").out).To(ContainSubstring(refusal))
		Expect(run(ctx, "uninstall", name, "--cluster", cluster, "--yes").err).To(MatchError(ContainSubstring(refusal)))
		Expect(isDeleted(ctx, addOn)()).To(BeFalse())
		Expect(run(ctx, "uninstall", name, "--cluster", cluster, "--release", "--yes", "--wait=false").err).NotTo(HaveOccurred())
		Expect(isDeleted(ctx, addOn)()).To(BeTrue())
	})

	It("refuses a child, which its parent would re-create, and an unknown name", func(ctx SpecContext) {
		cluster := newNamespace(ctx)
		parent := install(ctx, cluster, "parent")
		child := install(ctx, cluster, "parent.child", *metav1.NewControllerRef(parent, kudo.GroupVersion.WithKind("Instance")))
		Expect(run(ctx, "uninstall", "parent.child", "--cluster", cluster, "--yes").err).To(
			MatchError(ContainSubstring(`is a child of Instance "parent"`)))
		Expect(isDeleted(ctx, child)()).To(BeFalse())
		Expect(run(ctx, "uninstall", "other", "--cluster", cluster, "--yes").err).To(MatchError(MatchRegexp(`managed cluster ".*" not found`)))
	})

	It("does not delete a user's Instance that has the add-on's name", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		addOn := enable(ctx, cluster, "kafka")
		instance := install(ctx, cluster, "kafka")
		Expect(run(ctx, "uninstall", "kafka", "--cluster", cluster, "--yes", "--wait=false", "--release").err).NotTo(HaveOccurred())
		Expect(isDeleted(ctx, addOn)()).To(BeTrue())
		Expect(isDeleted(ctx, instance)()).To(BeFalse())
		Expect(instance.Annotations).NotTo(HaveKey(kudo.AnnotationForceRelease))
	})
})
