package agent

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// gatePackage returns a package whose plan deploy fails while parameter KIND names a kind that does not exist. Plan noop does nothing.
func gatePackage() kudo.OperatorVersionSpec {
	spec := standard()
	spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "KIND", Trigger: "noop", Structure: new(true)}, kudo.Parameter{Name: "NOTE", Trigger: "noop"})
	spec.Templates["gate.yaml"] = "apiVersion: v1\nkind: {{ .Params.KIND }}\nmetadata: {name: \"{{ .Name }}-gate\"}"
	spec.Tasks = append(spec.Tasks, task("gate", kudo.TaskApply, "gate.yaml"), doneTask("noop"), task("wait", kudo.TaskDummy), fatalTask("broken"))
	spec.Plans = map[string]kudo.Plan{
		"deploy": serial("config", "gate"), "noop": serial("noop"), "wait": serial("wait"), "broken": serial("broken"),
	}
	return spec
}

// doneTask returns a task that completes, and fatalTask one that fails.
func doneTask(name string) kudo.Task {
	t := task(name, kudo.TaskDummy)
	t.Spec.Done = true
	return t
}

func fatalTask(name string) kudo.Task {
	t := task(name, kudo.TaskDummy)
	t.Spec.WantErr, t.Spec.Fatal = true, true
	return t
}

// requests requests a plan manually.
func requests(name string, uid types.UID) func(*kudo.InstanceSpec) {
	return func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{PlanName: name, UID: uid} }
}

// expectEnded returns the status of a plan once the execution with that uid has ended.
func (h *hubPart) expectEnded(ctx context.Context, name string, uid types.UID) {
	GinkgoHelper()
	Eventually(func() kudo.PlanStatus { return h.plan(ctx, name) }).Should(
		And(HaveField("UID", uid), HaveField("Status", Satisfy(kudo.ExecutionStatus.IsTerminal))))
}

var _ = Describe("Owed plans", func() {
	var h *hubPart
	BeforeEach(func() { DeferCleanup(runAgent()) })
	AfterEach(func(ctx context.Context) {
		h.finish(ctx)
		Expect(invariants.Violations(ctx, hub)).To(BeEmpty())
	})

	It("keep a failed deploy visible after other plans have completed", func(ctx context.Context) {
		h = newInstance(ctx, gatePackage(), map[string]string{"KIND": "Nonsense"})
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed, `plan "deploy" failed`))
		Expect(meta.IsStatusConditionTrue(h.get(ctx).Status.Conditions, kudo.ConditionStalled)).To(BeTrue())

		By("requesting another plan")
		h.change(ctx, requests("noop", "by-hand"))
		h.expectEnded(ctx, "noop", "by-hand")
		Eventually(func() metav1.Condition { return h.lastRequest(ctx) }).Should(is(metav1.ConditionTrue, kudo.ReasonPlanComplete, "noop"))
		Consistently(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed, `plan "deploy" failed`))

		By("changing a parameter that triggers another plan: deploy runs again, with all values")
		before := h.plan(ctx, "deploy").UID
		h.change(ctx, setParameter("NOTE", "x"))
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(
			And(HaveField("UID", Not(Equal(before))), HaveField("Status", kudo.FatalError)))
		h.change(ctx, setParameter("KIND", "ConfigMap"))
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.completes(ctx, "noop", kudo.PlanStatus{UID: "by-hand"})
		Expect(h.get(ctx).Status.Whole).To(HaveField("Version", "1.0.0"))
		Expect(h.get(ctx).Status.Execution.Owed).To(BeEmpty())
		Expect(meta.FindStatusCondition(h.get(ctx).Status.Conditions, kudo.ConditionStalled)).To(BeNil())
	})

	It("run for a version and parameters that change in one edit", func(ctx context.Context) {
		spec := configOnly()
		spec.Plans = map[string]kudo.Plan{"deploy": serial("config", "feature"), "update": serial("config"), "feature": serial("feature")}
		h = newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		for i, feature := range []string{"true", "false"} {
			spec.Version = fmt.Sprintf("%d.0.0", i+2)
			push(ctx, h.name+"-"+spec.Version, spec)
			before := h.plan(ctx, "feature")
			h.change(ctx, func(s *kudo.InstanceSpec) {
				s.OperatorVersion.Name = h.name + "-" + spec.Version
				s.Parameters = map[string]string{"FEATURE": feature}
			})
			h.completes(ctx, "feature", before)
			Expect(h.plan(ctx, "update").Status).To(Equal(kudo.Complete))
			if feature == "true" {
				Expect(h.config(ctx, "-feature")).To(Equal("one"))
			} else {
				Expect(h.config(ctx, "-feature")).To(BeEmpty())
			}
			Expect(h.get(ctx).Status.Whole).To(HaveField("Version", spec.Version))
		}
	})

	It("are only those that a parameter names as its trigger if it changes with the version", func(ctx context.Context) {
		spec := configOnly()
		spec.Plans = map[string]kudo.Plan{
			"deploy": serial("config"), "upgrade": serial("config"), "update": serial("config", "farewell"), "feature": serial("feature"),
		}
		h = newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		spec.Version = "2.0.0"
		push(ctx, h.name+"-2.0.0", spec)
		h.change(ctx, func(s *kudo.InstanceSpec) {
			s.OperatorVersion.Name = h.name + "-2.0.0"
			s.Parameters = map[string]string{"VALUE": "two", "FEATURE": "true"}
		})
		h.completes(ctx, "feature", kudo.PlanStatus{})
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionTrue, kudo.ReasonHealthy, ""))
		Expect(h.config(ctx, "-config")).To(Equal("two"))
		Expect(h.config(ctx, "-feature")).To(Equal("two"))
		Expect(h.config(ctx, "-farewell")).To(BeEmpty())
		Expect(h.plan(ctx, "upgrade").Status).To(Equal(kudo.Complete))
		Expect(h.plan(ctx, "update").Status).To(Equal(kudo.NeverRun))
		Expect(h.get(ctx).Status.Execution.Owed).To(BeEmpty())

		By("changing the parameter without trigger alone: update runs")
		h.set(ctx, map[string]string{"VALUE": "three", "FEATURE": "true"})
		h.completes(ctx, "update", kudo.PlanStatus{})
		Expect(h.config(ctx, "-config")).To(Equal("three"))
		Expect(h.config(ctx, "-farewell")).To(Equal("three"))
	})

	It("start no manual request again that was handled before", func(ctx context.Context) {
		h = newInstance(ctx, gatePackage(), map[string]string{"KIND": "ConfigMap"})
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		for _, uid := range []types.UID{"a", "b"} {
			h.change(ctx, requests("noop", uid))
			h.expectEnded(ctx, "noop", uid)
		}
		h.change(ctx, requests("noop", "a"))
		Eventually(func() int64 { return h.get(ctx).Status.ObservedGeneration }).Should(Equal(h.get(ctx).Generation))
		Consistently(func() types.UID { return h.plan(ctx, "noop").UID }).Should(BeEquivalentTo("b"))
		Expect(h.get(ctx).Status.HandledRequests).To(Equal([]types.UID{"a", "b"}))
	})

	It("leave Ready alone while a manual plan runs and when it fails", func(ctx context.Context) {
		h = newInstance(ctx, gatePackage(), map[string]string{"KIND": "ConfigMap"})
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.change(ctx, requests("wait", "waits"))
		Eventually(func() metav1.Condition { return h.lastRequest(ctx) }).Should(is(metav1.ConditionUnknown, kudo.ReasonPlanInProgress, "wait"))
		Consistently(func() metav1.ConditionStatus { return h.ready(ctx).Status }).Should(Equal(metav1.ConditionTrue))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution.Cancel = true })
		h.expectEnded(ctx, "wait", "waits")
		h.change(ctx, requests("broken", "breaks"))
		h.expectEnded(ctx, "broken", "breaks")
		Eventually(func() metav1.Condition { return h.lastRequest(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed, `plan "broken" failed`))
		Consistently(func() metav1.ConditionStatus { return h.ready(ctx).Status }).Should(Equal(metav1.ConditionTrue))
	})

	It("do not arise from an OperatorVersion that is deleted and created again", func(ctx context.Context) {
		h = newInstance(ctx, gatePackage(), map[string]string{"KIND": "ConfigMap"})
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before := h.get(ctx).Status
		version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: h.name + "-1.0.0"}}
		Expect(hub.Delete(ctx, version)).To(Succeed())
		h.report(ctx, func(i *kudo.Instance) {
			meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{Type: kudo.ConditionResolved,
				Status: metav1.ConditionFalse, Reason: kudo.ReasonOperatorVersionNotFound, ObservedGeneration: i.Generation})
		})
		push(ctx, version.Name, gatePackage())
		h.resolve(ctx)
		Eventually(func() types.UID { return h.get(ctx).Status.Execution.OperatorVersion.UID }).ShouldNot(Equal(before.Execution.OperatorVersion.UID))
		Consistently(func() types.UID { return h.get(ctx).Status.Execution.UID }).Should(Equal(before.Execution.UID))
		after := h.get(ctx).Status
		Expect(after.Whole.OperatorVersion.UID).To(Equal(after.Execution.OperatorVersion.UID))
		Expect(h.ready(ctx).Status).To(Equal(metav1.ConditionTrue))
		Eventually(func() []string { return h.versions(ctx) }).Should(HaveLen(1), "the version before is not mirrored any more")
	})
})

var _ = Describe("Statuses of earlier releases", func() {
	// legacy removes the fields that earlier releases did not write.
	legacy := func(i *kudo.Instance) {
		i.Status.Whole, i.Status.HandledRequests, i.Status.Execution.Owed = nil, nil, nil
		for at := range i.Status.Inventory {
			i.Status.Inventory[at].Restart, i.Status.Inventory[at].Manual = "", false
		}
	}

	It("are read without running or restarting anything", func(ctx context.Context) {
		stop := runAgent()
		h := newInstance(ctx, loadPackage(workloads), nil)
		h.playWorkloads()
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before, execution := h.readWorkloads(ctx), h.get(ctx).Status.Execution.UID
		stop()
		h.tamperStatus(ctx, legacy)
		h.report(ctx, legacy)
		DeferCleanup(runAgent())
		Eventually(func() *kudo.WholeVersion { return h.get(ctx).Status.Whole }).Should(HaveField("Version", "1.0.0"))
		Consistently(func() types.UID { return h.get(ctx).Status.Execution.UID }).Should(Equal(execution))
		Expect(h.readWorkloads(ctx)).To(Equal(before))
		Expect(h.ready(ctx).Status).To(Equal(metav1.ConditionTrue))

		h.set(ctx, map[string]string{"SIZE": "2"})
		h.completes(ctx, "deploy", kudo.PlanStatus{UID: execution})
		Expect(templates(h.readWorkloads(ctx))).To(Equal(templates(before)))
		h.finish(ctx)
	})

	It("with a failed deploy that a later plan has hidden show it", func(ctx context.Context) {
		stop := runAgent()
		h := newInstance(ctx, gatePackage(), map[string]string{"KIND": "Nonsense"})
		h.resolve(ctx)
		Eventually(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonPlanFailed))
		h.change(ctx, requests("noop", "by-hand"))
		h.expectEnded(ctx, "noop", "by-hand")
		stop()
		h.tamperStatus(ctx, legacy)
		h.report(ctx, legacy)
		DeferCleanup(runAgent())
		Eventually(func() []kudo.OwedPlan { return h.get(ctx).Status.Execution.Owed }).Should(
			ConsistOf(kudo.OwedPlan{Plan: "deploy", Whole: true, Outcome: kudo.OwedFailed}))
		Expect(h.ready(ctx)).To(is(metav1.ConditionFalse, kudo.ReasonPlanFailed, `plan "deploy" failed`))
		Consistently(func() types.UID { return h.get(ctx).Status.Execution.UID }).Should(BeEquivalentTo("by-hand"))
		h.finish(ctx)
	})
})
