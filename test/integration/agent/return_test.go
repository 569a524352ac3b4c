package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// sealed returns a package that stores a sensitive parameter in a Secret, with a ConfigMap.
func sealed() kudo.OperatorVersionSpec {
	spec := confidential()
	spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "LABEL"})
	spec.Plans = map[string]kudo.Plan{"deploy": serial("credential", "config")}
	return spec
}

// breaking returns the next version of sealed: its plan applies one more ConfigMap, and fails at its last step until parameter LABEL is a label.
func breaking() kudo.OperatorVersionSpec {
	spec := sealed()
	spec.Version, spec.Returnable = "2.0.0", true
	spec.Templates["extra.yaml"], spec.Templates["bad.yaml"] = strings.ReplaceAll(spec.Templates["config.yaml"], "-config", "-extra"), labelTemplate
	spec.Tasks = append(spec.Tasks, task("extra", kudo.TaskApply, "extra.yaml"), task("bad", kudo.TaskApply, "bad.yaml"))
	spec.Plans = map[string]kudo.Plan{"deploy": serial("extra", "credential", "config", "bad")}
	return spec
}

// collectReady returns a function that returns condition Ready of the Instance of a name, each time that it was written on the managed cluster since, without
// duplicates in sequence. The watch is read until the context ends: what is not read in time ends a watch.
func collectReady(ctx context.Context) func(name string) []metav1.Condition {
	GinkgoHelper()
	mirrors, err := managed.Watch(ctx, &kudo.InstanceList{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(mirrors.Stop)
	var mutex sync.Mutex
	collected := map[string][]metav1.Condition{}
	collect := func(instance *kudo.Instance) {
		mutex.Lock()
		defer mutex.Unlock()
		all := collected[instance.Name]
		if ready := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady); ready != nil && (len(all) == 0 || all[len(all)-1] != *ready) {
			collected[instance.Name] = append(all, *ready)
		}
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case event, isOpen := <-mirrors.ResultChan():
				if !isOpen {
					return
				}
				if instance, isInstance := event.Object.(*kudo.Instance); isInstance {
					collect(instance)
				}
			}
		}
	}()
	return func(name string) []metav1.Condition {
		mutex.Lock()
		defer mutex.Unlock()
		return slices.Clone(collected[name])
	}
}

var _ = Describe("An Instance whose upgrade fails", func() {
	var (
		h    *hubPart
		stop func()
	)
	BeforeEach(func(ctx context.Context) {
		makeAgentNamespace(ctx)
		stop = runAgent()
	})
	AfterEach(func(ctx context.Context) {
		h.finish(ctx)
		Expect(invariants.Violations(ctx, hub)).To(BeEmpty())
		stop()
	})
	// give creates or replaces the Secret with one key.
	give := func(ctx context.Context, key, value string) {
		GinkgoHelper()
		Expect(client.IgnoreAlreadyExists(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))).To(Succeed())
		given := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "given"}, Data: map[string][]byte{key: []byte(value)}}
		if err := managed.Create(ctx, given); err != nil {
			Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
			Expect(managed.Update(ctx, given)).To(Succeed())
		}
	}
	stored := func(ctx context.Context) string {
		GinkgoHelper()
		found := &corev1.Secret{}
		Expect(h.local(ctx, "-credential", found)).To(BeTrue())
		return string(found.Data["password"])
	}
	// upgraded installs the first version, and changes to the second one with other values, while the hub loses the first one and the Secret its former key.
	upgraded := func(ctx context.Context, second kudo.OperatorVersionSpec) {
		GinkgoHelper()
		h = newInstance(ctx, sealed(), map[string]string{"VALUE": "one"})
		give(ctx, "former", "hunter1")
		h.edit(ctx, func(i *kudo.Instance) { i.Spec.ParametersFrom = from("given", "former") })
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		push(ctx, h.name+"-2.0.0", second)
		h.edit(ctx, func(i *kudo.Instance) { i.Spec.Suspend = true })
		give(ctx, "rotated", "hunter2")
		Expect(hub.Delete(ctx, &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: h.name + "-1.0.0"}})).To(Succeed())
		h.change(ctx, func(s *kudo.InstanceSpec) {
			s.OperatorVersion.Name, s.OnFailure, s.Suspend = h.name+"-2.0.0", kudo.FailureReturn, false
			s.Parameters = map[string]string{"VALUE": "two", "LABEL": "not a label"}
			s.ParametersFrom = from("given", "rotated")
		})
	}
	returns := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonReturned, `version 2.0.0 has failed, and version 1.0.0 runs again: phase "main": step "bad"`))
		Expect(h.config(ctx, "-config")).To(Equal("one"))
		Expect(stored(ctx)).To(Equal("hunter1"))
		Eventually(func() string { return h.config(ctx, "-extra") }).Should(BeEmpty())
	}

	It("returns to the former version and its values, although the hub has neither, and stays there", func(ctx context.Context) {
		collected := collectReady(ctx)
		upgraded(ctx, breaking())
		returns(ctx)
		last := func(all []metav1.Condition) metav1.Condition { return all[len(all)-1] }
		Eventually(collected).WithArguments(h.name).Should(And(Not(BeEmpty()), WithTransform(last, HaveField("Reason", kudo.ReasonReturned))))
		Expect(collected(h.name)).To(HaveEach(HaveField("Message", Not(ContainSubstring("cannot be applied again")))))
		status := h.get(ctx).Status
		Expect(status.Returned).To(And(HaveField("From", "2.0.0"), HaveField("Plan", "deploy"), HaveField("Cause", ContainSubstring("bad"))))
		Expect(status.Former).To(BeNil())
		Expect(status.Whole.Version).To(Equal("1.0.0"))
		Expect(status.History[len(status.History)-1]).To(And(HaveField("Cause", kudo.CauseReturn), HaveField("Outcome", kudo.HistoryComplete)))
		Expect(h.recorded(ctx, kudo.ConditionAvailable)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", kudo.ReasonReturned)))
		Expect(h.recorded(ctx, kudo.ConditionStalled)).NotTo(BeNil())
		Expect(h.eventsOf(ctx, "Returned")).To(ConsistOf(ContainSubstring("version 2.0.0 has failed, and version 1.0.0 runs again")))

		By("starting the agent again, and changing what asks for no other state")
		stop()
		locally, writes := environment.RecordWrites(agentLocally)
		stop = runAgentWith(agentOnHub, locally)
		execution := status.Execution.UID
		h.change(ctx, func(s *kudo.InstanceSpec) { s.ClusterWindows = ""; s.IgnoreWindowsUntil = &metav1.Time{} })
		generation := h.get(ctx).Generation
		Eventually(func() int64 { return h.ready(ctx).ObservedGeneration }).Should(Equal(generation))
		Consistently(func() types.UID { return h.get(ctx).Status.Execution.UID }).Should(Equal(execution))
		Expect(h.ready(ctx)).To(is(metav1.ConditionFalse, kudo.ReasonReturned, "runs again"))
		quiet := len(h.writesOf(writes, nil))
		Consistently(func() []string { return h.writesOf(writes, nil)[quiet:] }).Should(BeEmpty())

		By("trying it again on request, which fails again")
		h.change(ctx, func(s *kudo.InstanceSpec) {
			s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "again", Resume: status.Returned.Execution}
		})
		Eventually(func() *kudo.Return { return h.get(ctx).Status.Returned }).Should(HaveField("Execution", BeEquivalentTo("again")))
		returns(ctx)

		By("correcting the cause")
		h.change(ctx, setParameter("LABEL", "fine"))
		h.completes(ctx, "deploy", h.plan(ctx, "deploy"))
		Expect(h.get(ctx).Status).To(And(HaveField("Returned", BeNil()), HaveField("Former", BeNil()), HaveField("Whole.Version", "2.0.0")))
		Expect(stored(ctx)).To(Equal("hunter2"))
		copied := &corev1.Secret{}
		Expect(managed.Get(ctx, client.ObjectKey{Namespace: agent.DefaultNamespace, Name: "tandem-parameters-" + string(h.get(ctx).UID)}, copied)).To(Succeed())
		Expect(copied.Data).To(HaveLen(1))
	})

	It("does not return from a package whose author does not allow it, and says so", func(ctx context.Context) {
		second := breaking()
		second.Returnable = false
		upgraded(ctx, second)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed,
			"the former version cannot be applied again: package app 2.0.0 does not declare that returning from it loses nothing"))
		Consistently(func() string { return h.config(ctx, "-config") }).Should(Equal("two"))
	})

	It("returns although its plan was complete, if it is not healthy for long enough after it", func(ctx context.Context) {
		h = newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		second := standard()
		second.Version, second.Returnable = "2.0.0", true
		second.Templates["extra.yaml"] = strings.ReplaceAll(second.Templates["config.yaml"], "-config", "-extra")
		second.Tasks = append(second.Tasks, task("extra", kudo.TaskApply, "extra.yaml"))
		second.Plans["deploy"] = serial("config", "app", "extra")
		delete(second.Plans, "update")
		push(ctx, h.name+"-2.0.0", second)
		h.change(ctx, func(s *kudo.InstanceSpec) {
			s.OperatorVersion.Name, s.OnFailure, s.HealthyFor = h.name+"-2.0.0", kudo.FailureReturn, &metav1.Duration{Duration: 5 * time.Second}
			s.Parameters = map[string]string{"VALUE": "two"}
		})
		Eventually(func() *kudo.WholeVersion {
			h.rollOut(ctx)
			return h.get(ctx).Status.Whole
		}).Should(HaveField("Version", "2.0.0"))
		Expect(h.get(ctx).Status.Former).To(HaveField("Version", "1.0.0"))
		app := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name + "-app"}}
		Expect(environment.EditStatus(ctx, managed, app, func(d *appsv1.Deployment) { d.Status.ReadyReplicas, d.Status.AvailableReplicas = 0, 0 })).To(Succeed())
		Eventually(func() *kudo.Return { return h.get(ctx).Status.Returned }).Should(
			And(HaveField("From", "2.0.0"), HaveField("Cause", ContainSubstring("replicas"))))
		Eventually(func() metav1.Condition {
			h.rollOut(ctx)
			return h.ready(ctx)
		}).Should(is(metav1.ConditionFalse, kudo.ReasonReturned, "version 2.0.0 has failed, and version 1.0.0 runs again: "))
		Expect(h.config(ctx, "-config")).To(Equal("one"))
		Eventually(func() string { return h.config(ctx, "-extra") }).Should(BeEmpty())
		Expect(h.get(ctx).Status).To(And(HaveField("Former", BeNil()), HaveField("Soak", BeNil())))
	})
})
