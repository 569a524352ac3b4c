package e2e

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// The stack of these specs: each add-on requires the next one.
var stack = []string{"portal", "queue", "store"}

// stackVersions are the constraints of each version on the next add-on. The first two have exactly one order in each direction. The last one excludes the second
// version, which excludes it, so that the third one has to run in between.
var stackVersions = map[string]string{"1.0.0": "<2", "2.0.0": ">=1 <3", "3.0.0": ">=2 <5", "4.0.0": ">=3 <5"}

var _ = Describe("The order of dependencies on a hub with OCM", Label("ocm"), onSandbox("it is the sandbox that runs OCM"), Ordered, func() {
	var f *ocmFleet
	everywhere := placement("stack", 2)

	BeforeAll(func(ctx SpecContext) {
		f = newOCMFleet(ctx, 2)
		Expect(f.hub.Create(ctx, bindingOfDefaultSet())).To(Succeed())
		everywhere.Spec.NumberOfClusters = nil
		everywhere.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{shop: "open"}},
		}}}
		for _, object := range []client.Object{everywhere, shopConfig(), shopPackage("1.0.0")} {
			Expect(f.hub.Create(ctx, object)).To(Succeed())
		}
		for i := range stack {
			for version := range stackVersions {
				Expect(f.hub.Create(ctx, stackPackage(i, version))).To(Succeed())
			}
		}
		for _, name := range f.names {
			f.label(ctx, name, "open")
		}
	})

	// wants configures a version of an add-on on the whole fleet.
	wants := func(ctx context.Context, i int, version string) {
		GinkgoHelper()
		f.edit(ctx, stack[i], func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.InstallStrategy = rollingOut(everywhere, "", stackPackage(i, version), shopConfig())
		})
	}
	runs := func(ctx context.Context, version string) {
		GinkgoHelper()
		for _, cluster := range f.names {
			for _, name := range stack {
				Eventually(func(g Gomega) {
					instance := &kudo.Instance{}
					g.Expect(f.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, instance)).To(Succeed())
					g.Expect(instance.Status.Whole).To(HaveValue(HaveField("Version", version)))
				}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed(), "%s on %s", name, cluster)
				f.expectCondition(ctx, cluster, name, addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete)
			}
		}
	}

	It("judges a dependency that only one kind of cluster has, again when its label changes", func(ctx SpecContext) {
		definition := shopDefinition(kiosk, shopPackage("1.0.0"))
		definition.Annotations = map[string]string{addonv1alpha1.AnnotationDependencies: declares(addonv1alpha1.AddonDependency{
			Name: base, Clusters: &addonv1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"size": "big"}}},
		})}
		Expect(f.hub.Create(ctx, definition)).To(Succeed())
		f.resize(ctx, "cluster1", "big")
		for _, name := range f.names {
			f.enable(ctx, name, kiosk)
		}
		f.expectCondition(ctx, "cluster1", kiosk, addonv1alpha1.ConditionDegraded, metav1.ConditionTrue, addonv1alpha1.ReasonRequiredDependencyNotSatisfied)
		f.expectCondition(ctx, "cluster1", kiosk, addonv1alpha1.ConditionResolved, metav1.ConditionFalse, addonv1alpha1.ReasonWaitingForDependencies)
		f.expectCondition(ctx, "cluster2", kiosk, addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete)

		f.resize(ctx, "cluster2", "big")
		f.expectCondition(ctx, "cluster2", kiosk, addonv1alpha1.ConditionAvailable, metav1.ConditionFalse, addonv1alpha1.ReasonRequiredDependencyNotSatisfied)
		for _, name := range f.names {
			f.resize(ctx, name, "small")
			f.expectCondition(ctx, name, kiosk, addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete)
			Expect(statusOf(ctx, f.hub, name, kiosk, addonv1alpha1.ConditionDegraded)).To(BeEmpty(), name)
		}
	})

	It("installs a stack that a Placement enables at once", func(ctx SpecContext) {
		for i, name := range stack {
			definition := shopDefinition(name, stackPackage(i, "1.0.0"))
			if i+1 < len(stack) {
				definition.Annotations = map[string]string{addonv1alpha1.AnnotationDependencies: dependsOn(stack[i+1])}
			}
			definition.Spec.InstallStrategy = rollingOut(everywhere, "", stackPackage(i, "1.0.0"), shopConfig())
			Expect(f.hub.Create(ctx, definition)).To(Succeed())
		}
		runs(ctx, "1.0.0")
	})

	It("upgrades a fleet in the right order, requested in the wrong one, although the leader is killed in between", func(ctx SpecContext) {
		arguments := strings.Fields(must(output(ctx, "ps", "-ww", "-o", "args=", "-p", fmt.Sprint(find(f.box, "hub", "addon-manager").PID))))[1:]
		Expect(sandbox.StopProgram(ctx, f.home, "hub", "addon-manager")).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { // once the replicas are killed
			Expect(sandbox.StartProgram(ctx, f.home, "hub", "addon-manager")).To(Succeed())
		})
		leader := replica(arguments)
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "tandem-system", Name: addonv1alpha1.LeaderLease}}
		Eventually(func() (*string, error) {
			err := f.hub.Get(ctx, client.ObjectKeyFromObject(lease), lease)
			return lease.Spec.HolderIdentity, err
		}).
			WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(HaveValue(Not(BeEmpty())))
		holder := *lease.Spec.HolderIdentity
		replica(append(slices.Clone(arguments), "--webhook-bind-address="+freeAddress()))

		for i := len(stack) - 1; i >= 0; i-- { // the last add-on that can change first
			wants(ctx, i, "2.0.0")
		}
		Eventually(func() string { return f.instance(ctx, "cluster1", stack[0]).Spec.OperatorVersion.Name }).
			WithContext(ctx).WithTimeout(timeout).WithPolling(interval / 10).Should(Equal("portal-2.0.0"))
		Expect(leader.Process.Signal(syscall.SIGKILL)).To(Succeed())
		runs(ctx, "2.0.0")
		Expect(f.hub.Get(ctx, client.ObjectKeyFromObject(lease), lease)).To(Succeed())
		Expect(*lease.Spec.HolderIdentity).NotTo(Equal(holder))

		By("the audit log showing which versions ran together")
		for _, name := range f.names {
			seen := audit.Exclusions(entriesOf(f.box.Cluster(name).AuditLog()), func(one, other audit.Running) bool {
				return one.Instance == "portal" && one.Version == "2.0.0" && other.Instance == "queue" && other.Version == "1.0.0"
			})
			Expect(seen).To(HaveLen(1), name)
			expectOrder(f.box, name)
		}
	})

	It("goes back in the reverse order", func(ctx SpecContext) {
		for i := range stack {
			wants(ctx, i, "1.0.0")
		}
		runs(ctx, "1.0.0")
		for i := range stack {
			wants(ctx, i, "2.0.0")
		}
		runs(ctx, "2.0.0")
	})

	It("names the version in between that ends a deadlock, and goes on with it", func(ctx SpecContext) {
		wants(ctx, 0, "4.0.0")
		wants(ctx, 1, "4.0.0")
		for _, name := range f.names {
			Eventually(func() string { return f.condition(ctx, name, "queue", addonv1alpha1.ConditionResolved).Message }).
				WithContext(ctx).WithTimeout(ocmTimeout).WithPolling(interval).
				Should(And(ContainSubstring("deadlock: portal cannot change before it"), ContainSubstring("change portal to portal-3.0.0 first")), name)
			Expect(f.instance(ctx, name, "queue").Spec.OperatorVersion.Name).To(Equal("queue-2.0.0"))
		}
		wants(ctx, 0, "3.0.0")
		for _, name := range f.names {
			Eventually(func() string { return f.instance(ctx, name, "portal").Spec.OperatorVersion.Name }).
				WithContext(ctx).WithTimeout(ocmTimeout).WithPolling(interval).Should(Equal("portal-3.0.0"), name)
		}
	})

	It("names rollouts whose occupied slots wait for each other, and a command with which they end", func(ctx SpecContext) {
		const mill, oven = "mill", "oven"
		bakery := everywhere.DeepCopy()
		bakery.ObjectMeta = metav1.ObjectMeta{Namespace: everywhere.Namespace, Name: "bakery"}
		bakery.Spec.DecisionStrategy.GroupStrategy.DecisionGroups = []clusterv1beta1.DecisionGroup{{
			GroupName: "canary", ClusterSelector: clusterv1beta1.GroupClusterSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"size": "canary"}}},
		}}
		f.resize(ctx, "cluster1", "small")
		f.resize(ctx, "cluster2", "canary")
		Expect(f.hub.Create(ctx, bakery)).To(Succeed())
		version := func(name, number string, requires ...kudo.DependencyConstraint) *kudo.OperatorVersion {
			v := shopPackage(number)
			v.Name, v.Spec.Operator.Name, v.Spec.Dependencies = name+"-"+number, name, requires
			return v
		}
		mills, ovens := map[string]*kudo.OperatorVersion{}, map[string]*kudo.OperatorVersion{}
		for _, number := range []string{"1.0.0", "2.0.0", "3.0.0"} {
			mills[number] = version(mill, number)
			Expect(f.hub.Create(ctx, mills[number])).To(Succeed())
		}
		for number, accepts := range map[string]string{"2.0.0": ">=1 <3", "2.5.0": ">=1 <5", "3.0.0": ">=2 <5"} {
			ovens[number] = version(oven, number, kudo.DependencyConstraint{Name: mill, Version: accepts})
			Expect(f.hub.Create(ctx, ovens[number])).To(Succeed())
		}
		strategyOf := func(name, number string) upstream.InstallStrategy {
			if name == mill {
				return rollingOut(bakery, "1", mills[number], shopConfig()) // first cluster1, by its name
			}
			strategy := rollingOut(bakery, "", ovens[number], shopConfig()) // first cluster2, by its group
			strategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.ProgressivePerGroup}
			return strategy
		}
		runsThere := func(cluster, name, number string) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				instance := &kudo.Instance{}
				g.Expect(f.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, instance)).To(Succeed())
				g.Expect(instance.Status.Whole).To(HaveValue(HaveField("Version", number)))
			}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed(), "%s on %s", name, cluster)
		}
		for name, number := range map[string]string{mill: "1.0.0", oven: "2.0.0"} {
			definition := shopDefinition(name, map[string]*kudo.OperatorVersion{mill: mills[number], oven: ovens[number]}[name])
			if name == oven {
				definition.Annotations = map[string]string{addonv1alpha1.AnnotationDependencies: dependsOn(mill)}
			}
			definition.Spec.InstallStrategy = strategyOf(name, number)
			Expect(f.hub.Create(ctx, definition)).To(Succeed())
		}
		for _, cluster := range f.names {
			runsThere(cluster, mill, "1.0.0")
			runsThere(cluster, oven, "2.0.0")
		}

		By("the clusters running different versions of their own")
		own := func(cluster, name string, versions ...*kudo.OperatorVersion) {
			GinkgoHelper()
			Expect(environment.Edit(ctx, f.hub, f.addOn(cluster, name), func(a *addonv1alpha1.ManagedClusterAddOn) {
				a.Spec.Configs = nil
				for _, v := range versions {
					a.Spec.Configs = append(a.Spec.Configs, upstream.AddOnConfig{
						ConfigGroupResource: resourceOf(v), ConfigReferent: upstream.ConfigReferent{Namespace: v.Namespace, Name: v.Name},
					})
				}
			})).To(Succeed())
		}
		own("cluster1", mill, mills["2.0.0"])
		own("cluster1", oven, ovens["2.0.0"])
		own("cluster2", mill, mills["1.0.0"])
		own("cluster2", oven, ovens["2.5.0"])
		runsThere("cluster1", mill, "2.0.0")
		runsThere("cluster2", oven, "2.5.0")

		By("both rollouts starting on different clusters")
		for _, name := range []string{mill, oven} {
			f.edit(ctx, name, func(d *addonv1alpha1.ClusterManagementAddOn) { d.Spec.InstallStrategy = strategyOf(name, "3.0.0") })
		}
		const waits, queued = addonv1alpha1.ReasonWaitingForDependencies, addonv1alpha1.ReasonWaitingForConfiguration
		for _, next := range []struct{ cluster, name, reason string }{
			{"cluster1", mill, waits}, {"cluster2", oven, waits}, {"cluster2", mill, queued}, {"cluster1", oven, queued},
		} {
			own(next.cluster, next.name)
			f.expectCondition(ctx, next.cluster, next.name, addonv1alpha1.ConditionResolved, metav1.ConditionFalse, next.reason)
		}

		By("why naming both")
		explain := func(cluster, name string) string {
			GinkgoHelper()
			return must(output(ctx, filepath.Join(programs, "kubectl-addon"), "why", name, "--cluster", cluster, "--kubeconfig", f.box.Hub().Kubeconfig()))
		}
		const patch = `[{"op":"add","path":"/spec/installStrategy/placements/0/rolloutStrategy/progressive/maxConcurrency","value":2}]`
		for _, cluster := range f.names {
			for _, name := range []string{mill, oven} {
				Expect(explain(cluster, name)).To(And(
					ContainSubstring("The rollouts of mill and oven wait for each other, so they do not continue. "+
						"mill occupies its slot on cluster1, where it waits for a change of oven that has not been rolled out there. "+
						"oven occupies its slot on cluster2, where it waits for a change of mill that has not been rolled out there. "+
						"Raise maxConcurrency of mill to 2, so that its change reaches cluster cluster2."),
					ContainSubstring("kubectl patch clustermanagementaddon mill --type=json --patch='"+patch+"'")), "%s on %s", name, cluster)
			}
		}

		By("the command ending both rollouts")
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: mill}}
		Expect(f.hub.Patch(ctx, definition, client.RawPatch(types.JSONPatchType, []byte(patch)))).To(Succeed())
		for _, cluster := range f.names {
			runsThere(cluster, mill, "3.0.0")
			runsThere(cluster, oven, "3.0.0")
		}
	})

	It("removes a stack that a Placement disables at once, dependents first", func(ctx SpecContext) {
		for _, name := range f.names {
			f.label(ctx, name, "")
			for _, of := range stack {
				f.expectGone(ctx, f.hub, f.addOn(name, of), &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: of}})
			}
			Expect(f.removals(name)).To(Equal(stack), name)
		}
	})
})

// stackPackage returns a version of the package of an add-on of the stack.
func stackPackage(i int, version string) *kudo.OperatorVersion {
	v := shopPackage(version)
	v.Name, v.Spec.Operator.Name = stack[i]+"-"+version, stack[i]
	if i+1 < len(stack) {
		v.Spec.Dependencies = []kudo.DependencyConstraint{{Name: stack[i+1], Version: stackVersions[version]}}
	}
	if i == 1 && version == "4.0.0" {
		v.Spec.Dependencies[0].Version = stackVersions["2.0.0"]
	}
	return v
}

// resize sets the label by which a dependency selects clusters.
func (f *ocmFleet) resize(ctx context.Context, name, size string) {
	GinkgoHelper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(environment.Edit(ctx, f.hub, cluster, func(c *clusterv1.ManagedCluster) { c.Labels["size"] = size })).To(Succeed())
}

// removals returns the add-ons of the stack in the order in which the agent has deleted their Deployments.
func (f *ocmFleet) removals(cluster string) []string {
	GinkgoHelper()
	var removed []string
	for _, e := range entriesOf(f.box.Cluster(cluster).AuditLog()) {
		if e.Verb == "delete" && e.Is("deployments", "") && e.IsSuccess() && slices.Contains(stack, e.ObjectRef.Name) && !slices.Contains(removed, e.ObjectRef.Name) {
			removed = append(removed, e.ObjectRef.Name)
		}
	}
	return removed
}

// replica runs a replica of addon-manager, which is killed after the spec.
func replica(arguments []string) *exec.Cmd {
	GinkgoHelper()
	manager := exec.Command(programs+"/addon-manager", append(slices.Clone(arguments), "--leader-elect=true", "--leader-election-namespace=tandem-system",
		"--metrics-bind-address=0", "--health-probe-bind-address=0")...)
	manager.Stdout, manager.Stderr = GinkgoWriter, GinkgoWriter
	Expect(manager.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = manager.Process.Kill() // a spec may have done so
		_ = manager.Wait()
	})
	return manager
}

// freeAddress returns an address that no other program listens on.
func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}
