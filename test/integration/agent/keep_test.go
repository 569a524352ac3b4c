package agent

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// keepsakes is the API group of a kind that packages keep.
const keepsakes = "kept.tandem.test"

// keepsake is an object of that kind.
func keepsake(name, namespace string) *unstructured.Unstructured {
	o := gadget(name, namespace)
	o.SetAPIVersion(keepsakes + "/v1")
	return o
}

// definitionOf reads the definition of that kind; nil if it does not exist.
func definitionOf(ctx context.Context) *unstructured.Unstructured {
	GinkgoHelper()
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	err := managed.Get(ctx, client.ObjectKey{Name: "gadgets." + keepsakes}, definition)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	if err != nil {
		return nil
	}
	return definition
}

// keeper returns a package that keeps a definition, as Helm charts do, and a ConfigMap, and that has others and a custom resource.
func keeper() kudo.OperatorVersionSpec {
	spec := configOnly()
	spec.Templates["definition.yaml"] = strings.NewReplacer("tandem.test", keepsakes,
		"metadata: {", "metadata: {annotations: {helm.sh/resource-policy: keep}, ").Replace(definitionTemplate)
	spec.Templates["gadget.yaml"] = strings.ReplaceAll(gadgetTemplate, "tandem.test", keepsakes)
	spec.Templates["kept.yaml"] = strings.Replace(fmt.Sprintf(configTemplate, "kept"), "metadata: {", `metadata: {annotations: {kudo.dev/keep: "true"}, `, 1)
	spec.Tasks = []kudo.Task{
		task("definition", kudo.TaskApply, "definition.yaml"),
		task("config", kudo.TaskApply, "config.yaml", "kept.yaml"),
		task("gadget", kudo.TaskApply, "gadget.yaml"),
	}
	spec.Plans["deploy"] = serial("definition", "config", "gadget")
	return spec
}

// beFree matches an object that the Instance has released: nothing deletes it with the mirror, and no field belongs to the agent's applies.
func (h *hubPart) beFree() OmegaMatcher {
	applies := func(o client.Object) bool {
		for _, entry := range o.GetManagedFields() {
			if entry.Manager == "addon-agent-engine" && entry.Operation == metav1.ManagedFieldsOperationApply {
				return true
			}
		}
		return false
	}
	return And(
		WithTransform(client.Object.GetDeletionTimestamp, BeNil()),
		WithTransform(client.Object.GetOwnerReferences, BeEmpty()),
		WithTransform(client.Object.GetLabels, Not(Or(HaveKey(kudo.LabelHeritage), HaveKey(kudo.LabelInstance)))),
		WithTransform(client.Object.GetAnnotations, And(
			HaveKeyWithValue(kudo.AnnotationReleasedBy, h.namespace+"/"+h.name), Not(HaveKey(kudo.AnnotationExecution)))),
		WithTransform(applies, BeFalse()),
	)
}

var _ = Describe("An object that the package keeps", func() {
	var stop func()
	BeforeEach(func() { stop = runAgent() })
	AfterEach(func(ctx context.Context) { Expect(invariants.Violations(ctx, hub)).To(BeEmpty()) })

	deployed := func(ctx context.Context, spec kudo.OperatorVersionSpec, parameters map[string]string) *hubPart {
		GinkgoHelper()
		h := newInstance(ctx, spec, parameters)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		return h
	}

	It("is released by a removal, with what users have made of its kind, and taken up by an Instance of the same name", func(ctx context.Context) {
		DeferCleanup(func(ctx context.Context) {
			if definition := definitionOf(ctx); definition != nil {
				Expect(managed.Delete(ctx, definition)).To(Succeed())
			}
		})
		h := deployed(ctx, keeper(), nil)
		users, own := keepsake("users", h.namespace), keepsake(h.name+"-gadget", h.namespace)
		Expect(managed.Create(ctx, users)).To(Succeed())
		lost := h.get(ctx)
		Expect(lost.Status.Inventory).To(ContainElements(
			And(HaveField("Name", h.name+"-kept"), HaveField("Keep", true)), And(HaveField("Name", h.name+"-config"), HaveField("Keep", false))))
		h.finish(ctx)
		Expect(managed.Get(ctx, client.ObjectKeyFromObject(users), users)).To(Succeed())
		Expect(users.GetDeletionTimestamp()).To(BeNil())
		Expect(managed.Get(ctx, client.ObjectKeyFromObject(own), own)).To(MatchError(apierrors.IsNotFound, "the package's own object is removed"))
		Expect(h.config(ctx, "-config")).To(BeEmpty())
		Expect(definitionOf(ctx)).To(h.beFree())
		Expect(h.object(ctx, "-kept")).To(h.beFree())
		Eventually(func() []string { return h.eventsOf(ctx, "ObjectsKept") }).Should(ContainElements(
			ContainSubstring("ConfigMap "+h.namespace+"/"+h.name+"-kept"), ContainSubstring("CustomResourceDefinition gadgets."+keepsakes)))

		By("refusing it to an Instance of another name")
		spec := configOnly()
		spec.Templates["definition.yaml"], spec.Tasks[0] = keeper().Templates["definition.yaml"], task("config", kudo.TaskApply, "definition.yaml")
		other := newInstance(ctx, spec, nil)
		other.resolve(ctx)
		Eventually(func() metav1.Condition { return other.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed,
			"was released by Instance "+h.namespace+"/"+h.name))
		other.finish(ctx)
		Expect(definitionOf(ctx)).To(h.beFree())

		By("installing the same name again")
		h.again(ctx, lost)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.object(ctx, "-kept").OwnerReferences).To(ConsistOf(HaveField("UID", h.mirror(ctx).UID)))
		Expect(definitionOf(ctx).GetLabels()).To(HaveKeyWithValue(kudo.LabelInstance, h.name))
		Expect(managed.Get(ctx, client.ObjectKeyFromObject(users), users)).To(Succeed())
		h.finish(ctx)
		Expect(definitionOf(ctx)).To(h.beFree())
	})

	It("is so by the package only, and not by anyone who annotates it on the cluster", func(ctx context.Context) {
		h := deployed(ctx, widespread(), nil)
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: h.name + "-one"}}
		for _, o := range []client.Object{role, h.object(ctx, "-one")} {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"kudo.dev/keep":"true","helm.sh/resource-policy":"keep"}}}`))
			Expect(managed.Patch(ctx, o, patch, client.FieldOwner("addon-agent-engine"))).To(Succeed())
		}
		h.finish(ctx)
		Expect(h.there(ctx)).To(BeEmpty())
	})

	It("is so if a release before has applied it and recorded nothing", func(ctx context.Context) {
		spec := keeper()
		spec.Plans["deploy"] = serial("config")
		h := deployed(ctx, spec, nil)
		stop()
		h.tamperStatus(ctx, func(i *kudo.Instance) {
			for n := range i.Status.Inventory {
				i.Status.Inventory[n].Keep = false
			}
		})
		stop = runAgent()
		h.finish(ctx)
		Expect(h.object(ctx, "-kept")).To(h.beFree())
		Expect(h.config(ctx, "-config")).To(BeEmpty())
	})

	It("is released by a version that no longer renders it, and taken up by one that does", func(ctx context.Context) {
		spec := keeper()
		spec.Plans["deploy"] = serial("config")
		h := deployed(ctx, spec, nil)
		without := configOnly()
		without.Tasks = []kudo.Task{task("config", kudo.TaskApply, "config.yaml")}
		for version, spec := range map[string]kudo.OperatorVersionSpec{"2.0.0": without, "3.0.0": spec} {
			spec.Version = version
			push(ctx, h.name+"-"+version, spec)
		}
		none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`))
		Expect(managed.Patch(ctx, h.object(ctx, "-kept"), none)).To(Succeed()) // its owner still says whose it is
		before := h.plan(ctx, "deploy")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
		h.completes(ctx, "deploy", before)
		Expect(h.object(ctx, "-kept")).To(h.beFree())
		Expect(h.inventoryOf(ctx)).To(ConsistOf("ConfigMap " + h.namespace + "/" + h.name + "-config"))

		before = h.plan(ctx, "deploy")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-3.0.0" })
		h.completes(ctx, "deploy", before)
		Expect(h.object(ctx, "-kept").OwnerReferences).To(HaveLen(1))
		h.finish(ctx)
		Expect(h.object(ctx, "-kept")).To(h.beFree())
	})

	It("is deleted by a task that says so", func(ctx context.Context) {
		spec := standard()
		spec.Templates["feature.yaml"] = keeper().Templates["kept.yaml"]
		spec.Plans = map[string]kudo.Plan{"deploy": serial("feature"), "feature": serial("feature")}
		h := deployed(ctx, spec, map[string]string{"FEATURE": "true"})
		Expect(h.config(ctx, "-kept")).To(Equal("one"))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters["FEATURE"] = "false" })
		Eventually(func() string { return h.config(ctx, "-kept") }).Should(BeEmpty())
		h.finish(ctx)
	})

	It("loses its owner if it is a volume claim of a package that can no longer be rendered", func(ctx context.Context) {
		spec := configOnly()
		spec.Templates["claim.yaml"] = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: \"{{ .Name }}-claim\"}\n" +
			"spec: {resources: {requests: {storage: 1Gi}}, accessModes: [ReadWriteOnce]}\n"
		spec.Tasks = []kudo.Task{task("config", kudo.TaskApply, "claim.yaml")}
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		claim := h.claim(h.name + "-claim")
		Eventually(func() error {
			return environment.EditStatus(ctx, managed, claim, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound })
		}).Should(Succeed())
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(claim.OwnerReferences).To(HaveLen(1))
		stop()
		Expect(hub.Delete(ctx, &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: h.name + "-1.0.0"}})).To(Succeed())
		Expect(managed.DeleteAllOf(ctx, &kudo.OperatorVersion{}, client.InNamespace(h.namespace))).To(Succeed())
		stop = runAgent()
		h.finish(ctx)
		Expect(managed.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		Expect(claim).To(h.beFree())
	})
})
