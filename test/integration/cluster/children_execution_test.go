package cluster

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// gate returns a task that is complete once the gate is opened.
func gate() kudo.Task {
	task := kudo.Task{Name: "gate", Kind: kudo.TaskApply}
	task.Spec.Resources = []string{"gate.yaml"}
	return task
}

// addGate adds the gate's template to an operator.
func addGate(v *kudo.OperatorVersionSpec) {
	v.Templates["gate.yaml"] = "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Name }}-gate}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n"
}

// awaitGate waits until an Instance waits for a gate.
func (g *grove) awaitGate(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func() string { return g.message(ctx, name) }).WithContext(ctx).Should(ContainSubstring("its load balancer has no address yet"))
}

// opens opens the gate of that name.
func (g *grove) opens(ctx context.Context, name string) {
	GinkgoHelper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: name}}
	Expect(managed.Status().Patch(ctx, service, client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`)))).To(Succeed())
}

var _ = Describe("The execution of a plan that has children", func() {
	var g *grove
	plantEach(&g)

	It("draws random values once", func(ctx SpecContext) {
		g.pushWith(ctx, "bb", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			v.Parameters = []kudo.Parameter{stringParameter("PASSWORD", "")}
			addGate(v)
		}, gate())
		g.pushWith(ctx, "aa", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			v.Parameters = []kudo.Parameter{stringParameter("TEXT", "")}
			v.Templates["bb.yaml"] = "PASSWORD: {{ randAlphaNum 16 }}\n"
		}, child("bb", withParameterFile("bb.yaml")))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.awaitGate(ctx, "aa")
		first := g.onHub(ctx, "aa.bb")
		Consistently(func() int64 { return g.onHub(ctx, "aa.bb").Generation }).WithContext(ctx).Should(Equal(first.Generation))
		g.opens(ctx, "aa-bb-gate")
		g.settles(ctx, "aa")
		Expect(g.config(ctx, "aa.bb")).To(Equal(first.Spec.Parameters))

		g.sets(ctx, "aa", map[string]string{"TEXT": "another"})
		g.settles(ctx, "aa")
		Expect(g.onHub(ctx, "aa.bb").Generation).To(Equal(first.Generation + 1))
		Expect(g.config(ctx, "aa.bb")).NotTo(Equal(first.Spec.Parameters), "the next execution draws again")
	})

	It("keeps to the version that it has chosen", func(ctx SpecContext) {
		g.pushWith(ctx, "bb", "1.0.0", addGate, gate())
		g.pushWith(ctx, "aa", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			v.Parameters = []kudo.Parameter{stringParameter("TEXT", "")}
		}, child("bb"))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.awaitGate(ctx, "aa")
		g.push(ctx, "bb", "1.1.0")
		g.opens(ctx, "aa-bb-gate")
		g.settles(ctx, "aa")
		Expect(g.onHub(ctx, "aa.bb").Spec.OperatorVersion.Name).To(Equal("bb-1.0.0"))

		g.sets(ctx, "aa", map[string]string{"TEXT": "another"})
		g.settles(ctx, "aa")
		Expect(g.onHub(ctx, "aa.bb").Spec.OperatorVersion.Name).To(Equal("bb-1.1.0"))
	})

	It("is cancelled alone, and finds its child again", func(ctx SpecContext) {
		g.pushWith(ctx, "bb", "1.0.0", addGate, gate())
		g.push(ctx, "aa", "1.0.0", child("bb"))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.awaitGate(ctx, "aa")
		executed := g.executions(ctx, "aa", "aa.bb")
		Expect(g.edit(ctx, "aa", func(s *kudo.InstanceSpec) {
			s.PlanExecution = kudo.PlanExecution{Cancel: true, UID: executed["aa"]}
		})).To(Succeed())
		g.fails(ctx, "aa", "cancelled")
		g.opens(ctx, "aa-bb-gate")
		g.settles(ctx, "aa.bb")

		g.runs(ctx, "aa", kudo.DeployPlan, "again")
		g.settles(ctx, "aa")
		Expect(g.executions(ctx, "aa", "aa.bb")).To(And(HaveKeyWithValue("aa", BeEquivalentTo("again")), HaveKeyWithValue("aa.bb", executed["aa.bb"])))
	})

	DescribeTable("while its OperatorVersion is deleted and created again",
		func(ctx SpecContext, change func(*kudo.OperatorVersionSpec), continues bool) {
			g.push(ctx, "bb", "1.0.0")
			deleted := g.pushWith(ctx, "aa", "1.0.0", addGate, gate(), child("bb"))
			g.root(ctx, "aa", "aa-1.0.0", nil)
			g.awaitGate(ctx, "aa")
			running, mirrored := g.executions(ctx, "aa")["aa"], g.mirror(ctx, "aa").Spec.OperatorVersion.Name
			Expect(server.Delete(ctx, deleted)).To(Succeed())
			Eventually(func() bool { // the hub's resolution of the next one is another
				return meta.IsStatusConditionFalse(g.onHub(ctx, "aa").Status.Conditions, kudo.ConditionResolved)
			}).WithContext(ctx).Should(BeTrue())
			g.pushWith(ctx, "aa", "1.0.0", func(v *kudo.OperatorVersionSpec) { addGate(v); change(v) }, gate(), child("bb"))
			Eventually(func() string { return g.mirror(ctx, "aa").Spec.OperatorVersion.Name }).WithContext(ctx).ShouldNot(Equal(mirrored))

			g.opens(ctx, "aa-gate")
			settled := g.settles(ctx, "aa").Status.Execution
			Expect(settled.Plan).To(Equal(kudo.DeployPlan))
			Expect(settled.UID == running).To(Equal(continues))
			Expect(settled.OperatorVersion.UID).To(Equal(g.onHub(ctx, "aa").Status.Whole.OperatorVersion.UID))
			Expect(g.config(ctx, "aa.bb")).NotTo(BeNil())
		},
		Entry("continues if the content is equal", func(*kudo.OperatorVersionSpec) {}, true),
		Entry("starts again if the content differs", func(v *kudo.OperatorVersionSpec) {
			v.Parameters = append(v.Parameters, stringParameter("NEW", "x"))
		}, false),
	)

	It("is one of many, each with children of its own, and several of one operator", func(ctx SpecContext) {
		g.pushWith(ctx, "bb", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			v.Parameters = []kudo.Parameter{stringParameter("COLOR", ""), stringParameter("SIDE", "")}
		})
		g.pushWith(ctx, "aa", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			v.Parameters = []kudo.Parameter{stringParameter("COLOR", "")}
			v.Templates["left.yaml"] = "COLOR: {{ .Params.COLOR }}\nSIDE: left\n"
			v.Templates["right.yaml"] = "COLOR: {{ .Params.COLOR }}\nSIDE: right\n"
		}, child("bb", withInstanceName("left"), withParameterFile("left.yaml")), child("bb", withInstanceName("right"), withParameterFile("right.yaml")))
		colors := map[string]string{"one": "red", "two": "blue"}
		for name, color := range colors {
			g.root(ctx, name, "aa-1.0.0", map[string]string{"COLOR": color})
		}
		for name, color := range colors {
			g.settles(ctx, name)
			for _, side := range []string{"left", "right"} {
				Expect(g.config(ctx, name+"."+side)).To(Equal(map[string]string{"COLOR": color, "SIDE": side}))
			}
		}
		Expect(server.Delete(ctx, &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: "one"}})).To(Succeed())
		g.awaitGone(ctx, "one", "one.left", "one.right")
		g.settles(ctx, "two")
		Expect(g.config(ctx, "two.left")).To(HaveKeyWithValue("COLOR", "blue"))
	})
})
