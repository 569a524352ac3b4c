package cli

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

var _ = Describe("create", func() {
	// pushed pushes packages called cups and tea in version 1.0.0 to a new namespace, and returns it.
	pushed := func(ctx context.Context) string {
		GinkgoHelper()
		namespace, dir := newNamespace(ctx), GinkgoT().TempDir()
		for _, name := range []string{"cups", "tea"} {
			writePackage(filepath.Join(dir, name), "1.0.0")
			Expect(run(ctx, "package", "push", filepath.Join(dir, name), "-n", namespace).err).NotTo(HaveOccurred())
		}
		for _, name := range []string{"cups", "tea"} {
			DeferCleanup(func(ctx context.Context) {
				Expect(client.IgnoreNotFound(hub.Delete(ctx, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}))).To(Succeed())
			})
		}
		return namespace
	}
	stored := func(ctx context.Context, name string) *addonv1alpha1.ClusterManagementAddOn {
		GinkgoHelper()
		definition := &addonv1alpha1.ClusterManagementAddOn{}
		Expect(hub.Get(ctx, client.ObjectKey{Name: name}, definition)).To(Succeed())
		return definition
	}

	It("creates an add-on that can be enabled, once", func(ctx SpecContext) {
		namespace := pushed(ctx)
		golden("create", run(ctx, "create", "cups", "--package", "cups", "-n", namespace))
		got := run(ctx, "create", "tea", "--package", "tea@1.0.0", "--requires", "cups", "--optional", "milk@>=3.5 <4", "--message", "cups=It is spilled.", "-n", namespace)
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.errOut).To(Equal("Warning: spec.dependencies[1]: ClusterManagementAddOn \"milk\" does not exist yet\n"))
		definition := stored(ctx, "tea")
		Expect(definition.Spec.Dependencies).To(Equal([]addonv1alpha1.AddonDependency{
			{Name: "cups", Type: addonv1alpha1.DependencyTypeRequired, Message: "It is spilled."},
			{Name: "milk", Type: addonv1alpha1.DependencyTypeOptional, Version: ">=3.5 <4"},
		}))
		Expect(definition.ManagedFields).To(ContainElement(HaveField("Manager", "kubectl-addon")))

		again := run(ctx, "create", "tea", "--package", "tea", "--requires", "cups", "--optional", "milk@>=3.5 <4", "--message", "cups=It is spilled.", "-n", namespace)
		Expect(again.err).NotTo(HaveOccurred())
		Expect(again.out).To(HaveSuffix("/tea unchanged\n"))
		Expect(stored(ctx, "tea").ResourceVersion).To(Equal(definition.ResourceVersion))

		other := run(ctx, "create", "tea", "--package", "cups", "-n", namespace)
		Expect(other.err).To(MatchError(HavePrefix(`ClusterManagementAddOn "tea" already exists with other spec.supportedConfigs and spec.dependencies: change it with`)))
		Expect(stored(ctx, "tea").ResourceVersion).To(Equal(definition.ResourceVersion))

		cluster := newCluster(ctx, nil)
		Expect(run(ctx, "enable", "tea", "--with-dependencies", "--cluster", cluster, "-n", "kitchen").err).NotTo(HaveOccurred())
	})

	It("prints the object and writes nothing", func(ctx SpecContext) {
		namespace := pushed(ctx)
		golden("create-dry-run", run(ctx, "create", "cups", "--package", "cups", "-n", namespace, "--dry-run"), namespace, "$NAMESPACE")
		Expect(run(ctx, "create", "cups", "--package", "cups", "-n", namespace, "-o", "jsonpath={.metadata.name}").out).To(Equal("cups"))
		Expect(hub.Get(ctx, client.ObjectKey{Name: "cups"}, &addonv1alpha1.ClusterManagementAddOn{})).To(MatchError(ContainSubstring("not found")))
		wrong := run(ctx, "create", "cups", "--package", "cups", "-n", namespace, "--optional", "milk@new", "--dry-run")
		Expect(wrong.err).To(MatchError(ContainSubstring(`add-on "milk" has version "new", which is not a constraint such as >=3.8 <5`)))
	})

	It("completes packages and add-ons", func(ctx SpecContext) {
		namespace := pushed(ctx)
		Expect(run(ctx, "create", "cups", "--package", "cups", "-n", namespace).err).NotTo(HaveOccurred())
		Expect(completions(ctx, "create", "tea", "-n", namespace, "--package", "t")).To(Equal([]string{"tea-1.0.0"}))
		Expect(completions(ctx, "create", "tea", "--requires", "cu")).To(Equal([]string{"cups"}))
		Expect(completions(ctx, "create", "tea", "--optional", "milk,cu")).To(Equal([]string{"milk,cups"}))
		Expect(completions(ctx, "create", "")).To(BeEmpty())
	})

	It("names what is missing or circular, and writes nothing", func(ctx SpecContext) {
		namespace := pushed(ctx)
		Expect(run(ctx, "create", "cups", "--package", "cups", "-n", namespace).err).NotTo(HaveOccurred())
		for _, refused := range []struct {
			args []string
			want string
		}{
			{[]string{"--package", "tee"}, `package "tee" not found: did you mean tea?`},
			{[]string{"--package", "tea@2.0.0"}, `OperatorVersion tea-2.0.0 does not exist: push its package first (kubectl addon package push DIR), or use an existing version: tea-1.0.0`},
			{[]string{"--package", "tea", "--requires", "cup"}, `add-on "tea": required add-on "cup" does not exist (did you mean cups?)`},
			{[]string{"--package", "tea", "--requires", "cups,tea"}, `add-on "tea": add-on "tea" depends on itself: remove the entry`},
			{[]string{"--package", "tea", "--requires", "cups", "--optional", "cups"}, `add-on "tea": add-on "cups" is listed twice: remove one of the entries`},
		} {
			Expect(run(ctx, append([]string{"create", "tea", "-n", namespace}, refused.args...)...).err).To(MatchError(refused.want))
		}
		Expect(run(ctx, "create", "tea", "--package", "tea", "--requires", "cups", "-n", namespace).err).NotTo(HaveOccurred())
		Expect(hub.Delete(ctx, stored(ctx, "cups"))).To(Succeed())
		Expect(run(ctx, "create", "cups", "--package", "cups", "--optional", "tea", "-n", namespace).err).To(MatchError(
			`add-on "cups": circular dependency: cups -> tea -> cups: remove the entry, or another dependency of this cycle`))
		Expect(hub.Get(ctx, client.ObjectKey{Name: "cups"}, &addonv1alpha1.ClusterManagementAddOn{})).To(MatchError(ContainSubstring("not found")))
	})

	It("declares dependencies in the annotation on a hub with OCM's resource definitions", func(ctx SpecContext) {
		namespace := pushed(ctx)
		Expect(run(ctx, "create", "cups", "--package", "cups", "-n", namespace).err).NotTo(HaveOccurred())
		withoutDependencies(ctx)
		Expect(run(ctx, "create", "tea", "--package", "tea", "--requires", "cups", "-n", namespace).err).NotTo(HaveOccurred())
		Expect(stored(ctx, "tea").Annotations).To(HaveKeyWithValue(addonv1alpha1.AnnotationDependencies, `[{"name":"cups","type":"Required"}]`))
		Expect(run(ctx, "create", "tea", "--package", "tea", "--requires", "cups", "-n", namespace).out).To(HaveSuffix("/tea unchanged\n"))
	})
})

// withoutDependencies makes the hub's ClusterManagementAddOns those of OCM for one spec: without spec.dependencies.
func withoutDependencies(ctx context.Context) {
	GinkgoHelper()
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	Expect(hub.Get(ctx, types.NamespacedName{Name: "clustermanagementaddons.addon.open-cluster-management.io"}, definition)).To(Succeed())
	original := definition.DeepCopy()
	versions := definition.Object["spec"].(map[string]any)["versions"].([]any)
	for _, version := range versions {
		unstructured.RemoveNestedField(version.(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties", "dependencies")
	}
	Expect(hub.Update(ctx, definition)).To(Succeed())
	trial := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"dependencies": []any{map[string]any{"name": "x"}}}}}
	trial.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn"))
	trial.SetName("trial")
	admits := func(ctx context.Context) error {
		return hub.Create(ctx, trial.DeepCopy(), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	}
	DeferCleanup(func(ctx context.Context) {
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(original), definition)).To(Succeed())
		original.SetResourceVersion(definition.GetResourceVersion())
		Expect(hub.Update(ctx, original)).To(Succeed())
		Eventually(admits).WithContext(ctx).Should(Succeed())
	})
	Eventually(admits).WithContext(ctx).Should(MatchError(ContainSubstring("unknown field")))
}
