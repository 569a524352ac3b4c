package cluster

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("A plan of a child that a user has cancelled", func() {
	var g *grove
	plantEach(&g)

	It("does not run again with a plan of the parent, if a user requested it", func(ctx SpecContext) {
		g.pushWith(ctx, "bb", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			addGate(v)
			v.Tasks = append(v.Tasks, gate())
			v.Plans["restore"] = kudo.Plan{Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "gate", Tasks: []string{"gate"}}}}}}
		})
		g.push(ctx, "aa", "1.0.0", child("bb"))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		restore := func() kudo.PlanStatus { return g.onHub(ctx, "aa.bb").Status.PlanStatus["restore"] }
		g.runs(ctx, "aa.bb", "restore", "by-hand")
		Eventually(restore).WithContext(ctx).Should(HaveField("Status", kudo.InProgress))
		Expect(g.edit(ctx, "aa.bb", func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{Cancel: true, UID: "by-hand"} })).To(Succeed())
		g.fails(ctx, "aa.bb", "cancelled")

		g.runs(ctx, "aa", kudo.DeployPlan, "again")
		Eventually(func() map[string]types.UID { return g.executions(ctx, "aa") }).WithContext(ctx).Should(HaveKeyWithValue("aa", BeEquivalentTo("again")))
		g.settles(ctx, "aa")
		Expect(restore()).To(And(HaveField("Status", kudo.FatalError), HaveField("UID", BeEquivalentTo("by-hand"))))
	})

	It("does not run again with a plan of the parent, which fails as the child does, if the parent caused it", func(ctx SpecContext) {
		g.pushWith(ctx, "bb", "1.0.0", addGate, gate())
		g.push(ctx, "aa", "1.0.0", child("bb"))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.awaitGate(ctx, "aa")
		executed := g.executions(ctx, "aa.bb")
		Expect(g.edit(ctx, "aa.bb", func(s *kudo.InstanceSpec) {
			s.PlanExecution = kudo.PlanExecution{Cancel: true, UID: executed["aa.bb"]}
		})).To(Succeed())
		g.fails(ctx, "aa", "cancelled")

		g.runs(ctx, "aa", kudo.DeployPlan, "again")
		Eventually(func() map[string]types.UID { return g.executions(ctx, "aa") }).WithContext(ctx).Should(HaveKeyWithValue("aa", BeEquivalentTo("again")))
		g.fails(ctx, "aa", "cancelled")
		Expect(g.executions(ctx, "aa.bb")).To(Equal(executed))

		By("requesting it on the child")
		g.opens(ctx, "aa-bb-gate")
		g.runs(ctx, "aa.bb", kudo.DeployPlan, "by-hand")
		g.settles(ctx, "aa.bb")
		g.runs(ctx, "aa", kudo.DeployPlan, "at-last")
		g.settles(ctx, "aa")
	})
})
