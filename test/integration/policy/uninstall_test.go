package policy

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// fleetSize requires more than one page.
const fleetSize = 110

// interrupter cancels a context as soon as a text is written.
type interrupter struct {
	bytes.Buffer
	word string
	end  func()
}

func (i *interrupter) Write(text []byte) (int, error) {
	if i.word != "" && bytes.Contains(text, []byte(i.word)) {
		i.end()
	}
	return i.Buffer.Write(text)
}

var _ = Describe("Uninstalling", Label(environment.Mutating), Ordered, func() {
	var (
		old                                    *site
		admin                                  client.WithWatch
		required, preferred, own, waits, works types.NamespacedName
		unconverted                            types.NamespacedName // no writer in v1beta1, and no conversion when it changes
	)
	children := []string{"child-a", "child-b"}
	elsewhere()
	elected := func(options *hub.Options) {
		options.LeaderElection, options.LeaderElectionNamespace = true, "tandem-system"
	}
	uninstall := func(ctx context.Context, out *interrupter) error {
		config := rest.CopyConfig(old.Config)
		config.Impersonate.UserName = addonManager // with the permissions of addon-manager on a real hub
		return hub.Uninstall(ctx, config, old.options(), out)
	}
	all := func(ctx context.Context) []addonv1alpha1.ManagedClusterAddOn {
		GinkgoHelper()
		var list addonv1alpha1.ManagedClusterAddOnList
		Expect(admin.List(ctx, &list)).To(Succeed())
		return list.Items
	}
	// verdicts returns the number of add-ons with unmet required dependencies.
	verdicts := func(ctx context.Context) int {
		GinkgoHelper()
		count := 0
		for _, addOn := range all(ctx) {
			if seenOf(addOn.Status.Conditions, "Degraded") == requiredUnmet {
				count++
			}
		}
		return count
	}
	// planManaged creates an add-on that runs an OperatorVersion.
	planManaged := func(ctx context.Context, version string, needs ...addonv1alpha1.AddonDependency) types.NamespacedName {
		GinkgoHelper()
		key := enable(ctx, admin, needs...)
		redefine(ctx, admin, key.Name, runs(version))
		return key
	}
	said := func(ctx context.Context, c client.Client, version string, key types.NamespacedName, conditions ...metav1.Condition) {
		GinkgoHelper()
		Eventually(func() error { return writeStatus(ctx, admin, c, version, key, statusWrite{conditions: conditions}) }).WithContext(ctx).Should(Succeed())
	}

	// label applies the ClusterManagementAddOn of an add-on in a version.
	label := func(ctx context.Context, version string) error {
		applied := &unstructured.Unstructured{}
		applied.SetGroupVersionKind(schema.GroupVersionKind{Group: addOnGroup, Version: version, Kind: "ClusterManagementAddOn"})
		applied.SetName(required.Name)
		applied.SetLabels(map[string]string{"applied": version})
		return admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("applier"), client.ForceOwnership)
	}

	BeforeAll(func(ctx SpecContext) {
		old = startSite()
		admin = old.as("")
		old.furnish(ctx, "hub", "admission")
		old.runHub(withWebhooks(old), elected)
		old.untilEnforced(ctx)

		version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: kudo.DefaultPackagesNamespace, Name: "some-1.0.0"}}
		version.Spec.Operator.Name, version.Spec.Version = "some", "1.0.0"
		version.Spec.Plans = map[string]kudo.Plan{kudo.DeployPlan: {}}
		Expect(admin.Create(ctx, version)).To(Succeed())

		required, preferred = enable(ctx, admin, needs("Required")), enable(ctx, admin, needs("Optional"))
		unconverted = enable(ctx, admin, needs("Optional"))
		own = enable(ctx, admin)
		waits, works = planManaged(ctx, "some-1.0.0", needs("Required")), planManaged(ctx, "some-1.0.0")
		Eventually(reportedCondition(admin, waits, "Resolved")).WithContext(ctx).Should(HaveField("Reason", addonv1alpha1.ReasonWaitingForDependencies))
		Eventually(reportedCondition(admin, works, "Resolved")).WithContext(ctx).ShouldNot(Equal(none))
		parent := &kudo.Instance{}
		Eventually(func() error { return admin.Get(ctx, works, parent) }).WithContext(ctx).Should(Succeed())
		for _, child := range children {
			instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: child}}
			instance.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parent, kudo.GroupVersion.WithKind("Instance"))}
			instance.Spec.OperatorVersion.Name = version.Name
			Expect(admin.Create(ctx, instance)).To(Succeed())
		}
		for _, key := range []types.NamespacedName{preferred, unconverted} {
			Eventually(reportedCondition(admin, key, "Degraded")).WithContext(ctx).Should(Equal(optionalUnmet))
		}
		for _, key := range []types.NamespacedName{required, preferred, own} {
			said(ctx, old.asOCM(), "v1beta1", key, leaseUpdated) // by a writer of the version to be removed
		}
		Eventually(func() error { return label(ctx, "v1beta1") }).WithContext(ctx).Should(Succeed())
		said(ctx, old.asOCM(), "v1alpha1", own, ownDegraded)
		said(ctx, old.asAgent(cluster), "v1alpha1", waits, condition("Available", "False", addonv1alpha1.ReasonNotInstalled, ""))
		Eventually(reportedCondition(admin, required, "Available")).WithContext(ctx).Should(Equal(gated))

		define(ctx, admin, "fleet", needs("Required"))
		for i := range fleetSize {
			name := fmt.Sprintf("fleet-%03d", i)
			Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
			Expect(admin.Create(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "fleet"}})).To(Succeed())
		}
		Eventually(verdicts).WithContext(ctx).Should(Equal(fleetSize + 2))
	})

	It("is refused while an addon-manager leads, and nothing has changed", func(ctx SpecContext) {
		before := all(ctx)
		out := &interrupter{}
		Expect(uninstall(ctx, out)).To(MatchError(And(
			ContainSubstring("holds Lease tandem-system/tandem-addon-manager"), ContainSubstring("scale deployment addon-manager --replicas=0"))))
		Expect(out.String()).To(BeEmpty())
		Expect(all(ctx)).To(Equal(before))
	})

	It("is refused while an addon-manager works without a Lease, and nothing has changed", func(ctx SpecContext) {
		stopHub()
		Eventually(func(g Gomega) {
			lease := &coordinationv1.Lease{}
			g.Expect(admin.Get(ctx, types.NamespacedName{Namespace: "tandem-system", Name: "tandem-addon-manager"}, lease)).To(Succeed())
			g.Expect(lease.Spec.HolderIdentity).To(HaveValue(BeEmpty()))
		}).WithContext(ctx).Should(Succeed())
		said(ctx, admin, "v1alpha1", unconverted, condition("Degraded", "False", "AllIsWell", ""))
		old.runHub()
		Eventually(reportedCondition(admin, unconverted, "Degraded")).WithContext(ctx).Should(Equal(optionalUnmet), "the hub works")
		out := &interrupter{}
		Expect(uninstall(ctx, out)).To(MatchError(ContainSubstring("an addon-manager is running without a Lease")))
		Expect(out.String()).To(BeEmpty())
		Expect(verdicts(ctx)).To(Equal(fleetSize + 2))
		said(ctx, old.asOCM(), "v1alpha1", required, leaseUpdated)
		Expect(reportedCondition(admin, required, "Available")(Default, ctx)).To(Equal(gated), "the policies stand")
		stopHub()
	})

	It("is refused while an addon-manager converts without a Lease, and nothing has changed", func(ctx SpecContext) {
		old.runHub(withWebhooks(old))
		Eventually(func() error { return admin.Get(ctx, required, addOnIn("v1beta1", required)) }).WithContext(ctx).Should(Succeed())
		before := all(ctx)
		out := &interrupter{}
		Expect(uninstall(ctx, out)).To(MatchError(ContainSubstring("an addon-manager is running and would restore everything: it converts")))
		Expect(out.String()).To(BeEmpty())
		Expect(all(ctx)).To(Equal(before))
		stopHub()
	})

	It("may be interrupted", func(ctx SpecContext) {
		interrupted, end := context.WithCancel(ctx)
		Expect(uninstall(interrupted, &interrupter{word: "released", end: end})).To(MatchError(context.Canceled))
		Expect(verdicts(ctx)).To(And(BeNumerically(">", 0), BeNumerically("<", fleetSize)))
	})

	It("leaves nothing False, and nothing that is enforced", func(ctx SpecContext) {
		out := &interrupter{}
		Expect(uninstall(ctx, out)).To(Succeed())
		Expect(out.String()).To(And(ContainSubstring("released"), HaveSuffix("depends on addon-manager\n")))
		for _, name := range append(slices.Clone(children), works.Name) {
			Expect(out.String()).To(ContainSubstring(cluster + "/" + name))
		}
		Expect(out.String()).To(ContainSubstring("as of Kubernetes 1.37: ClusterManagementAddOn " + required.Name + "\n"))

		for _, addOn := range all(ctx) {
			available, degraded := seenOf(addOn.Status.Conditions, "Available"), seenOf(addOn.Status.Conditions, "Degraded")
			Expect(available.Status).NotTo(Equal("False"), "%s/%s", addOn.Namespace, addOn.Name)
			Expect(degraded.Reason).NotTo(ContainSubstring("DependencyNotSatisfied"), "%s/%s", addOn.Namespace, addOn.Name)
		}
		Expect(reportedCondition(admin, preferred, "Available")(Default, ctx)).To(Equal(of(leaseUpdated)), "what others say stays")
		Expect(reportedCondition(admin, own, "Degraded")(Default, ctx)).To(Equal(of(ownDegraded)), "what others say stays")

		for _, kind := range []string{"MutatingAdmissionPolicy", "ValidatingAdmissionPolicy", "ValidatingWebhookConfiguration"} {
			for _, suffix := range []string{"", "Binding"} {
				if kind == "ValidatingWebhookConfiguration" && suffix != "" {
					continue
				}
				list := &unstructured.UnstructuredList{}
				list.SetAPIVersion("admissionregistration.k8s.io/v1")
				list.SetKind(kind + suffix + "List")
				Expect(admin.List(ctx, list, client.MatchingLabels{"app.kubernetes.io/part-of": "tandem"})).To(Succeed())
				Expect(list.Items).To(BeEmpty(), list.GetKind())
			}
		}
	})

	It("keeps what an Instance that runs is held by, and gives up the rest", func(ctx SpecContext) {
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		Expect(admin.Get(ctx, works, addOn)).To(Succeed())
		Expect(addOn.Finalizers).To(ConsistOf(kudo.Finalizer))
		Expect(seenOf(addOn.Status.Conditions, "Resolved")).NotTo(Equal(none))
		Expect(addOn.Status.HealthCheck.Mode).To(Equal(upstream.HealthCheckModeCustomized))
		Expect(admin.Get(ctx, works, &kudo.Instance{})).To(Succeed())

		Expect(admin.Get(ctx, waits, addOn)).To(Succeed())
		Expect(addOn.Finalizers).To(BeEmpty())
		Expect(addOn.Status.Conditions).To(BeEmpty())
		Expect(addOn.Status.HealthCheck.Mode).To(BeEmpty())
	})

	It("leaves definitions that convert nothing, in which all users can apply", func(ctx SpecContext) {
		var definitions apiextensionsv1.CustomResourceDefinitionList
		Expect(admin.List(ctx, &definitions)).To(Succeed())
		for _, definition := range definitions.Items {
			Expect(definition.Spec.Versions).To(HaveLen(1), definition.Name)
			Expect(definition.Spec.Conversion.Strategy).To(Equal(apiextensionsv1.NoneConverter), definition.Name)
		}
		Eventually(func() error {
			object := addOnIn("v1alpha1", required)
			return serverSideApply(ctx, old.asOCM(), object, statusWrite{conditions: []metav1.Condition{workApplied}})
		}).WithContext(ctx).Should(Succeed())
		Expect(reportedCondition(admin, required, "Available")(Default, ctx)).To(Equal(of(workApplied)))
	})

	It("names the objects that it may not write and in which no user can apply, and how to change that", func(ctx SpecContext) {
		Expect(label(ctx, "v1alpha1")).To(MatchError(ContainSubstring("request to convert CR to an invalid group/version")))
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: required.Name}}
		patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`))
		Expect(admin.Patch(ctx, definition, patch)).To(Succeed())
		Expect(label(ctx, "v1alpha1")).To(Succeed())
	})

	It("never touches the definitions of a stock OCM", func(ctx SpecContext) {
		foreign := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "managedclusters.cluster.open-cluster-management.io"}}
		Expect(environment.Edit(ctx, admin, foreign, func(d *apiextensionsv1.CustomResourceDefinition) { // as the API server does
			version := d.Spec.Versions[0].DeepCopy()
			version.Name, version.Storage = "v2", false
			d.Spec.Versions = append(d.Spec.Versions, *version)
			url := "https://127.0.0.1:1/convert"
			d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url}, ConversionReviewVersions: []string{"v1"},
				},
			}
		})).To(Succeed())
		Expect(uninstall(ctx, &interrupter{})).To(Succeed())
		stays := &apiextensionsv1.CustomResourceDefinition{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(foreign), stays)).To(Succeed())
		Expect(stays.Spec).To(Equal(foreign.Spec))
	})

	It("changes nothing when it is repeated", func(ctx SpecContext) {
		before := all(ctx)
		out := &interrupter{}
		Expect(uninstall(ctx, out)).To(Succeed())
		Expect(all(ctx)).To(Equal(before))
		Expect(strings.Split(strings.TrimSpace(out.String()), "\n")).To(HaveLen(3), "what runs, how to end it, and that it is done: %s", out)
	})

	It("is undone by installing again: the verdicts return", func(ctx SpecContext) {
		for _, folder := range []string{"crds", "hub", "admission"} {
			old.applyServed(ctx, folder)
		}
		old.runHub(withWebhooks(old), elected)
		Eventually(func(g Gomega) {
			for _, addOn := range all(ctx) {
				if addOn.Name == "fleet" || addOn.Name == required.Name {
					g.Expect(seenOf(addOn.Status.Conditions, "Degraded")).To(Equal(requiredUnmet), addOn.Namespace)
				}
			}
		}).WithContext(ctx).Should(Succeed())
		Eventually(func(g Gomega) {
			object := addOnIn("v1beta1", required)
			g.Expect(admin.Get(ctx, required, object)).To(Succeed())
			g.Expect(mergePatch(ctx, old.asOCM(), object, statusWrite{conditions: []metav1.Condition{leaseUpdated}, alone: true})).To(Succeed())
			g.Expect(seenOf(conditionsOf(object), "Available")).To(Equal(gated))
		}).WithContext(ctx).Should(Succeed())
	})
})
