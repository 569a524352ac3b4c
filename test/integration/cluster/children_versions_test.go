package cluster

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// plans returns the plans of the cluster's Instances that have completed, in the order of the events' times: `INSTANCE: plan "NAME" is
// complete`. Only the named Instances are included.
func (g *grove) plans(ctx context.Context, names ...string) []string {
	GinkgoHelper()
	var events eventsv1.EventList
	Expect(managed.List(ctx, &events, client.InNamespace(g.name))).To(Succeed())
	slices.SortStableFunc(events.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var plans []string
	for _, event := range events.Items {
		if slices.Contains(names, event.Regarding.Name) && event.Reason == "PlanComplete" {
			plans = append(plans, event.Regarding.Name+": "+event.Note)
		}
	}
	return plans
}

// awaitUnresolved waits until the hub rejects the current spec of an Instance, with a message that contains text.
func (g *grove) awaitUnresolved(ctx context.Context, name, text string) {
	GinkgoHelper()
	Eventually(func(check Gomega) {
		instance := g.onHub(ctx, name)
		resolved := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionResolved)
		check.Expect(resolved).NotTo(BeNil())
		check.Expect(resolved.ObservedGeneration).To(Equal(instance.Generation))
		check.Expect(resolved.Status).To(Equal(metav1.ConditionFalse))
		check.Expect(resolved.Message).To(ContainSubstring(text))
	}).WithContext(ctx).Should(Succeed())
}

var _ = Describe("A new version of a parent", func() {
	var g *grove
	plantEach(&g)

	// upgrades moves the root to another version and sets its parameters, in one edit.
	upgrades := func(ctx context.Context, version string, parameters map[string]string) {
		GinkgoHelper()
		Expect(g.edit(ctx, "aa", func(s *kudo.InstanceSpec) {
			s.OperatorVersion.Name, s.Parameters = version, parameters
		})).To(Succeed())
	}

	It("renames an enablingParameter, and keeps the child", func(ctx SpecContext) {
		g.push(ctx, "bb", "1.0.0")
		for version, parameter := range map[string]string{"1.0.0": "ON", "2.0.0": "ENABLED"} {
			g.pushWith(ctx, "aa", version, func(v *kudo.OperatorVersionSpec) {
				v.Parameters = []kudo.Parameter{stringParameter(parameter, "false")}
			}, child("bb", enabledBy(parameter)))
		}
		g.root(ctx, "aa", "aa-1.0.0", map[string]string{"ON": "true"})
		g.settles(ctx, "aa")
		before := g.onHub(ctx, "aa.bb")

		By("rejecting the version as long as the parameter has its old name, which changes nothing")
		upgrades(ctx, "aa-2.0.0", map[string]string{"ON": "true"})
		g.awaitUnresolved(ctx, "aa", `parameter "ON"`)
		Consistently(func() string { return g.onHub(ctx, "aa").Status.Execution.OperatorVersion.Name }).WithContext(ctx).Should(Equal("aa-1.0.0"))

		upgrades(ctx, "aa-2.0.0", map[string]string{"ENABLED": "true"})
		g.settles(ctx, "aa")
		after := g.onHub(ctx, "aa.bb")
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.DeletionTimestamp).To(BeNil())
		Expect(after.Status.Execution.UID).To(Equal(before.Status.Execution.UID), "a child that stays the same runs no plan")

		By("following the new name")
		g.sets(ctx, "aa", map[string]string{"ENABLED": "false"})
		g.settles(ctx, "aa")
		g.awaitGone(ctx, "aa.bb")
		g.sets(ctx, "aa", map[string]string{"ENABLED": "true"})
		g.settles(ctx, "aa")
		Expect(g.config(ctx, "aa.bb")).NotTo(BeNil())

		By("following the old name again after a downgrade, which resets the parameter to its default")
		upgrades(ctx, "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		g.awaitGone(ctx, "aa.bb")
	})

	It("upgrades a child by the child's own plan", func(ctx SpecContext) {
		g.push(ctx, "cc", "1.0.0")
		for _, version := range []string{"1.0.0", "2.0.0"} {
			g.pushWith(ctx, "bb", version, func(v *kudo.OperatorVersionSpec) {
				v.Parameters = []kudo.Parameter{stringParameter("COLOR", "red")}
				addGate(v)
				v.Tasks = append(v.Tasks, gate())
				deploy := v.Plans[kudo.DeployPlan]
				v.Plans[kudo.UpdatePlan] = deploy
				v.Plans[kudo.UpgradePlan] = kudo.Plan{Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{
					{Name: "gate", Tasks: []string{"gate"}}, {Name: "config", Tasks: []string{"config"}},
				}}}}
			})
			g.pushWith(ctx, "aa", version, func(v *kudo.OperatorVersionSpec) {
				v.Parameters = []kudo.Parameter{stringParameter("COLOR", "red")}
				v.Templates["bb.yaml"] = "COLOR: {{ .Params.COLOR }}\n"
			}, child("cc"), child("bb", withParameterFile("bb.yaml"), func(t *kudo.Task) { t.Spec.OperatorVersion = version }))
		}
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		Expect(g.onHub(ctx, "aa.bb").Status.Execution.Plan).To(Equal(kudo.DeployPlan))
		before := g.executions(ctx, "aa.bb", "aa.cc")

		By("waiting for it, with new parameters in the same edit")
		upgrades(ctx, "aa-2.0.0", map[string]string{"COLOR": "blue"})
		g.awaitGate(ctx, "aa")
		upgrading := g.onHub(ctx, "aa.bb")
		Expect(upgrading.Status.Execution.Plan).To(Equal(kudo.UpgradePlan))
		Expect(upgrading.Spec.OperatorVersion.Name).To(Equal("bb-2.0.0"))
		Consistently(func() string { return readyOf(g.onHub(ctx, "aa")) }).WithContext(ctx).Should(Equal(kudo.ReasonPlanInProgress))
		Expect(g.config(ctx, "aa.bb")).To(HaveKeyWithValue("COLOR", "red"))
		g.opens(ctx, "aa-bb-gate")
		g.settles(ctx, "aa")
		Expect(g.config(ctx, "aa.bb")).To(HaveKeyWithValue("COLOR", "blue"))
		Eventually(func() []string { return g.plans(ctx, "aa", "aa.bb") }).WithContext(ctx).Should(Equal([]string{
			`aa.bb: plan "deploy" is complete`, `aa: plan "deploy" is complete`,
			`aa.bb: plan "upgrade" is complete`, `aa: plan "deploy" is complete`,
		}))

		By("leaving the other child alone, and running nothing else afterwards")
		executed := g.executions(ctx, "aa.bb", "aa.cc")
		Expect(executed["aa.cc"]).To(Equal(before["aa.cc"]))
		Consistently(func() any { return g.executions(ctx, "aa.bb", "aa.cc") }).WithContext(ctx).Should(Equal(executed))

		By("running the child's update for its parameters alone")
		g.sets(ctx, "aa", map[string]string{"COLOR": "green"})
		g.settles(ctx, "aa")
		Expect(g.onHub(ctx, "aa.bb").Status.Execution.Plan).To(Equal(kudo.UpdatePlan))
	})

	It("fails as the upgrade of a child does, and runs that again", func(ctx SpecContext) {
		for _, version := range []string{"1.0.0", "2.0.0"} {
			g.pushWith(ctx, "bb", version, func(v *kudo.OperatorVersionSpec) {
				v.Templates["extra.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Name }}-extra}\n"
				extra := kudo.Task{Name: "extra", Kind: kudo.TaskApply}
				extra.Spec.Resources = []string{"extra.yaml"}
				v.Tasks = append(v.Tasks, extra)
				v.Plans[kudo.UpgradePlan] = kudo.Plan{Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "extra", Tasks: []string{"extra"}}}}}}
			})
			g.push(ctx, "aa", version, child("bb", func(t *kudo.Task) { t.Spec.OperatorVersion = version }))
		}
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: "aa-bb-extra"}}
		Expect(managed.Create(ctx, foreign)).To(Succeed())
		upgrades(ctx, "aa-2.0.0", nil)
		g.fails(ctx, "aa", "already exists and was not created by this Instance")
		Expect(managed.Delete(ctx, foreign)).To(Succeed())
		g.runs(ctx, "aa", kudo.DeployPlan, "again")
		Eventually(func() types.UID { return g.executions(ctx, "aa")["aa"] }).WithContext(ctx).Should(BeEquivalentTo("again"))
		g.settles(ctx, "aa")
		upgraded := g.onHub(ctx, "aa.bb").Status
		Expect(upgraded.Execution.Plan).To(Equal(kudo.UpgradePlan))
		Expect(upgraded.PlanStatus[kudo.UpgradePlan].Status).To(Equal(kudo.Complete))
	})
})

var _ = Describe("A child by a task of kind Operator, as KEP-29 first called it", func() {
	var g *grove
	plantEach(&g)
	alias := func(t *kudo.Task) { t.Kind = kudo.TaskOperator }

	It("is one like any other", func(ctx SpecContext) {
		for _, version := range []string{"1.0.0", "2.0.0"} {
			g.pushWith(ctx, "bb", version, func(v *kudo.OperatorVersionSpec) {
				v.Parameters = []kudo.Parameter{stringParameter("COLOR", "red")}
			})
			g.pushWith(ctx, "aa", version, func(v *kudo.OperatorVersionSpec) {
				v.Parameters = []kudo.Parameter{stringParameter("ON", "true"), stringParameter("COLOR", "red")}
				v.Templates["bb.yaml"] = "COLOR: {{ .Params.COLOR }}\n"
			}, child("bb", alias, withParameterFile("bb.yaml"), enabledBy("ON"), func(t *kudo.Task) { t.Spec.OperatorVersion = version }))
		}
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		made := g.onHub(ctx, "aa.bb")
		Expect(made.Labels).To(HaveKeyWithValue(kudo.LabelRoot, "aa"))
		Expect(acknowledgements(g.onHub(ctx, "aa"))).To(ConsistOf("bb Applied"))

		g.sets(ctx, "aa", map[string]string{"COLOR": "blue"})
		g.settles(ctx, "aa")
		Expect(g.config(ctx, "aa.bb")).To(HaveKeyWithValue("COLOR", "blue"))

		Expect(g.edit(ctx, "aa", func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = "aa-2.0.0" })).To(Succeed())
		g.settles(ctx, "aa")
		Expect(g.onHub(ctx, "aa.bb").Spec.OperatorVersion.Name).To(Equal("bb-2.0.0"))
		Expect(g.onHub(ctx, "aa.bb").UID).To(Equal(made.UID))

		g.sets(ctx, "aa", map[string]string{"ON": "false"})
		g.settles(ctx, "aa")
		g.awaitGone(ctx, "aa.bb")
		g.sets(ctx, "aa", map[string]string{"ON": "true"})
		g.settles(ctx, "aa")
		Expect(g.config(ctx, "aa.bb")).NotTo(BeNil())

		Expect(server.Delete(ctx, g.onHub(ctx, "aa"))).To(Succeed())
		g.awaitGone(ctx, "aa", "aa.bb")
	})

	It("is checked like any other", func(ctx SpecContext) {
		g.push(ctx, "aa", "1.0.0", child("bb", alias))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.awaitUnresolved(ctx, "aa", "bb")
		g.push(ctx, "bb", "1.0.0", child("aa", alias))
		g.awaitUnresolved(ctx, "aa", "aa-1.0.0 -> bb-1.0.0 -> aa-1.0.0")
	})
})
