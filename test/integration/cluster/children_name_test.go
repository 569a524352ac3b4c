package cluster

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("The name of a child", func() {
	var g *grove
	plantEach(&g)

	named := func(name string) func(*kudo.Task) { return func(t *kudo.Task) { t.Spec.InstanceName = name } }

	It("may change, and its parent is ready once the former child is removed", func(ctx SpecContext) {
		g.pushWith(ctx, "bb", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			addGate(v)
			v.Tasks = append(v.Tasks, gate())
			v.Plans[kudo.CleanupPlan] = kudo.Plan{Phases: []kudo.Phase{{
				Name: "main", Steps: []kudo.Step{{Name: "gate", Tasks: []string{"gate"}}},
			}}}
		})
		g.push(ctx, "aa", "1.0.0", child("bb", named("former")))
		g.push(ctx, "cc", "1.0.0")
		g.push(ctx, "aa", "2.0.0", child("cc", named("later"), func(t *kudo.Task) { t.Name = "bb" }))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")

		Expect(g.edit(ctx, "aa", func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = "aa-2.0.0" })).To(Succeed())
		g.awaitGate(ctx, "aa.former")
		Eventually(func() string { return g.message(ctx, "aa") }).WithContext(ctx).Should(
			ContainSubstring("Instance " + g.name + "/aa.former: is being removed: "))
		Consistently(func() bool {
			return meta.IsStatusConditionTrue(g.onHub(ctx, "aa").Status.Conditions, kudo.ConditionReady)
		}).WithContext(ctx).Should(BeFalse())
		Expect(g.config(ctx, "aa.later")).NotTo(BeNil())

		g.opens(ctx, "aa-former-gate")
		g.settles(ctx, "aa")
		Expect(g.onHub(ctx, "aa.former")).To(BeNil(), "what is to go belongs to the upgrade")
		g.awaitGone(ctx, "aa.former")
	})

	It("may move to another task", func(ctx SpecContext) {
		g.push(ctx, "bb", "1.0.0")
		g.push(ctx, "aa", "1.0.0", child("bb"))
		g.push(ctx, "aa", "2.0.0", child("bb", func(t *kudo.Task) { t.Name = "second" }))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		made := g.onHub(ctx, "aa.bb").UID

		Expect(g.edit(ctx, "aa", func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = "aa-2.0.0" })).To(Succeed())
		Expect(acknowledgements(g.settles(ctx, "aa"))).To(ConsistOf("second Applied"))
		Expect(g.onHub(ctx, "aa.bb").UID).To(Equal(made))
	})
})
