package agent

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// deleteNamespace deletes the Instance's install namespace, and objects of these kinds in it as the namespace controller does.
func (h *hubPart) deleteNamespace(ctx context.Context, kinds ...client.Object) {
	GinkgoHelper()
	Expect(managed.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
	for _, kind := range kinds {
		Expect(managed.DeleteAllOf(ctx, kind, client.InNamespace(h.namespace))).To(Succeed())
	}
}

// emptyNamespace completes the deletion of the Instance's install namespace.
func (h *hubPart) emptyNamespace(ctx context.Context) {
	GinkgoHelper()
	emptyNamespace(ctx, h.namespace)
}

// emptyNamespace completes the deletion of a namespace, as the garbage collector and the namespace controller do.
func emptyNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(environment.Edit(ctx, managed, namespace, func(n *corev1.Namespace) { n.Finalizers = nil })).To(Succeed())
	Expect(managed.Get(ctx, client.ObjectKey{Name: name}, namespace)).To(Succeed())
	namespace.Spec.Finalizers = nil
	Expect(managed.SubResource("finalize").Update(ctx, namespace)).To(Succeed())
	Eventually(func() error { return managed.Get(ctx, client.ObjectKeyFromObject(namespace), namespace) }).Should(
		MatchError(apierrors.IsNotFound, "the namespace is gone"))
}

func (h *hubPart) readNamespace(ctx context.Context) error {
	return managed.Get(ctx, client.ObjectKey{Name: h.namespace}, &corev1.Namespace{})
}

var _ = Describe("An install namespace that is deleted on the managed cluster", func() {
	var stop func()
	BeforeEach(func() { stop = runAgent() })

	deployed := func(ctx context.Context, spec kudo.OperatorVersionSpec) *hubPart {
		GinkgoHelper()
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		return h
	}
	// narrow returns a package whose objects are all in the install namespace.
	narrow := func() kudo.OperatorVersionSpec {
		spec := configOnly()
		spec.Tasks = []kudo.Task{task("config", kudo.TaskApply, "config.yaml")}
		return spec
	}

	It("is not held up, and is deployed into again once it is back and a plan is requested", func(ctx context.Context) {
		h := deployed(ctx, configOnly())
		h.deleteNamespace(ctx, &kudo.OperatorVersion{}, &corev1.ConfigMap{}, &kudo.Instance{})
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(BeNil())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonNotMirrored, fmt.Sprintf("namespace %q is being deleted on the managed cluster, where "+
				"'kubectl describe namespace %[1]s' shows what its deletion waits for; the objects of the Instance in it are deleted, too", h.namespace)))

		By("completing the deletion")
		h.emptyNamespace(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonNotMirrored, `namespace "`+h.namespace+`" was deleted on the managed cluster`))
		stop()
		stop = runAgent()
		Consistently(func() error { return h.readNamespace(ctx) }).Should(MatchError(apierrors.IsNotFound, "the agent respects the deletion"))

		By("creating it again")
		Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonUnhealthy, "is missing"))
		Expect(h.config(ctx, "-config")).To(BeEmpty())
		h.change(ctx, byHand("deploy", "again"))
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.config(ctx, "-config")).To(Equal("one"))
		h.finish(ctx)
	})

	It("has taken everything of an Instance that is deleted afterwards", func(ctx context.Context) {
		h := deployed(ctx, narrow())
		h.deleteNamespace(ctx, &kudo.OperatorVersion{}, &corev1.ConfigMap{}, &kudo.Instance{})
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(BeNil())
		h.emptyNamespace(ctx)
		h.finish(ctx)
		Expect(h.readNamespace(ctx)).To(MatchError(apierrors.IsNotFound, "nothing is created to be removed"))
	})

	It("is left by an Instance that is being removed without its cleanup plan, which can create nothing there", func(ctx context.Context) {
		spec := narrow()
		spec.Plans["cleanup"] = serial("farewell")
		spec.Tasks = append(spec.Tasks, task("farewell", kudo.TaskApply, "farewell.yaml"))
		h := deployed(ctx, spec)
		stop()
		h.deleteNamespace(ctx, &kudo.Instance{})
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		stop = runAgent()
		h.finish(ctx)
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(BeNil())
	})
})

var _ = Describe("A Namespace that a version no longer renders", func() {
	BeforeEach(func() { DeferCleanup(runAgent()) })

	// spacious returns a package of a Namespace with that annotation and, if it fills it, of a ConfigMap in it.
	spacious := func(prunes string, fills, renders bool) kudo.OperatorVersionSpec {
		spec := configOnly()
		spec.Templates["ns.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{{ .Namespace }}-space\", annotations: {kudo.dev/prune: \"" + prunes + "\"}}\n"
		spec.Templates["inside.yaml"] = strings.Replace(fmt.Sprintf(configTemplate, "inside"), "metadata: {", `metadata: {namespace: "{{ .Namespace }}-space", `, 1)
		resources := []string{"config.yaml"}
		if renders {
			resources = append(resources, "ns.yaml")
		}
		if fills {
			resources = append(resources, "inside.yaml")
		}
		spec.Tasks = []kudo.Task{task("config", kudo.TaskApply, resources...)}
		return spec
	}
	upgrade := func(ctx context.Context, h *hubPart, version string, spec kudo.OperatorVersionSpec) {
		GinkgoHelper()
		before := h.plan(ctx, "deploy")
		spec.Version = version
		push(ctx, h.name+"-"+version, spec)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-" + version })
		h.completes(ctx, "deploy", before)
	}
	space := func(ctx context.Context, h *hubPart) *corev1.Namespace {
		GinkgoHelper()
		namespace := &corev1.Namespace{}
		Expect(managed.Get(ctx, client.ObjectKey{Name: h.namespace + "-space"}, namespace)).To(Succeed())
		return namespace
	}

	It("stays with what others have in it, and is taken up again by a version that renders it", func(ctx context.Context) {
		h := newInstance(ctx, spacious("true", true, true), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		upgrade(ctx, h, "2.0.0", spacious("true", true, false))
		Expect(space(ctx, h)).To(And(HaveField("DeletionTimestamp", BeNil()), HaveField("Labels", Not(HaveKey(kudo.LabelInstance)))))
		Expect(h.inventoryOf(ctx)).To(And(ContainElement(ContainSubstring("-inside")), Not(ContainElement(HavePrefix("Namespace ")))))

		By("going back")
		upgrade(ctx, h, "3.0.0", spacious("false", true, true))
		Expect(space(ctx, h)).To(HaveField("Labels", HaveKeyWithValue(kudo.LabelInstance, h.name)))
		Expect(h.inventoryOf(ctx)).To(ContainElement(HavePrefix("Namespace ")))

		By("rendering nothing in it any more, without a word about it")
		upgrade(ctx, h, "4.0.0", spacious("false", false, false))
		Expect(space(ctx, h).DeletionTimestamp).To(BeNil())
		h.finish(ctx)
		Expect(space(ctx, h).DeletionTimestamp).To(BeNil(), "the removal leaves what the Instance has released")
	})

	It("is deleted with everything in it if the package says so", func(ctx context.Context) {
		h := newInstance(ctx, spacious("true", false, true), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		spec := spacious("true", false, false)
		spec.Version = "2.0.0"
		push(ctx, h.name+"-2.0.0", spec)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
		Eventually(func() *metav1.Time { return space(ctx, h).DeletionTimestamp }).ShouldNot(BeNil())
		emptyNamespace(ctx, h.namespace+"-space")
		h.finish(ctx)
	})
})
