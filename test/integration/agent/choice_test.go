package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// choices returns the standard package with a plan "backup" that has its own parameter: it is in ERROR until a namespace exists with the
// Instance's name and the suffix "-gate".
func choices() kudo.OperatorVersionSpec {
	spec := standard()
	spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "BACKUP", Trigger: "backup"})
	spec.Templates["gate.yaml"] = `
apiVersion: v1
kind: ConfigMap
metadata: {name: gate, namespace: "{{ .Name }}-gate"}
data: {value: "{{ .Params.BACKUP }}"}`
	spec.Tasks = append(spec.Tasks, task("gate", kudo.TaskApply, "gate.yaml"), task("wait", kudo.TaskDummy))
	spec.Plans["backup"] = serial("gate")
	return spec
}

// openGate lets plan "backup" complete.
func (h *hubPart) openGate(ctx context.Context) {
	GinkgoHelper()
	Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.name + "-gate"}})).To(Succeed())
}

func (h *hubPart) gate(ctx context.Context) string {
	GinkgoHelper()
	config := &corev1.ConfigMap{}
	err := managed.Get(ctx, client.ObjectKey{Namespace: h.name + "-gate", Name: "gate"}, config)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return config.Data["value"]
}

// rollsOut acts as the Deployment controller until a plan is complete, in another execution than the given one.
func (h *hubPart) rollsOut(ctx context.Context, plan string, before kudo.PlanStatus) {
	GinkgoHelper()
	Eventually(func() kudo.PlanStatus {
		h.rollOut(ctx)
		return h.plan(ctx, plan)
	}).Should(And(HaveField("UID", Not(Equal(before.UID))), HaveField("Status", kudo.Complete)))
}

// setParameter changes one parameter.
func setParameter(name, value string) func(*kudo.InstanceSpec) {
	return func(s *kudo.InstanceSpec) {
		if s.Parameters == nil {
			s.Parameters = map[string]string{}
		}
		s.Parameters[name] = value
	}
}

// byHand requests a plan.
func byHand(plan string, uid types.UID) func(*kudo.InstanceSpec) {
	return func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{PlanName: plan, UID: uid} }
}

// watchReady returns a function that returns the reasons that condition Ready has had on the managed cluster since its last call.
func (h *hubPart) watchReady(ctx context.Context) func() []string {
	GinkgoHelper()
	watcher, err := client.NewWithWatch(agentLocally, client.Options{Scheme: managed.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	events, err := watcher.Watch(ctx, &kudo.InstanceList{}, client.InNamespace(h.namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(events.Stop)
	return func() (reasons []string) {
		for {
			select {
			case event := <-events.ResultChan():
				instance, ok := event.Object.(*kudo.Instance)
				Expect(ok).To(BeTrue(), "%v", event)
				reasons = append(reasons, meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady).Reason)
			default:
				return reasons
			}
		}
	}
}

var _ = Describe("The plan that runs", func() {
	var stop func()
	BeforeEach(func() { stop = runAgent() })
	AfterEach(func(ctx context.Context) {
		Expect(invariants.Violations(ctx, hub)).To(BeEmpty())
		stop()
	})

	// deployed returns a deployed Instance of a package.
	deployed := func(ctx context.Context, spec kudo.OperatorVersionSpec) *hubPart {
		GinkgoHelper()
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		return h
	}
	state := func(ctx context.Context, h *hubPart, plan string) func() kudo.ExecutionStatus {
		return func() kudo.ExecutionStatus { return h.plan(ctx, plan).Status }
	}

	It("is restarted by a change that selects it, with the new values", func(ctx context.Context) {
		h := deployed(ctx, choices())
		h.change(ctx, setParameter("VALUE", "two"))
		Eventually(state(ctx, h, "update")).Should(Equal(kudo.InProgress))
		first := h.plan(ctx, "update")

		h.change(ctx, setParameter("VALUE", "three"))
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("three"))
		Eventually(func() any { return h.plan(ctx, "update").UID }).ShouldNot(Equal(first.UID))
		h.rollsOut(ctx, "update", first)
		Expect(h.get(ctx).Status.Execution.Parameters).To(HaveKeyWithValue("VALUE", "three"))
		h.finish(ctx)
	})

	It("holds back a change that selects another plan, which is carried out after it", func(ctx context.Context) {
		h := deployed(ctx, choices())
		h.openGate(ctx)
		h.change(ctx, setParameter("VALUE", "two"))
		Eventually(state(ctx, h, "update")).Should(Equal(kudo.InProgress))
		h.change(ctx, setParameter("BACKUP", "full"))
		Eventually(func() int64 { return h.get(ctx).Status.ObservedGeneration }).Should(Equal(h.get(ctx).Generation))
		Consistently(state(ctx, h, "backup")).Should(Equal(kudo.NeverRun))
		Expect(h.get(ctx).Status.Execution.Parameters).NotTo(HaveKey("BACKUP"), "it is of the next plan")

		said := h.watchReady(ctx)
		h.rollsOut(ctx, "update", kudo.PlanStatus{})
		h.completes(ctx, "backup", kudo.PlanStatus{})
		var reasons []string
		Eventually(func() []string {
			reasons = append(reasons, said()...)
			return reasons
		}).Should(ContainElement(kudo.ReasonHealthy))
		Expect(slices.Compact(reasons)).To(HaveExactElements(kudo.ReasonPlanInProgress, kudo.ReasonPlanPending, kudo.ReasonPlanInProgress, kudo.ReasonHealthy),
			"it is not Ready between the two")
		Expect(h.plan(ctx, "update").Status).To(Equal(kudo.Complete))
		Expect(h.gate(ctx)).To(Equal("full"))
		h.finish(ctx)
	})

	It("in ERROR gives way to a change that selects another plan, and has ended then", func(ctx context.Context) {
		h := deployed(ctx, choices())
		h.change(ctx, setParameter("BACKUP", "full"))
		Eventually(state(ctx, h, "backup")).Should(Equal(kudo.Error))
		h.change(ctx, setParameter("VALUE", "two"))
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "backup") }).Should(
			And(HaveField("Status", kudo.FatalError), HaveField("Message", `superseded by plan "update"`)))
		h.rollsOut(ctx, "update", kudo.PlanStatus{})
		h.finish(ctx)
	})

	It("in ERROR is waited for by the second trigger of the same edit", func(ctx context.Context) {
		spec := choices()
		spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "LAST", Trigger: "last"})
		spec.Plans["last"] = serial("farewell")
		h := deployed(ctx, spec)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"LAST": "x", "BACKUP": "full"} })
		Eventually(state(ctx, h, "backup")).Should(Equal(kudo.Error), "it comes first in the package")
		Consistently(state(ctx, h, "last")).Should(Equal(kudo.NeverRun))

		h.openGate(ctx)
		h.completes(ctx, "last", kudo.PlanStatus{})
		Expect(h.plan(ctx, "backup").Status).To(Equal(kudo.Complete))
		Expect(h.gate(ctx)).To(Equal("full"))
		h.finish(ctx)
	})

	It("is superseded by cleanup when the Instance is deleted, and nothing is left", func(ctx context.Context) {
		spec := choices()
		spec.Plans["cleanup"] = serial("farewell", "gate")
		h := newInstance(ctx, spec, map[string]string{"BACKUP": "last"})
		h.resolve(ctx)
		Eventually(state(ctx, h, "deploy")).Should(Equal(kudo.InProgress))
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(state(ctx, h, "cleanup")).Should(Equal(kudo.Error))
		Expect(h.plan(ctx, "deploy")).To(And(HaveField("Status", kudo.FatalError), HaveField("Message", `superseded by plan "cleanup"`)))

		By("not cancelling the cleanup of a removal")
		h.tamper(ctx, func(mirror *kudo.Instance) {
			mirror.Spec.PlanExecution = kudo.PlanExecution{UID: mirror.Status.Execution.UID, Cancel: true}
		})
		Consistently(state(ctx, h, "cleanup")).Should(Equal(kudo.Error))
		h.openGate(ctx)
		h.finish(ctx)
		for _, suffix := range []string{"-config", "-farewell"} {
			Expect(h.config(ctx, suffix)).To(BeEmpty())
		}
		Expect(h.gate(ctx)).To(BeEmpty())
	})

	It("that failed is run again by hand without any change", func(ctx context.Context) {
		spec := choices()
		spec.Plans["deploy"] = kudo.Plan{Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{
			{Name: "app", Tasks: []string{"app"}, Timeout: &metav1.Duration{Duration: 15 * time.Second}},
			{Name: "config", Tasks: []string{"config"}},
		}}}}
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed,
			fmt.Sprintf(`plan "deploy" failed and will be retried: phase "main": step "app": timed out after 15s: task "app": Deployment %s/%s-app: `, h.namespace, h.name)))
		failed := h.plan(ctx, "deploy")
		Expect(failed.Phases[0].Steps[0].Status).To(Equal(kudo.FatalError))
		Expect(failed.Phases[0].Steps[0].StartedTimestamp).NotTo(BeNil())
		Expect(failed.Phases[0].Steps[1].StartedTimestamp).To(BeNil())
		Expect(h.config(ctx, "-config")).To(BeEmpty(), "nothing is begun after a failure")

		h.change(ctx, byHand("deploy", "again"))
		h.rollsOut(ctx, "deploy", failed)
		Expect(h.plan(ctx, "deploy").UID).To(BeEquivalentTo("again"))
		Expect(h.config(ctx, "-config")).To(Equal("one"))
		h.finish(ctx)
	})

	It("whose time ran out while no agent was there is complete all the same if all has come about", func(ctx context.Context) {
		spec := choices()
		deploy := serial("app")
		deploy.Timeout = &metav1.Duration{Duration: time.Hour}
		spec.Plans["deploy"] = deploy
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("Deployment"))
		stop()
		h.tamperStatus(ctx, func(i *kudo.Instance) {
			status := i.Status.PlanStatus["deploy"]
			earlier := metav1.NewTime(status.StartedTimestamp.Add(-time.Hour))
			status.StartedTimestamp = &earlier
			i.Status.PlanStatus["deploy"] = status
		})
		h.rollOut(ctx)
		stop = runAgent()
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
	})

	It("that is cancelled makes room for what waited", func(ctx context.Context) {
		spec := choices()
		spec.Plans["wait"] = kudo.Plan{Phases: []kudo.Phase{{Name: "main", Strategy: kudo.Parallel, Steps: []kudo.Step{
			{Name: "wait", Tasks: []string{"wait"}}, {Name: "beside", Tasks: []string{"farewell"}},
		}}}}
		h := deployed(ctx, spec)
		h.change(ctx, byHand("wait", "first"))
		Eventually(func() string { return h.config(ctx, "-farewell") }).Should(Equal("one"), "steps run side by side")
		Eventually(state(ctx, h, "wait")).Should(Equal(kudo.InProgress))
		h.change(ctx, setParameter("FEATURE", "true"))
		Consistently(state(ctx, h, "feature")).Should(Equal(kudo.NeverRun))

		h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution.Cancel = true })
		h.completes(ctx, "feature", kudo.PlanStatus{})
		Expect(h.plan(ctx, "wait")).To(And(HaveField("Status", kudo.FatalError), HaveField("Message", "cancelled")))

		By("not running it again when the request to cancel it is taken back")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution.Cancel = false })
		Eventually(func() int64 { return h.get(ctx).Status.ObservedGeneration }).Should(Equal(h.get(ctx).Generation))
		Consistently(state(ctx, h, "wait")).Should(Equal(kudo.FatalError))
		h.finish(ctx)
	})

	It("in which a task fails permanently starts no further task", func(ctx context.Context) {
		spec := choices()
		broken := task("broken", kudo.TaskDummy)
		broken.Spec.WantErr, broken.Spec.Fatal = true, true
		spec.Tasks = append(spec.Tasks, broken)
		steps := []kudo.Step{{Name: "broken", Tasks: []string{"broken"}}}
		for i := range 40 {
			name := fmt.Sprintf("beside-%d", i)
			spec.Templates[name] = fmt.Sprintf(configTemplate, name)
			spec.Tasks = append(spec.Tasks, task(name, kudo.TaskApply, name))
			steps = append(steps, kudo.Step{Name: name, Tasks: []string{name}})
		}
		spec.Plans["deploy"] = kudo.Plan{Phases: []kudo.Phase{{Name: "main", Strategy: kudo.Parallel, Steps: steps}}}
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed, `step "broken"`))
		started := func() int {
			configs := &corev1.ConfigMapList{}
			Expect(managed.List(ctx, configs, client.InNamespace(h.namespace), client.MatchingLabels{kudo.LabelHeritage: kudo.Heritage})).To(Succeed())
			return len(configs.Items)
		}
		count := started()
		Expect(count).To(BeNumerically("<", 40), "those that were not begun yet")
		Consistently(started).Should(Equal(count))
		h.finish(ctx)
	})

	It("continues with its own version while an upgrade with other phases and steps is queued", func(ctx context.Context) {
		h := newInstance(ctx, choices(), nil)
		h.resolve(ctx)
		h.rollsOut(ctx, "deploy", kudo.PlanStatus{})
		h.change(ctx, setParameter("VALUE", "two"))
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("Deployment"))
		next := choices()
		next.Version = "2.0.0"
		next.Parameters = next.Parameters[:2] // without FEATURE and BACKUP
		next.Tasks = next.Tasks[:2]           // without the tasks that use them
		next.Plans = map[string]kudo.Plan{
			"deploy":  serial("config"),
			"upgrade": {Phases: []kudo.Phase{serial("config").Phases[0], {Name: "more", Steps: serial("app").Phases[0].Steps}}},
		}
		push(ctx, h.name+"-2.0.0", next)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
		Consistently(func() string { return h.get(ctx).Status.Execution.OperatorVersion.Name }).Should(Equal(h.name + "-1.0.0"))

		h.rollsOut(ctx, "upgrade", kudo.PlanStatus{})
		Expect(h.get(ctx).Status.Execution.OperatorVersion.Name).To(Equal(h.name + "-2.0.0"))
		Expect(h.plan(ctx, "upgrade").Phases).To(HaveExactElements(HaveField("Name", "main"), HaveField("Name", "more")))
		Expect(h.get(ctx).Status.PlanStatus).To(And(HaveLen(2), HaveKeyWithValue("deploy", HaveField("Status", kudo.NeverRun))))
		h.finish(ctx)
	})
})
