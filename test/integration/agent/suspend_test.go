package agent

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// waitCondition returns condition Waiting of the Instance on the hub; the zero value if there is none.
func waitCondition(ctx context.Context, h *hubPart) metav1.Condition {
	GinkgoHelper()
	return ptr.Deref(meta.FindStatusCondition(h.get(ctx).Status.Conditions, kudo.ConditionWaiting), metav1.Condition{})
}

var _ = Describe("A suspended Instance", func() {
	BeforeEach(func() { DeferCleanup(runAgent()) })

	suspend := func(s *kudo.InstanceSpec) { s.Suspend = true }
	resume := func(s *kudo.InstanceSpec) { s.Suspend = false }

	It("starts no plan, stays ready, and applies the change when it is resumed", func(ctx context.Context) {
		spec := configOnly()
		spec.Operator.Name = "suspended"
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before, generation := h.plan(ctx, "deploy"), h.get(ctx).Generation

		h.change(ctx, suspend)
		Eventually(func() string { return waitCondition(ctx, h).Message }).Should(Equal("the Instance is suspended: no plan starts"))
		Expect(plansWaiting("suspended", kudo.ReasonSuspended)).To(BeEquivalentTo(1))
		h.change(ctx, setParameter("VALUE", "two"))
		Eventually(func() string { return waitCondition(ctx, h).Message }).Should(Equal(`plan "deploy" waits: the Instance is suspended`))
		Consistently(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(Equal(before))
		Expect(h.ready(ctx)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", BeNumerically("<=", generation+1))), "before the change")
		Expect(h.get(ctx).Status.ObservedGeneration).To(Equal(generation + 2))
		Expect(h.config(ctx, "-config")).To(Equal("one"))

		h.change(ctx, resume)
		h.completes(ctx, "deploy", before)
		Expect(h.config(ctx, "-config")).To(Equal("two"))
		Expect(waitCondition(ctx, h)).To(BeZero())
		Expect(plansWaiting("suspended", kudo.ReasonSuspended)).To(BeZero())
		h.finish(ctx)
	})

	It("ends the step that has started, however long it takes, and starts no other", func(ctx context.Context) {
		spec := standard()
		deploy := spec.Plans["deploy"]
		deploy.Phases[0].Steps[1].Timeout = &metav1.Duration{Duration: 4 * time.Second}
		h := newInstance(ctx, spec, map[string]string{"FEATURE": "true"})
		h.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.step(ctx, 1) }).Should(Equal(kudo.InProgress))

		h.change(ctx, suspend)
		Eventually(func() string { return waitCondition(ctx, h).Message }).Should(Equal(`the Instance is suspended: plan "deploy" finishes the steps that it has started`))
		Consistently(func() kudo.ExecutionStatus { return h.step(ctx, 1) }, 7*time.Second).Should(Equal(kudo.InProgress))

		By("ending the step")
		h.rollOut(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.step(ctx, 1) }).Should(Equal(kudo.Complete))
		Eventually(func() string { return h.ready(ctx).Message }).Should(HavePrefix(`plan "deploy" is suspended before step`))
		Consistently(func() string { return h.config(ctx, "-feature") }).Should(BeEmpty())

		By("resuming it")
		h.change(ctx, resume)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.plan(ctx, "deploy").SuspendedSeconds).To(BeNumerically(">=", 7))
		h.finish(ctx)
	})

	It("by objects of the hub names them, waits from its first plan on, and is removed meanwhile", func(ctx context.Context) {
		const by = `ConfigMap tandem-system/tandem-suspend ("storage fails")`
		spec := configOnly()
		spec.Operator.Name = "held"
		h := newInstance(ctx, spec, nil)
		h.edit(ctx, func(i *kudo.Instance) { i.Spec.SuspendedBy = by })
		h.resolve(ctx)
		Eventually(func() string { return waitCondition(ctx, h).Message }).Should(Equal(`plan "deploy" waits: the Instance is suspended by ` + by))
		Expect(waitCondition(ctx, h).Reason).To(Equal(kudo.ReasonSuspended))
		Expect(plansWaiting("held", kudo.ReasonSuspended)).To(BeEquivalentTo(1))
		Expect(h.ready(ctx)).To(And(HaveField("Reason", kudo.ReasonPlanPending), HaveField("Message", HaveSuffix("suspended by "+by))))
		Consistently(func() string { return h.config(ctx, "-config") }).Should(BeEmpty())

		By("resuming all but itself")
		h.change(ctx, suspend)
		Eventually(func() string { return waitCondition(ctx, h).Message }).Should(HaveSuffix(by + " and spec.suspend"))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.SuspendedBy = "" })
		Eventually(func() string { return waitCondition(ctx, h).Message }).Should(Equal(`plan "deploy" waits: the Instance is suspended`))
		h.change(ctx, resume)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(waitCondition(ctx, h)).To(BeZero())

		By("another suspension, during which it is removed")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.SuspendedBy = by })
		Eventually(func() string { return waitCondition(ctx, h).Message }).Should(Equal("the Instance is suspended by " + by + ": no plan starts"))
		Eventually(func() []string { return h.eventsOf(ctx, "Suspended") }).Should(ContainElement(ContainSubstring(by)))
		h.finish(ctx)
	})

	It("by objects of the hub ends the step that has started, however long it takes, although its spec is not resolved", func(ctx context.Context) {
		const by = `ManagedCluster cluster1 ("storage fails")`
		spec := standard()
		deploy := spec.Plans["deploy"]
		deploy.Phases[0].Steps[1].Timeout = &metav1.Duration{Duration: 4 * time.Second}
		h := newInstance(ctx, spec, map[string]string{"FEATURE": "true"})
		h.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.step(ctx, 1) }).Should(Equal(kudo.InProgress))

		h.edit(ctx, func(i *kudo.Instance) { i.Spec.SuspendedBy = by }) // the hub resolves it later
		Eventually(func() string { return waitCondition(ctx, h).Message }).Should(Equal(
			"the Instance is suspended by " + by + `: plan "deploy" finishes the steps that it has started`))
		Consistently(func() kudo.ExecutionStatus { return h.step(ctx, 1) }, 7*time.Second).Should(Equal(kudo.InProgress))
		h.rollOut(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.step(ctx, 1) }).Should(Equal(kudo.Complete))
		Eventually(func() string { return h.ready(ctx).Message }).Should(HavePrefix(`plan "deploy" is suspended before step`))

		By("a user who removes the field, which the hub has yet to restore")
		h.edit(ctx, func(i *kudo.Instance) { i.Spec.SuspendedBy = "" })
		Consistently(func() string { return h.mirror(ctx).Spec.SuspendedBy }, 3*time.Second).Should(Equal(by))

		By("the end that the hub confirms")
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.plan(ctx, "deploy").SuspendedSeconds).To(BeNumerically(">=", 7))
		h.finish(ctx)
	})

	It("is suspended although its spec is not resolved, and removed at once", func(ctx context.Context) {
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.step(ctx, 1) }).Should(Equal(kudo.InProgress))
		h.edit(ctx, func(i *kudo.Instance) { i.Spec.Suspend = true })
		Eventually(func() string { return waitCondition(ctx, h).Reason }).Should(Equal(kudo.ReasonSuspended))
		h.finish(ctx)
	})

	DescribeTable("runs nothing if the managed cluster's CustomResourceDefinition is older and drops the suspension, and says so", func(
		ctx context.Context, field string, suspend, resume func(*kudo.InstanceSpec),
	) {
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		restore := dropField(ctx, field)
		h.change(ctx, func(s *kudo.InstanceSpec) {
			suspend(s)
			setParameter("VALUE", "two")(s)
		})
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(HaveField("Reason", kudo.ReasonNotMirrored),
			HaveField("Message", ContainSubstring("drops spec."+field+": its CustomResourceDefinition instances.kudo.dev is older than this agent"))))
		Eventually(func(g Gomega) { // the engine may still record the change
			version := h.mirror(ctx).ResourceVersion
			g.Consistently(func() string { return h.mirror(ctx).ResourceVersion }, "3s").Should(Equal(version))
		}).Should(Succeed(), "the mirror is written repeatedly")
		Expect(h.config(ctx, "-config")).To(Equal("one"))

		By("applying the definition of this version")
		restore(ctx)
		h.change(ctx, resume)
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("two"))
		h.finish(ctx)
	},
		Entry("of its own", "suspend", suspend, resume),
		Entry("by objects of the hub", "suspendedBy", func(s *kudo.InstanceSpec) { s.SuspendedBy = "ManagedCluster cluster1" },
			func(s *kudo.InstanceSpec) { s.SuspendedBy = "" }))
})

// dropField removes a field of the spec from the definition of Instances on the managed cluster, and returns what restores it.
func dropField(ctx context.Context, name string) (restore func(context.Context)) {
	GinkgoHelper()
	keeps := func(ctx context.Context) bool { // the API server applies a definition a moment later
		GinkgoHelper()
		probe := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"}}
		probe.Spec.Suspend, probe.Spec.SuspendedBy, probe.Spec.ChangedBy = true, "probe", &kudo.ChangeAuthor{Kind: "Instance", Name: "probe"}
		Expect(managed.Create(ctx, probe, client.DryRunAll)).To(Succeed())
		return probe.Spec.Suspend && probe.Spec.SuspendedBy != "" && probe.Spec.ChangedBy != nil
	}
	return dropFieldOf(ctx, "spec", name, keeps)
}

// dropFieldOf removes a field of the spec or the status. keeps reports whether the API server stores it.
func dropFieldOf(ctx context.Context, part, name string, keeps func(context.Context) bool) (restore func(context.Context)) {
	GinkgoHelper()
	field := []string{"schema", "openAPIV3Schema", "properties", part, "properties", name}
	edit := func(ctx context.Context, change func(version map[string]any)) {
		GinkgoHelper()
		definition := &unstructured.Unstructured{}
		definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		Expect(managed.Get(ctx, client.ObjectKey{Name: "instances.kudo.dev"}, definition)).To(Succeed())
		versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
		Expect(err).NotTo(HaveOccurred())
		for _, version := range versions {
			change(version.(map[string]any))
		}
		Expect(unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions")).To(Succeed())
		Expect(managed.Update(ctx, definition)).To(Succeed())
	}
	var definition map[string]any
	edit(ctx, func(version map[string]any) {
		definition, _, _ = unstructured.NestedMap(version, field...)
		unstructured.RemoveNestedField(version, field...)
	})
	Eventually(func() bool { return keeps(ctx) }).Should(BeFalse())
	restore = func(ctx context.Context) {
		GinkgoHelper()
		edit(ctx, func(version map[string]any) {
			Expect(unstructured.SetNestedMap(version, definition, field...)).To(Succeed())
		})
		Eventually(func() bool { return keeps(ctx) }).Should(BeTrue())
	}
	DeferCleanup(restore) // it also runs if the spec fails
	return restore
}
