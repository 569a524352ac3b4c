package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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

// The specs act as addon-manager and the agents.
var _ = Describe("what-if", func() {
	BeforeEach(func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kudo.DefaultPackagesNamespace}}
		Expect(client.IgnoreAlreadyExists(hub.Create(ctx, namespace))).To(Succeed())
		DeferCleanup(func(ctx context.Context) { // no controller deletes it here, and another spec requires that none exists
			Expect(hub.Delete(ctx, namespace)).To(Succeed())
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
			namespace.Spec.Finalizers = nil
			Expect(hub.SubResource("finalize").Update(ctx, namespace)).To(Succeed())
		})
	})
	// push stores a version of an operator with more fields of operator.yaml.
	push := func(ctx context.Context, operator, version, more string) {
		GinkgoHelper()
		dir := packageDir(configMap)
		Expect(os.WriteFile(filepath.Join(dir, "operator.yaml"), []byte(fmt.Sprintf("name: %s\noperatorVersion: %s\n%s\n"+
			"tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]\n"+
			"plans: {deploy: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}, backup: {}}\n", operator, version, more)), 0o600)).To(Succeed())
		Expect(run(ctx, "package", "push", dir).err).NotTo(HaveOccurred())
	}
	// define creates the definition of an add-on that runs a version by default; empty if it runs no package.
	define := func(ctx context.Context, name, version string, needs ...addonv1alpha1.AddonDependency) {
		GinkgoHelper()
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		definition.Spec.Dependencies = needs
		if version != "" {
			definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{
				ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
				DefaultConfig:       &upstream.ConfigReferent{Namespace: kudo.DefaultPackagesNamespace, Name: name + "-" + version},
			}}
		}
		Expect(hub.Create(ctx, definition)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, definition)).To(Succeed()) })
	}
	// enable creates an add-on that is available and, if a version is given, its Instance, which has deployed the version.
	enable := func(ctx context.Context, cluster, name, version string) {
		GinkgoHelper()
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
		Expect(hub.Create(ctx, addOn)).To(Succeed())
		Expect(environment.EditStatus(ctx, hub, addOn, func(a *addonv1alpha1.ManagedClusterAddOn) {
			meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
				Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonPlanComplete,
			})
		})).To(Succeed())
		if version == "" {
			return
		}
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(addOn, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))}}}
		instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: kudo.DefaultPackagesNamespace, Name: name + "-" + version}
		Expect(hub.Create(ctx, instance)).To(Succeed())
		Expect(environment.EditStatus(ctx, hub, instance, func(i *kudo.Instance) {
			stored := &kudo.OperatorVersion{}
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: kudo.DefaultPackagesNamespace, Name: name + "-" + version}, stored)).To(Succeed())
			reference := corev1.ObjectReference{Namespace: stored.Namespace, Name: stored.Name, UID: stored.UID}
			i.Status.Whole = &kudo.WholeVersion{OperatorVersion: reference, Version: version, Dependencies: stored.Spec.Dependencies}
			i.Status.Execution = &kudo.Execution{UID: "first", Plan: "deploy", OperatorVersion: reference, Generation: i.Generation}
			i.Status.ObservedGeneration = i.Generation
			i.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {Name: "deploy", UID: "first", Status: kudo.Complete}}
		})).To(Succeed())
	}
	// clustersOf creates clusters that report these versions of Kubernetes; an empty one is not reported.
	clustersOf := func(ctx context.Context, label string, kubernetes ...string) []string {
		GinkgoHelper()
		var clusters []string
		for _, version := range kubernetes {
			cluster := newCluster(ctx, map[string]string{"what-if": label})
			clusters = append(clusters, cluster)
			if version != "" {
				Expect(hub.Status().Patch(ctx, managedCluster(cluster), client.RawPatch(types.MergePatchType, []byte(
					`{"status":{"version":{"kubernetes":"`+version+`"}}}`)))).To(Succeed())
			}
		}
		return clusters
	}
	// allowAll lets a user get and list these resources, of all groups.
	allowAll := func(ctx context.Context, user string, resources ...string) {
		GinkgoHelper()
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: resources, Verbs: []string{"get", "list"}},
		}}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}
		for _, object := range []client.Object{role, binding} {
			Expect(hub.Create(ctx, object)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, object)).To(Succeed()) })
		}
	}

	It("disable compares the versions of alternatives, as disable and uninstall themselves do", func(ctx SpecContext) {
		push(ctx, "tea", "2.0.0", "")
		push(ctx, "mate", "1.0.0", "")
		push(ctx, "kiosk", "1.0.0", "dependencies: [{name: tea, version: '>=2'}, {name: mate, version: '>=2'}]")
		define(ctx, "tea", "2.0.0")
		define(ctx, "mate", "1.0.0")
		define(ctx, "kiosk", "1.0.0", addonv1alpha1.AddonDependency{Name: "tea", Alternatives: []string{"mate"}})
		c := clustersOf(ctx, "alternatives", "v1.36.1")[0]
		for name, version := range map[string]string{"tea": "2.0.0", "mate": "1.0.0", "kiosk": "1.0.0"} {
			enable(ctx, c, name, version)
		}
		check := func() {
			GinkgoHelper()
			Expect(run(ctx, "what-if", "disable", "tea", "--cluster", c).out).To(MatchRegexp(`kiosk +Required .*becomes unavailable`))
			const effect = "without tea, add-on kiosk becomes unavailable"
			for _, command := range []string{"disable", "uninstall"} {
				Expect(run(ctx, command, "tea", "--cluster", c, "--dry-run").out).To(ContainSubstring(effect), command)
			}
			Expect(run(ctx, "disable", "tea", "--cluster", c, "--yes").err).To(MatchError(ContainSubstring("is required by other add-ons")))
		}
		By("a constraint of the package that runs")
		check()
		By("a constraint of the declaration")
		kiosk := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "kiosk"}}
		Expect(environment.Edit(ctx, hub, kiosk, func(d *addonv1alpha1.ClusterManagementAddOn) { d.Spec.Dependencies[0].Version = ">=2" })).To(Succeed())
		check()
	})

	It("upgrade shows where a version starts, where it waits and why, and whom it affects", func(ctx SpecContext) {
		push(ctx, "brew", "1.0.0", "")
		push(ctx, "brew", "2.0.0", "kubernetesVersion: '>=1.36.0'")
		push(ctx, "malt", "1.0.0", "dependencies: [{name: brew, version: '<2'}]")
		push(ctx, "malt", "1.5.0", "dependencies: [{name: brew, version: '<3'}]")
		push(ctx, "malt", "2.0.0", "dependencies: [{name: brew, version: '>=2'}]")
		define(ctx, "brew", "1.0.0")
		define(ctx, "malt", "2.0.0", addonv1alpha1.AddonDependency{Name: "brew"})
		define(ctx, "hops", "", addonv1alpha1.AddonDependency{Name: "brew", Type: addonv1alpha1.DependencyTypeOptional, Version: "<2"})
		c := clustersOf(ctx, "upgrade", "v1.36.1", "v1.36.1", "v1.35.2", "", "v1.36.1", "v1.36.1")
		for i, cluster := range c[:5] {
			enable(ctx, cluster, "brew", []string{"1.0.0", "1.0.0", "1.0.0", "1.0.0", "2.0.0"}[i])
		}
		enable(ctx, c[0], "hops", "")
		enable(ctx, c[1], "malt", "1.0.0")
		names := []string{c[0], "$STARTS", c[1], "$DEADLOCK", c[2], "$OLD", c[3], "$UNREPORTED", c[4], "$RUNS", c[5], "$WITHOUT"}
		golden("what-if-upgrade", run(ctx, "what-if", "upgrade", "brew", "2.0.0", "--cluster", strings.Join(c, ",")), names...)
		Expect(run(ctx, "what-if", "upgrade", "brew", "brew-2.0.0", "-l", "what-if=upgrade", "-o", "jsonpath={range .groups[*]}{.outcome} {.clusters[*]}|{end}{.notEnabledOn[*]}").out).To(
			And(ContainSubstring("Waits "+c[1]+"|"), ContainSubstring("Runs "+c[4]+"|"), HaveSuffix("|")))
		Expect(run(ctx, "upgrade", "brew", "--version", "2.0.0", "--cluster", c[1], "--dry-run").out).To(ContainSubstring(
			"deadlock: malt cannot change before it; change malt to malt-1.5.0 first"))

		By("refusing what does not exist")
		absent := run(ctx, "what-if", "upgrade", "brew", "9.0.0", "-l", "what-if=upgrade")
		Expect(absent.code).To(Equal(cli.ExitFailure))
		Expect(absent.err).To(MatchError(ContainSubstring("or use an existing version: brew-2.0.0, brew-1.0.0")))
		Expect(run(ctx, "what-if", "upgrade", "brw", "2.0.0", "-l", "what-if=upgrade").err).To(MatchError(ContainSubstring("did you mean brew?")))
		Expect(run(ctx, "what-if", "upgrade", "hops", "2.0.0", "-l", "what-if=upgrade").err).To(MatchError(ContainSubstring(`add-on "hops" is not plan-based`)))
		Expect(run(ctx, "what-if", "upgrade", "brew", "2.0.0", "--cluster", c[5]).err).To(MatchError(
			ContainSubstring(`add-on "brew" is not enabled on any of the 1 selected clusters`)))

		By("naming what the user may not read")
		allowAll(ctx, "brewer", "managedclusteraddons", "clustermanagementaddons", "instances", "operatorversions", "operatorcontents", "addondeploymentconfigs")
		blind := run(ctx, "what-if", "upgrade", "brew", "2.0.0", "--cluster", c[2], "--as", "brewer")
		Expect(blind.err).NotTo(HaveOccurred())
		Expect(blind.out).To(Equal("Cluster " + c[2] + ": brew starts (brew-1.0.0 -> brew-2.0.0)\n" +
			"  unknown: whether the version supports the Kubernetes version, because you are not allowed to get ManagedCluster " + c[2] + "\n"))

		By("completing add-ons and versions")
		Expect(completions(ctx, "what-if", "upgrade", "bre")).To(Equal([]string{"brew"}))
		Expect(completions(ctx, "what-if", "upgrade", "malt", "")).To(Equal([]string{"1.0.0", "1.5.0", "2.0.0"}))
		Expect(completions(ctx, "what-if", "kubernetes", "1.3")).To(ContainElements("1.35.2", "1.36.1"))
		Expect(completions(ctx, "what-if", "kubernetes", "1.36.0", "")).To(BeEmpty())
	})

	It("kubernetes shows what an upgrade of clusters breaks and releases, and what is not known", func(ctx SpecContext) {
		push(ctx, "ferry", "1.0.0", "kubernetesVersion: '>=1.30.0 <1.36.0'")
		push(ctx, "marina", "1.0.0", "")
		push(ctx, "marina", "2.0.0", "kubernetesVersion: '1.36.0'")
		define(ctx, "ferry", "1.0.0")
		define(ctx, "marina", "2.0.0")
		from136 := &addonv1alpha1.ClusterSelector{CelSelector: &addonv1alpha1.ClusterCelSelector{CelExpressions: []string{
			`semver(managedCluster.status.version.kubernetes, true).compareTo(semver("1.36.0")) >= 0`}}}
		define(ctx, "cargo", "", addonv1alpha1.AddonDependency{Name: "crane", Clusters: from136})
		define(ctx, "store", "", addonv1alpha1.AddonDependency{Name: "cargo"})
		c := clustersOf(ctx, "kubernetes", "v1.35.2", "v1.34.1", "", "v1.36.4")
		enable(ctx, c[0], "ferry", "1.0.0")
		enable(ctx, c[1], "ferry", "1.0.0")
		enable(ctx, c[2], "ferry", "1.0.0")
		enable(ctx, c[0], "marina", "1.0.0")
		marina := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: c[0], Name: "marina"}}
		Expect(environment.Edit(ctx, hub, marina, func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "marina-2.0.0" })).To(Succeed())
		enable(ctx, c[1], "cargo", "")
		enable(ctx, c[1], "store", "")
		names := []string{c[0], "$FIRST", c[1], "$SECOND", c[2], "$UNREPORTED", c[3], "$CURRENT"}
		shown := run(ctx, "what-if", "kubernetes", "1.36", "-l", "what-if=kubernetes", "-o", "wide")
		Expect(shown.err).NotTo(HaveOccurred())
		lines := strings.Split(shown.out, "\n")
		Expect(lines[0]).To(MatchRegexp(`^ADD-ON +EFFECT +REASON +CLUSTERS$`))
		for i, line := range []string{
			`^cargo +becomes unavailable +Required dependency on crane begins to apply, and is not satisfied: NoSuchAddOn +1 \(` + c[1] + `\)$`,
			`^store +becomes unavailable +depends on cargo, which becomes unavailable: store -> cargo +1 \(` + c[1] + `\)$`,
			`^ferry +becomes unsupported +ferry-1.0.0 runs: the package requires Kubernetes >=1.30.0 <1.36.0 +3 \(`,
			`^marina +waiting change starts +marina-2.0.0 is waiting now: the package requires Kubernetes 1.36.0 +1 \(` + c[0] + `\)$`,
		} {
			Expect(lines[i+1]).To(MatchRegexp(line))
		}
		Expect(shown.out).To(And(ContainSubstring("Unknown for 1 cluster ("+c[2]+"): the current Kubernetes version, because it is not reported\n"),
			ContainSubstring("\nClusters that already run v1.36.0 or a higher version: 1 ("+c[3]+")\n")))
		golden("what-if-kubernetes", run(ctx, "what-if", "kubernetes", "1.36.0", "--cluster", c[0], "-o", "yaml"), names...)

		By("refusing what is not a version")
		wrong := run(ctx, "what-if", "kubernetes", "latest", "-A")
		Expect(wrong.code).To(Equal(cli.ExitUsage))
		Expect(wrong.err).To(MatchError(ContainSubstring(`"latest" is not a version of Kubernetes such as 1.36.0`)))

		By("naming what the user may not read")
		allowAll(ctx, "sailor", "managedclusteraddons", "clustermanagementaddons")
		blind := run(ctx, "what-if", "kubernetes", "1.36.0", "--cluster", c[1], "--as", "sailor")
		Expect(blind.err).NotTo(HaveOccurred())
		Expect(blind.out).To(And(
			HavePrefix("No add-on on these clusters is known to be affected by Kubernetes v1.36.0.\n"),
			ContainSubstring("Unknown for 1 cluster ("+c[1]+"): the current Kubernetes version, and which dependencies with clusters apply, because you are not allowed to get the ManagedCluster\n"),
			ContainSubstring("Unknown for 1 cluster ("+c[1]+"): which versions run, because you are not allowed to list the Instances of the cluster\n")))
		allowAll(ctx, "pilot", "managedclusteraddons", "clustermanagementaddons", "instances")
		Expect(run(ctx, "what-if", "kubernetes", "1.36.0", "--cluster", c[1], "--as", "pilot").out).To(ContainSubstring(
			"whether OperatorVersion ferry-1.0.0 of ferry supports the new Kubernetes version, because you are not allowed to list OperatorVersions in namespace " + kudo.DefaultPackagesNamespace))
		Expect(run(ctx, "what-if", "kubernetes", "1.36.0", "-A", "--as", "pilot").err).To(MatchError(ContainSubstring("select clusters with --cluster")))
	})
})
