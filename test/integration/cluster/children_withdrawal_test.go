package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// hold is the finalizer that the controller of gadgets removes.
const hold = "tandem.test/hold"

// gadgets is a grove with a kind of custom resources of its own.
type gadgets struct{ *grove }

func (g gadgets) group() string { return g.name + ".test" }

func (g gadgets) template(of string) string {
	switch of {
	case "definition":
		return fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.%[1]s}\nspec:\n"+
			"  group: %[1]s\n  scope: Namespaced\n  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}\n"+
			"  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n", g.group())
	case "gadget":
		return fmt.Sprintf("apiVersion: %s/v1\nkind: Gadget\nmetadata: {name: {{ .Name }}, finalizers: [%s]}\n", g.group(), hold)
	default:
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Name }}}\nspec:\n  replicas: 0\n" +
			"  selector: {matchLabels: {a: {{ .Name }}}}\n  template: {metadata: {labels: {a: {{ .Name }}}}, spec: {containers: [{name: a, image: a}]}}\n"
	}
}

// task returns a task that applies the definition, a gadget, or the controller.
func (g gadgets) task(of string) kudo.Task {
	task := kudo.Task{Name: of, Kind: kudo.TaskApply}
	task.Spec.Resources = []string{of + ".yaml"}
	return task
}

// templates adds the templates of tasks to an operator.
func (g gadgets) templates(v *kudo.OperatorVersionSpec) {
	for _, of := range []string{"definition", "gadget", "controller"} {
		v.Templates[of+".yaml"] = g.template(of)
	}
}

// tree pushes the operators of aa, aa.cc, aa.bb and aa.bb.ee, which apply the definition, a gadget and the controller, and creates aa.
func (g gadgets) tree(ctx context.Context, definition, gadget, controller string) {
	GinkgoHelper()
	children := map[string][]string{"aa": {"cc", "bb"}, "aa.bb": {"ee"}}
	for _, name := range []string{"aa.bb.ee", "aa.cc", "aa.bb", "aa"} {
		var tasks []kudo.Task
		if name == definition {
			tasks = append(tasks, g.task("definition"))
		}
		if name == controller {
			tasks = append(tasks, g.task("controller"))
		}
		for _, below := range children[name] {
			tasks = append(tasks, child(below))
		}
		if name == gadget {
			tasks = append(tasks, g.task("gadget"))
		}
		g.pushWith(ctx, name[strings.LastIndex(name, ".")+1:], "1.0.0", g.templates, tasks...)
	}
	g.root(ctx, "aa", "aa-1.0.0", nil)
	g.rollsOut(controller)
	g.settles(ctx, "aa")
}

func (g gadgets) controller(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: strings.ReplaceAll(name, ".", "-")}}
}

// rollsOut acts as the Deployment controller for the controller in an Instance until the spec ends.
func (g gadgets) rollsOut(name string) {
	untilEnd(func(ctx context.Context) {
		_ = environment.EditStatus(ctx, managed, g.controller(name), func(d *appsv1.Deployment) { d.Status.ObservedGeneration = d.Generation })
	})
}

// untilEnd does something repeatedly until the spec ends.
func untilEnd(do func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	go wait.UntilWithContext(ctx, do, 100*time.Millisecond)
}

// runs reports whether the controller in an Instance exists, and is not being deleted.
func (g gadgets) runs(ctx context.Context, name string) bool {
	controller := g.controller(name)
	return managed.Get(ctx, client.ObjectKeyFromObject(controller), controller) == nil && controller.DeletionTimestamp == nil
}

// controls acts as the controller in an Instance until the spec ends: it releases gadgets that are being deleted.
func (g gadgets) controls(name string) {
	untilEnd(func(ctx context.Context) {
		if !g.runs(ctx, name) {
			return
		}
		for _, gadget := range g.all(ctx) {
			if gadget.GetDeletionTimestamp() != nil {
				_ = managed.Patch(ctx, &gadget, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			}
		}
	})
}

// all returns the gadgets; none if the kind does not exist.
func (g gadgets) all(ctx context.Context) []unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(g.group() + "/v1")
	list.SetKind("GadgetList")
	if managed.List(ctx, list) != nil {
		return nil
	}
	return list.Items
}

// defined reports whether the definition exists.
func (g gadgets) defined(ctx context.Context) bool {
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName("gadgets." + g.group())
	return !apierrors.IsNotFound(managed.Get(ctx, client.ObjectKeyFromObject(definition), definition))
}

// make creates a gadget as a user does.
func (g gadgets) make(ctx context.Context, name string) {
	GinkgoHelper()
	gadget := &unstructured.Unstructured{}
	gadget.SetAPIVersion(g.group() + "/v1")
	gadget.SetKind("Gadget")
	gadget.SetNamespace("default")
	gadget.SetName(name)
	gadget.SetFinalizers([]string{hold})
	Expect(managed.Create(ctx, gadget)).To(Succeed())
}

var _ = Describe("The custom resources of a tree of operators", func() {
	var planned *grove
	plantEach(&planned)
	var g gadgets
	BeforeEach(func() { g = gadgets{planned} })
	names := []string{"aa", "aa.cc", "aa.bb", "aa.bb.ee"}

	DescribeTable("are deleted before any workload of it", func(ctx SpecContext, definition, gadget, controller string) {
		g.tree(ctx, definition, gadget, controller)
		g.make(ctx, "by-a-user")
		Expect(server.Delete(ctx, g.onHub(ctx, "aa"))).To(Succeed())
		Eventually(func() string { return g.message(ctx, "aa") }).WithContext(ctx).Should(
			ContainSubstring("Gadget " + g.name + "/" + strings.ReplaceAll(gadget, ".", "-") + ": is being deleted, held by finalizer " + hold))
		if gadget != "aa" {
			Expect(g.message(ctx, "aa")).To(ContainSubstring("Instance " + g.name + "/" + gadget + ": its custom resources are deleted first: "))
		}
		Consistently(func() bool { return g.runs(ctx, controller) }).WithContext(ctx).Should(BeTrue())
		for _, name := range names {
			Expect(g.config(ctx, name)).NotTo(BeNil(), name)
		}
		g.controls(controller)
		g.awaitGone(ctx, names...)
		Expect(g.all(ctx)).To(BeEmpty())
		Expect(g.defined(ctx)).To(BeFalse())
	},
		Entry("which the parent of their operator runs", "aa.bb", "aa.bb", "aa"),
		Entry("which their parent applies and runs, and its child defines", "aa.bb", "aa", "aa"),
		Entry("which the root runs for an operator two levels below", "aa.bb.ee", "aa.bb.ee", "aa"),
		Entry("which one of three siblings defines, and another runs", "aa.cc", "aa.bb.ee", "aa.bb"),
		Entry("which their child runs", "aa.bb", "aa", "aa.bb"),
		Entry("which their parent defines", "aa", "aa.bb", "aa.bb"),
	)

	It("are deleted first, too, if only a part of it is removed, and the agent restarts", func(ctx SpecContext) {
		g.pushWith(ctx, "ee", "1.0.0", g.templates, g.task("definition"), g.task("gadget"))
		g.pushWith(ctx, "bb", "1.0.0", g.templates, g.task("controller"), child("ee"))
		g.pushWith(ctx, "aa", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			v.Parameters = []kudo.Parameter{stringParameter("ON", "true")}
		}, child("bb", enabledBy("ON")))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.rollsOut("aa.bb")
		g.settles(ctx, "aa")
		g.sets(ctx, "aa", map[string]string{"ON": "false"})
		Eventually(func() string { return g.message(ctx, "aa") }).WithContext(ctx).Should(And(
			ContainSubstring("Instance "+g.name+"/aa.bb: is being removed"), ContainSubstring("held by finalizer "+hold)))
		g.stopAgent()
		runAgentOf(g.name)
		Consistently(func() bool { return g.runs(ctx, "aa.bb") }).WithContext(ctx).Should(BeTrue())
		before := g.mirror(ctx, "aa.bb.ee").ResourceVersion
		Consistently(func() string { return g.mirror(ctx, "aa.bb.ee").ResourceVersion }).WithContext(ctx).Should(Equal(before), "nothing is written at rest")
		g.controls("aa.bb")
		g.awaitGone(ctx, "aa.bb", "aa.bb.ee")
		g.settles(ctx, "aa")
	})

	It("are not applied again by a plan that runs", func(ctx SpecContext) {
		g.pushWith(ctx, "bb", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			g.templates(v)
			addGate(v)
		}, g.task("definition"), g.task("gadget"), gate())
		g.pushWith(ctx, "aa", "1.0.0", g.templates, g.task("controller"), child("bb"))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.rollsOut("aa")
		g.awaitGate(ctx, "aa")
		g.controls("aa")
		Expect(server.Delete(ctx, g.onHub(ctx, "aa"))).To(Succeed())
		g.awaitGone(ctx, "aa", "aa.bb")
		Expect(g.defined(ctx)).To(BeFalse())
	})

	It("are needed by the cleanup plans, which run before, from the top, unless they are skipped", func(ctx SpecContext) {
		cleaning := func(v *kudo.OperatorVersionSpec) {
			g.templates(v)
			addGate(v)
			v.Tasks = append(v.Tasks, gate())
			v.Plans[kudo.CleanupPlan] = kudo.Plan{Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "gate", Tasks: []string{"gate"}}}}}}
		}
		g.pushWith(ctx, "ee", "1.0.0", cleaning, g.task("gadget"))
		g.pushWith(ctx, "bb", "1.0.0", cleaning, child("ee"))
		g.pushWith(ctx, "cc", "1.0.0", g.templates, g.task("definition"))
		g.pushWith(ctx, "aa", "1.0.0", g.templates, g.task("controller"), child("cc"), child("bb"))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.rollsOut("aa")
		g.settles(ctx, "aa")
		g.controls("aa")
		Expect(server.Delete(ctx, g.onHub(ctx, "aa"))).To(Succeed())

		untouched := func(check Gomega) {
			check.Expect(g.all(ctx)).To(ConsistOf(WithTransform(func(u unstructured.Unstructured) any { return u.GetDeletionTimestamp() }, BeNil())))
			check.Expect(g.runs(ctx, "aa")).To(BeTrue())
		}
		Eventually(func() string { return g.message(ctx, "aa") }).WithContext(ctx).Should(
			HavePrefix("Instance " + g.name + `/aa.bb: its plan "cleanup" runs first: plan "cleanup" is running: `))
		Consistently(func(check Gomega) {
			untouched(check)
			check.Expect(g.onHub(ctx, "aa.bb.ee").Status.PlanStatus[kudo.CleanupPlan].Status).To(Equal(kudo.NeverRun))
		}).WithContext(ctx).Should(Succeed())
		g.opens(ctx, "aa-bb-gate")
		Eventually(func() string { return g.message(ctx, "aa") }).WithContext(ctx).Should(
			HavePrefix("Instance " + g.name + `/aa.bb.ee: its plan "cleanup" runs first: plan "cleanup" is running: `))
		Consistently(untouched).WithContext(ctx).Should(Succeed())

		By("skipping the one that cannot complete")
		skip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+kudo.AnnotationSkipCleanup+`":"true"}}}`))
		Expect(server.Patch(ctx, g.onHub(ctx, "aa"), skip)).To(Succeed())
		Eventually(func() bool { return g.defined(ctx) }).WithContext(ctx).Should(BeFalse())
		Eventually(func() *metav1.Time { return g.onHub(ctx, "aa.bb").DeletionTimestamp }).WithContext(ctx).ShouldNot(BeNil())
		Eventually(func() *metav1.Time { return g.onHub(ctx, "aa.bb.ee").DeletionTimestamp }).WithContext(ctx).ShouldNot(BeNil())
		Expect(server.Patch(ctx, g.onHub(ctx, "aa.bb.ee"), skip)).To(Succeed())
		g.awaitGone(ctx, "aa", "aa.cc", "aa.bb", "aa.bb.ee")
		Expect(slices.DeleteFunc(g.plans(ctx, "aa.bb", "aa.bb.ee"), func(plan string) bool { return !strings.Contains(plan, `"cleanup"`) })).To(
			Equal([]string{`aa.bb: plan "cleanup" is complete`}), "once")
	})

	It("stay deleted while a cleanup plan runs that was skipped before", func(ctx SpecContext) {
		g.pushWith(ctx, "ee", "1.0.0", g.templates, g.task("definition"), g.task("gadget"))
		g.pushWith(ctx, "bb", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			addGate(v)
			v.Tasks = append(v.Tasks, gate())
			v.Plans[kudo.CleanupPlan] = kudo.Plan{Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "gate", Tasks: []string{"gate"}}}}}}
		}, child("ee"))
		g.pushWith(ctx, "aa", "1.0.0", g.templates, g.task("controller"), child("bb"))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.rollsOut("aa")
		g.settles(ctx, "aa")
		g.controls("aa")
		skip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+kudo.AnnotationSkipCleanup+`":"true"}}}`))
		Expect(server.Patch(ctx, g.onHub(ctx, "aa"), skip)).To(Succeed())
		Expect(server.Delete(ctx, g.onHub(ctx, "aa"))).To(Succeed())
		g.awaitGate(ctx, "aa.bb")
		Expect(g.defined(ctx)).To(BeFalse())
		Consistently(func() bool { return g.defined(ctx) }).WithTimeout(3 * time.Second).WithContext(ctx).Should(BeFalse())
		g.opens(ctx, "aa-bb-gate")
		g.awaitGone(ctx, "aa", "aa.bb", "aa.bb.ee")
	})

	It("are applied again if the removal is cancelled", func(ctx SpecContext) {
		g.tree(ctx, "aa.bb", "aa.bb", "aa")
		g.controls("aa")
		g.holds(ctx, "aa", hold)
		Expect(server.Delete(ctx, g.onHub(ctx, "aa"))).To(Succeed())
		Eventually(func() bool { return g.defined(ctx) }).WithContext(ctx).Should(BeFalse())
		Eventually(func() string { return g.message(ctx, "aa.bb") }).WithContext(ctx).Should(Equal(`waiting for Instance "aa" to be removed`))
		Eventually(func() string { return g.message(ctx, "aa") }).WithContext(ctx).Should(ContainSubstring("ConfigMap " + g.name + "/aa: is being deleted"))
		Expect(g.config(ctx, "aa.bb")).NotTo(BeNil(), "only custom resources go early")
		Expect(server.Patch(ctx, g.onHub(ctx, "aa"), client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+kudo.AnnotationForceRelease+`":"true"}}}`)))).To(Succeed())
		for _, name := range names {
			Eventually(func() *kudo.Instance { return g.onHub(ctx, name) }).WithContext(ctx).Should(BeNil())
			Eventually(func() map[string]string { return g.mirror(ctx, name).Annotations }).WithContext(ctx).Should(HaveKey(kudo.AnnotationOrphaned))
		}
		g.holds(ctx, "aa")
		Eventually(func() error {
			return managed.Get(ctx, client.ObjectKey{Namespace: g.name, Name: "aa"}, &corev1.ConfigMap{})
		}).WithContext(ctx).Should(Satisfy(apierrors.IsNotFound))

		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		Expect(g.all(ctx)).To(HaveLen(1))
		Expect(server.Delete(ctx, g.onHub(ctx, "aa"))).To(Succeed())
		g.awaitGone(ctx, names...)
		Expect(g.defined(ctx)).To(BeFalse())
	})
})
