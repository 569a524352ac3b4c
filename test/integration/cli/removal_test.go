package cli

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
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
var _ = Describe("the order of removal", func() {
	define := func(ctx context.Context, name string, change func(*addonv1alpha1.ClusterManagementAddOn)) {
		GinkgoHelper()
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		change(definition)
		Expect(hub.Create(ctx, definition)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, definition)).To(Succeed()) })
	}
	plans := func(d *addonv1alpha1.ClusterManagementAddOn) {
		d.Spec.SupportedConfigs = []upstream.ConfigMeta{{ConfigGroupResource: upstream.ConfigGroupResource{
			Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions,
		}}}
	}
	requires := func(removal addonv1alpha1.RemovalPolicy) func(*addonv1alpha1.ClusterManagementAddOn) {
		return func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.Dependencies = []addonv1alpha1.AddonDependency{{Name: "base", Removal: removal}}
		}
	}
	enable := func(ctx context.Context, cluster, name string) *addonv1alpha1.ManagedClusterAddOn {
		GinkgoHelper()
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name, Finalizers: []string{kudo.Finalizer}}}
		Expect(hub.Create(ctx, addOn)).To(Succeed())
		return addOn
	}
	release := func(ctx context.Context, objects ...client.Object) {
		GinkgoHelper()
		for _, object := range objects {
			none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			Expect(client.IgnoreNotFound(hub.Patch(ctx, object, none))).To(Succeed())
		}
	}

	It("does not let an add-on be removed that another one protects, except by force", func(ctx SpecContext) {
		define(ctx, "base", plans)
		define(ctx, "upper", requires(addonv1alpha1.RemovalProtect))
		cluster := newCluster(ctx, nil)
		base, upper := enable(ctx, cluster, "base"), enable(ctx, cluster, "upper")
		DeferCleanup(release, base, upper)
		refusal := `add-on "base" is protected on cluster ` + cluster + ` by add-ons that require it there: upper; disable these first, or use ` +
			`'kubectl addon disable base --cluster ` + cluster + ` --force'`
		for _, command := range []string{"disable", "uninstall"} {
			refused := run(ctx, command, "base", "--cluster", cluster, "--yes")
			Expect(refused.err).To(MatchError(refusal))
			Expect(refused.code).To(Equal(cli.ExitFailure))
			shown := run(ctx, command, "base", "--cluster", cluster, "--dry-run")
			Expect(shown.out).To(ContainSubstring("cluster " + cluster + ": refused: " + refusal + "\n"))
		}
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(base), base)).To(Succeed())
		Expect(base.DeletionTimestamp).To(BeNil())

		forced := run(ctx, "disable", "base", "--cluster", cluster, "--yes", "--force", "--wait=false")
		Expect(forced.err).NotTo(HaveOccurred())
		Expect(forced.errOut).To(ContainSubstring("without base, add-on upper becomes unavailable; it protects the add-on from removal"))
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(base), base)).To(Succeed())
		Expect(base.DeletionTimestamp).NotTo(BeNil())
	})

	It("is previewed, shown while a command waits, and explained", func(ctx SpecContext) {
		define(ctx, "base", plans)
		define(ctx, "upper", requires(""))
		cluster := newCluster(ctx, nil)
		base, upper := enable(ctx, cluster, "base"), enable(ctx, cluster, "upper")
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: "base", Finalizers: []string{kudo.Finalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(base, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))},
		}}
		Expect(hub.Create(ctx, instance)).To(Succeed())
		DeferCleanup(release, base, upper, instance)
		Expect(hub.Delete(ctx, upper)).To(Succeed())

		const first = "it is removed once upper is gone, which depends on it"
		Expect(run(ctx, "disable", "base", "--cluster", cluster, "--dry-run").out).To(ContainSubstring("warning: " + first + "\n"))
		progress := gbytes.NewBuffer()
		done := beginTo(ctx, progress, "disable", "base", "--cluster", cluster, "--yes")
		Eventually(progress).Should(gbytes.Say("Warning: on cluster " + cluster + ": " + first + "\n"))
		Eventually(progress).Should(gbytes.Say("waiting: addon-manager has not deleted Instance base yet\n"))
		Expect(environment.EditStatus(ctx, hub, base, func(a *addonv1alpha1.ManagedClusterAddOn) {
			meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
				Type: addonv1alpha1.ConditionAddOnsRemaining, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonWaitingForDependents, Message: first,
			})
		})).To(Succeed())
		Eventually(progress).Should(gbytes.Say("waiting: " + first + "\n"))
		Expect(run(ctx, "why", "base", "--cluster", cluster).out).To(And(
			ContainSubstring(" and is waiting for finalizers kudo.dev/removal: "+first+".\n"),
			ContainSubstring("  kubectl addon why upper --cluster "+cluster+"\n")))
		release(ctx, upper, base, instance)
		Expect(hub.Delete(ctx, instance)).To(Succeed())
		var ended result
		Eventually(done).Should(Receive(&ended))
		Expect(ended.err).NotTo(HaveOccurred())
	})
})
