package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var digests = regexp.MustCompile(`[0-9a-f]{10,}`)

// withoutDigests returns the output without the digests of charts.
func withoutDigests(got result) result {
	got.out = digests.ReplaceAllString(got.out, "DIGEST")
	return got
}

// servePlacements adds OCM's kind Placement to the hub for one spec.
func servePlacements(ctx context.Context) {
	GinkgoHelper()
	definition := &unstructured.Unstructured{}
	text := strings.NewReplacer("PlacementDecision", "Placement", "placementdecision", "placement").Replace(placementDecisions)
	Expect(yaml.Unmarshal([]byte(text), &definition.Object)).To(Succeed())
	Expect(hub.Create(ctx, definition)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, definition)).To(Succeed()) })
	placements := &unstructured.UnstructuredList{}
	placements.SetAPIVersion("cluster.open-cluster-management.io/v1beta1")
	placements.SetKind("PlacementList")
	Eventually(func() error { return hub.List(ctx, placements) }).Should(Succeed())
}

var _ = Describe("apply", func() {
	const example = "../../../examples/stack/stack.yaml"
	// stackFile writes a stack file with the given spec.
	stackFile := func(spec string) string {
		GinkgoHelper()
		file := filepath.Join(GinkgoT().TempDir(), "stack.yaml")
		Expect(os.WriteFile(file, []byte("apiVersion: kudo.dev/v1beta1\nkind: Stack\nmetadata: {name: drinks}\nspec:\n"+spec), 0o600)).To(Succeed())
		return file
	}
	clean := func(ctx context.Context, names ...string) {
		for _, name := range names {
			DeferCleanup(func(ctx context.Context) {
				var all addonv1alpha1.ManagedClusterAddOnList
				Expect(hub.List(ctx, &all)).To(Succeed())
				for i := range all.Items {
					if all.Items[i].Name == name {
						Expect(client.IgnoreNotFound(hub.Delete(ctx, &all.Items[i]))).To(Succeed())
					}
				}
				Expect(client.IgnoreNotFound(hub.Delete(ctx, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}))).To(Succeed())
			})
		}
	}
	// versionsIn returns the resource versions of everything that a stack writes.
	versionsIn := func(ctx context.Context, namespace string, clusters ...string) map[string]string {
		GinkgoHelper()
		found := map[string]string{}
		add := func(kind string, object client.Object) {
			found[fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())] = object.GetResourceVersion()
		}
		var definitions addonv1alpha1.ClusterManagementAddOnList
		var configs addonv1alpha1.AddOnDeploymentConfigList
		var versions kudo.OperatorVersionList
		var contents kudo.OperatorContentList
		var operators kudo.OperatorList
		for _, list := range []client.ObjectList{&definitions, &configs, &versions, &contents, &operators} {
			Expect(hub.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		}
		for i := range definitions.Items {
			add("definition", &definitions.Items[i])
		}
		for i := range configs.Items {
			add("config", &configs.Items[i])
		}
		for i := range versions.Items {
			add("version", &versions.Items[i])
		}
		for i := range contents.Items {
			add("content", &contents.Items[i])
		}
		for i := range operators.Items {
			add("operator", &operators.Items[i])
		}
		for _, cluster := range clusters {
			var addOns addonv1alpha1.ManagedClusterAddOnList
			Expect(hub.List(ctx, &addOns, client.InNamespace(cluster))).To(Succeed())
			for i := range addOns.Items {
				add("add-on", &addOns.Items[i])
			}
		}
		return found
	}

	It("applies the example: charts and a package with dependencies on two clusters, once", func(ctx SpecContext) {
		for _, cluster := range []string{"cluster1", "cluster2"} {
			createCluster(ctx, cluster)
		}
		namespace := newNamespace(ctx)
		clean(ctx, "certificates", "secrets", "shop")
		tried := run(ctx, "apply", "-f", example, "-n", namespace, "--dry-run")
		Expect(versionsIn(ctx, namespace, "cluster1", "cluster2")).To(BeEmpty())
		golden("apply-dry-run", withoutDigests(tried))
		golden("apply", withoutDigests(run(ctx, "apply", "-f", example, "-n", namespace)))
		written := versionsIn(ctx, namespace, "cluster1", "cluster2")
		Expect(written).To(HaveLen(3 + 3 + 3 + 2 + 3 + 6)) // definitions, configs, versions, contents, operators, add-ons

		golden("apply-again", withoutDigests(run(ctx, "apply", "-f", example, "-n", namespace, "--prune")))
		Expect(versionsIn(ctx, namespace, "cluster1", "cluster2")).To(Equal(written))

		var shop addonv1alpha1.ClusterManagementAddOn
		Expect(hub.Get(ctx, client.ObjectKey{Name: "shop"}, &shop)).To(Succeed())
		Expect(shop.Spec.Dependencies).To(ConsistOf(addonv1alpha1.AddonDependency{
			Name: "secrets", Type: addonv1alpha1.DependencyTypeRequired, Message: "Orders cannot be taken.",
		}))
		Expect(shop.ManagedFields).To(ContainElement(HaveField("Manager", "kubectl-addon-apply")))
		version := shop.Spec.SupportedConfigs[0].DefaultConfig
		Expect(hub.Get(ctx, types.NamespacedName(*version), &kudo.OperatorVersion{})).To(Succeed())
		var config addonv1alpha1.AddOnDeploymentConfig
		Expect(hub.Get(ctx, types.NamespacedName(*shop.Spec.SupportedConfigs[1].DefaultConfig), &config)).To(Succeed())
		Expect(config.Spec.AgentInstallNamespace).To(Equal("shop"))
		Expect(config.Spec.CustomizedVariables).To(ContainElement(upstream.CustomizedVariable{Name: "REPLICAS", Value: "3"}))
	})

	It("changes what has changed, and deletes what the file no longer lists", func(ctx SpecContext) {
		one, two, namespace := newCluster(ctx, nil), newCluster(ctx, nil), newNamespace(ctx)
		clean(ctx, "cups", "tea")
		dir := GinkgoT().TempDir()
		writePackage(filepath.Join(dir, "cups"), "1.0.0")
		Expect(run(ctx, "package", "push", packageDir(configMap), "-n", namespace).err).NotTo(HaveOccurred())
		addOns := func(size string) string {
			return fmt.Sprintf("  clusters: [%s, %s]\n  addOns:\n  - {name: cups, package: %s}\n  - {name: tea, package: shop@1.2.0, requires: [cups], parameters: {SIZE: %s}}\n",
				one, two, filepath.Join(dir, "cups"), size)
		}
		Expect(run(ctx, "apply", "-f", stackFile(addOns("3")), "-n", namespace).err).NotTo(HaveOccurred())
		foreseen := run(ctx, "apply", "-f", stackFile(addOns("4")), "-n", namespace, "--dry-run")
		Expect(strings.Count(foreseen.out, " configured (dry run)\n")).To(Equal(1), foreseen.out)
		Expect(foreseen.out).To(ContainSubstring("addondeploymentconfig.addon.open-cluster-management.io/tea-parameters configured (dry run)\n"))
		changed := run(ctx, "apply", "-f", stackFile(addOns("4")), "-n", namespace)
		Expect(changed.err).NotTo(HaveOccurred())
		Expect(strings.Count(changed.out, " configured")).To(Equal(1), changed.out)
		Expect(changed.out).To(ContainSubstring("addondeploymentconfig.addon.open-cluster-management.io/tea-parameters configured\n"))

		By("leaving out an add-on and a cluster")
		smaller := stackFile(fmt.Sprintf("  clusters: [%s]\n  addOns:\n  - {name: cups, package: %s}\n", one, filepath.Join(dir, "cups")))
		before := versionsIn(ctx, namespace, one, two)
		unpruned := run(ctx, "apply", "-f", smaller, "-n", namespace)
		Expect(unpruned.err).NotTo(HaveOccurred())
		Expect(unpruned.out).To(HaveSuffix("stack drinks is up to date: nothing was written\n"))
		asked := run(ctx, "apply", "-f", smaller, "-n", namespace, "--prune")
		Expect(asked.err).To(MatchError(`stack "drinks" was not applied: cannot prompt for confirmation without a terminal; use --yes, or leave out --prune`))
		Expect(asked.errOut).To(ContainSubstring("To be deleted: managedclusteraddon.addon.open-cluster-management.io/tea on " + one + "\n"))
		tried := run(ctx, "apply", "-f", smaller, "-n", namespace, "--prune", "--dry-run")
		Expect(tried.err).NotTo(HaveOccurred())
		Expect(tried.out).To(ContainSubstring("managedclusteraddon.addon.open-cluster-management.io/cups on " + two + " is being deleted (dry run)\n"))
		Expect(versionsIn(ctx, namespace, one, two)).To(Equal(before))

		first := run(ctx, "apply", "-f", smaller, "-n", namespace, "--prune", "--yes")
		Expect(first.err).NotTo(HaveOccurred())
		Expect(first.out).To(ContainSubstring("clustermanagementaddon.addon.open-cluster-management.io/tea stays: tea is enabled on "))
		Expect(first.errOut).To(HaveSuffix("Repeat the command to delete what stays for now.\n"))
		Expect(run(ctx, "apply", "-f", smaller, "-n", namespace, "--prune", "--yes").err).NotTo(HaveOccurred())
		after := versionsIn(ctx, namespace, one, two)
		Expect(after).NotTo(HaveKey(ContainSubstring("tea")))
		Expect(after).To(HaveKey("version "+namespace+"/shop-1.10-1.2.0"), "the stack has not pushed it")
		Expect(after).To(HaveKey("add-on " + one + "/cups"))
		Expect(after).NotTo(HaveKey("add-on " + two + "/cups"))
		Expect(run(ctx, "apply", "-f", smaller, "-n", namespace, "--prune").out).To(HaveSuffix("stack drinks is up to date: nothing was written\n"))
	})

	It("deletes a package that it has pushed once no Instance runs it", func(ctx SpecContext) {
		cluster, namespace := newCluster(ctx, nil), newNamespace(ctx)
		clean(ctx, "cups")
		dir := filepath.Join(GinkgoT().TempDir(), "cups")
		file := stackFile(fmt.Sprintf("  addOns:\n  - {name: cups, clusters: [%s], package: %s}\n", cluster, dir))
		writePackage(dir, "1.0.0")
		Expect(run(ctx, "apply", "-f", file, "-n", namespace).err).NotTo(HaveOccurred())
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "cups"}}
		instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: namespace, Name: "cups-1.0.0"}
		Expect(hub.Create(ctx, instance)).To(Succeed())

		writePackage(dir, "1.1.0")
		upgraded := run(ctx, "apply", "-f", file, "-n", namespace, "--prune", "--yes")
		Expect(upgraded.err).NotTo(HaveOccurred())
		Expect(upgraded.out).To(ContainSubstring("operatorversion.kudo.dev/cups-1.0.0 stays: it is in use\n"))
		Expect(environment.Edit(ctx, hub, instance, func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "cups-1.1.0" })).To(Succeed())
		Expect(run(ctx, "apply", "-f", file, "-n", namespace, "--prune", "--yes").out).To(ContainSubstring("operatorversion.kudo.dev/cups-1.0.0 deleted\n"))
		Expect(hub.Delete(ctx, instance)).To(Succeed())
	})

	It("stores long values in a ConfigMap", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		clean(ctx, "cups")
		secrets, err := filepath.Abs("../../../examples/stack/secrets")
		Expect(err).NotTo(HaveOccurred())
		stack := func(text string) string {
			return stackFile(fmt.Sprintf("  addOns:\n  - {name: cups, chart: %s, values: {podLabels: {a: %q}}}\n", secrets, text))
		}
		long := stack(strings.Repeat("x", 1100))
		Expect(run(ctx, "apply", "-f", long, "-n", namespace).out).To(ContainSubstring("configmap/cups-parameters created\n"))
		var values corev1.ConfigMap
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "cups-parameters"}, &values)).To(Succeed())
		Expect(values.Data).To(HaveKeyWithValue("POD_LABELS", ContainSubstring("xxx")))
		Expect(values.Labels).To(Equal(map[string]string{kudo.LabelConfiguration: "true", kudo.LabelStack: "drinks"}))
		Expect(run(ctx, "apply", "-f", long, "-n", namespace, "--prune").out).To(HaveSuffix("stack drinks is up to date: nothing was written\n"))
		Expect(run(ctx, "apply", "-f", stack("short"), "-n", namespace, "--prune", "--yes").out).To(ContainSubstring("configmap/cups-parameters deleted\n"))
		Expect(client.IgnoreNotFound(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "cups-parameters"}, &values))).To(Succeed())
		Expect(hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cups-parameters"}})).To(Succeed())
		Expect(run(ctx, "apply", "-f", long, "-n", namespace).err).To(MatchError(HavePrefix(`ConfigMap "cups-parameters" exists and does not belong to stack "drinks": `)))
	})

	It("leaves alone what others have created", func(ctx SpecContext) {
		cluster, namespace := newCluster(ctx, nil), newNamespace(ctx)
		clean(ctx, "cups")
		dir := filepath.Join(GinkgoT().TempDir(), "cups")
		writePackage(dir, "1.0.0")
		Expect(run(ctx, "package", "push", dir, "-n", namespace).err).NotTo(HaveOccurred())
		Expect(run(ctx, "create", "cups", "--package", "cups", "-n", namespace).err).NotTo(HaveOccurred())
		Expect(run(ctx, "enable", "cups", "--cluster", cluster, "-n", "kitchen").err).NotTo(HaveOccurred())
		file := stackFile(fmt.Sprintf("  addOns:\n  - {name: cups, clusters: [%s], package: cups}\n", cluster))
		before := versionsIn(ctx, namespace, cluster)
		Expect(run(ctx, "apply", "-f", file, "-n", namespace).err).To(MatchError(`ClusterManagementAddOn "cups" exists and does not belong to stack "drinks": ` +
			`to adopt it, run 'kubectl label clustermanagementaddon cups kudo.dev/stack=drinks'`))
		Expect(versionsIn(ctx, namespace, cluster)).To(Equal(before))

		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cups"}}
		mark := func(stack string) {
			Expect(hub.Patch(ctx, definition, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"kudo.dev/stack":"`+stack+`"}}}`)))).To(Succeed())
		}
		mark("food")
		Expect(run(ctx, "apply", "-f", file, "-n", namespace).err).To(MatchError(`ClusterManagementAddOn "cups" belongs to stack "food": remove it from that stack first`))
		mark("drinks")
		writePackage(dir, "1.1.0")
		Expect(run(ctx, "package", "push", dir, "-n", namespace).err).NotTo(HaveOccurred())
		conflict := run(ctx, "apply", "-f", file, "-n", namespace)
		Expect(conflict.err).To(MatchError(And(ContainSubstring("has fields that another writer has set"), ContainSubstring("--force-conflicts"))))
		Expect(run(ctx, "apply", "-f", file, "-n", namespace, "--force-conflicts").out).To(ContainSubstring("/cups unchanged; it was not enabled by the stack on " + cluster + "\n"))
		empty := stackFile("  addOns: []\n")
		Expect(run(ctx, "apply", "-f", empty, "-n", namespace, "--prune", "--yes").err).NotTo(HaveOccurred())
		var addOn addonv1alpha1.ManagedClusterAddOn
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "cups"}, &addOn)).To(Succeed())
		Expect(addOn.DeletionTimestamp).To(BeNil())
		Expect(hub.Get(ctx, client.ObjectKey{Name: "cups"}, definition)).To(Succeed(), "the add-on is enabled")
	})

	It("leaves the clusters of placements to OCM, and withdraws the placements first", func(ctx SpecContext) {
		cluster, namespace := newCluster(ctx, nil), newNamespace(ctx)
		clean(ctx, "cups")
		dir := filepath.Join(GinkgoT().TempDir(), "cups")
		writePackage(dir, "1.0.0")
		file := stackFile(fmt.Sprintf("  placements: [default/all]\n  addOns:\n  - {name: cups, package: %s}\n", dir))
		Expect(run(ctx, "apply", "-f", file, "-n", namespace).err).To(MatchError(HaveSuffix(":7:12: error: the hub does not serve Placements because it is not an OCM hub: use clusters")))
		servePlacements(ctx)
		Expect(run(ctx, "apply", "-f", file, "-n", namespace).err).NotTo(HaveOccurred())
		definition := &addonv1alpha1.ClusterManagementAddOn{}
		Expect(hub.Get(ctx, client.ObjectKey{Name: "cups"}, definition)).To(Succeed())
		Expect(definition.Spec.InstallStrategy.Placements).To(ConsistOf(HaveField("PlacementRef", upstream.PlacementRef{Namespace: "default", Name: "all"})))
		Expect(versionsIn(ctx, namespace, cluster)).NotTo(HaveKey("add-on " + cluster + "/cups"))
		Expect(run(ctx, "apply", "-f", file, "-n", namespace).out).To(HaveSuffix("stack drinks is up to date: nothing was written\n"))

		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "cups"}} // as OCM does
		Expect(hub.Create(ctx, addOn)).To(Succeed())
		empty := stackFile("  addOns: []\n")
		pruned := run(ctx, "apply", "-f", empty, "-n", namespace, "--prune", "--yes")
		Expect(pruned.err).NotTo(HaveOccurred())
		Expect(pruned.out).To(ContainSubstring("clustermanagementaddon.addon.open-cluster-management.io/cups has no placements any more, and stays: cups is enabled on " + cluster + "\n"))
		Expect(hub.Get(ctx, client.ObjectKey{Name: "cups"}, definition)).To(Succeed())
		Expect(definition.Spec.InstallStrategy).To(Equal(upstream.InstallStrategy{Type: upstream.AddonInstallStrategyManual}))
		Expect(hub.Delete(ctx, addOn)).To(Succeed()) // as OCM does
		Expect(run(ctx, "apply", "-f", empty, "-n", namespace, "--prune", "--yes").err).NotTo(HaveOccurred())
		Expect(versionsIn(ctx, namespace, cluster)).To(HaveLen(1), "the Operator")
	})

	It("reports every mistake of a file with line and column, and writes nothing", func(ctx SpecContext) {
		cluster, namespace := newCluster(ctx, nil), newNamespace(ctx)
		charts, err := filepath.Abs("../../../examples/stack")
		Expect(err).NotTo(HaveOccurred())
		Expect(run(ctx, "package", "push", packageDir(configMap), "-n", namespace).err).NotTo(HaveOccurred())
		file := stackFile(`  addOns:
  - name: cups
    package: shoop
    clusters: [` + cluster + `x]
  - name: tea
    package: shop
    parameters: {SIZES: 3}
    requires: [milk]
  - name: secrets
    chart: ` + charts + `/secrets
    requires: [juice]
    values:
      replicas: 9
      rotation: weekly
  - name: juice
    chart: ` + charts + `/secrets
    requires: [secrets]
    values: {replica: 3, image: {tags: x}, podLabels: 3}
`)
		got := run(ctx, "apply", "-f", file, "-n", namespace)
		golden("apply-mistakes", result{out: "error: " + strings.NewReplacer(file, "stack.yaml", charts, ".", cluster, "$CLUSTER").Replace(got.err.Error()) + "\n"})
		Expect(got.out).To(BeEmpty())
		Expect(versionsIn(ctx, namespace, cluster)).To(HaveLen(2), "only the package that was pushed")
	})
})
