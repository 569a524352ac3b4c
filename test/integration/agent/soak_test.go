package agent

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// soakCondition returns condition Soaked of the Instance on the hub; the zero value if there is none.
func (h *hubPart) soakCondition(ctx context.Context) metav1.Condition {
	GinkgoHelper()
	return ptr.Deref(meta.FindStatusCondition(h.get(ctx).Status.Conditions, kudo.ConditionSoaked), metav1.Condition{})
}

var _ = Describe("An Instance that has to be healthy for a time after its plan", func() {
	setHealthyFor := func(d time.Duration) func(*kudo.InstanceSpec) {
		return func(s *kudo.InstanceSpec) { s.HealthyFor = &metav1.Duration{Duration: d} }
	}
	install := func(ctx context.Context, spec kudo.OperatorVersionSpec, d time.Duration) *hubPart {
		GinkgoHelper()
		h := newInstance(ctx, spec, nil)
		h.edit(ctx, func(i *kudo.Instance) { setHealthyFor(d)(&i.Spec) })
		h.resolve(ctx)
		return h
	}
	deploy := func(ctx context.Context, d time.Duration) *hubPart {
		GinkgoHelper()
		h := install(ctx, standard(), d)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		return h
	}
	eventually := func(ctx context.Context, h *hubPart) AsyncAssertion {
		return Eventually(func() metav1.Condition { return h.soakCondition(ctx) })
	}
	reason := func(reason string) types.GomegaMatcher { return HaveField("Reason", reason) }
	breakDown := func(ctx context.Context, h *hubPart) {
		GinkgoHelper()
		app := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name + "-app"}}
		Expect(environment.EditStatus(ctx, managed, app, func(d *appsv1.Deployment) { d.Status.ReadyReplicas, d.Status.AvailableReplicas = 0, 0 })).To(Succeed())
	}
	// setRestarts sets how often the container of a pod has restarted, as a kubelet does.
	setRestarts := func(ctx context.Context, pod *corev1.Pod, count int32) {
		GinkgoHelper()
		status := corev1.ContainerStatus{Name: "app", Ready: true, RestartCount: count, State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()},
		}}
		if count > 0 {
			status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", FinishedAt: metav1.Now()}
		}
		patch := client.MergeFrom(pod.DeepCopy())
		pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodRunning, []corev1.ContainerStatus{status}
		Expect(managed.Status().Patch(ctx, pod, patch)).To(Succeed())
	}

	Context("while the agent runs", func() {
		BeforeEach(func() { DeferCleanup(runAgent()) })

		It("has soaked after that time, whatever follows, until another execution changes it", func(ctx context.Context) {
			h := deploy(ctx, 4*time.Second)
			eventually(ctx, h).Should(And(reason(kudo.ReasonHealthyLongEnough), HaveField("Status", metav1.ConditionTrue),
				HaveField("ObservedGeneration", h.get(ctx).Generation)))
			record := h.get(ctx).Status.Soak
			Expect(record.Execution).To(Equal(h.get(ctx).Status.Execution.UID))
			Expect(record.CompletionTime.Sub(record.Since.Time)).To(BeNumerically(">=", 4*time.Second))
			Eventually(func() []string { return h.eventsOf(ctx, kudo.ConditionSoaked) }).Should(HaveLen(1))

			By("being unhealthy")
			breakDown(ctx, h)
			Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionFalse))
			h.change(ctx, setHealthyFor(3*time.Second))
			eventually(ctx, h).Should(And(HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", h.get(ctx).Generation)))
			Expect(h.get(ctx).Status.Soak).To(Equal(record))

			By("requiring more")
			h.change(ctx, setHealthyFor(time.Hour))
			eventually(ctx, h).Should(And(reason(kudo.ReasonUnhealthy), HaveField("Status", metav1.ConditionFalse)))
			Expect(h.plan(ctx, "deploy").Status).To(Equal(kudo.Complete), "nothing runs")

			By("changing it")
			before := h.plan(ctx, "update")
			h.change(ctx, setParameter("VALUE", "two"))
			eventually(ctx, h).Should(reason(kudo.ReasonPlanPending))
			h.rollsOut(ctx, "update", before)
			h.completes(ctx, "update", before)
			eventually(ctx, h).Should(And(reason(kudo.ReasonSoaking), HaveField("Message", HavePrefix("healthy since "))))

			By("requiring nothing")
			h.change(ctx, func(s *kudo.InstanceSpec) { s.HealthyFor = nil })
			eventually(ctx, h).Should(BeZero())
			Eventually(func() *kudo.SoakStatus { return h.get(ctx).Status.Soak }).Should(BeNil())
			h.finish(ctx)
		})

		It("counts the time from the last restart of a container, and does not count pods that are created", func(ctx context.Context) {
			h := install(ctx, standard(), 20*time.Second)
			Eventually(func() bool { return h.local(ctx, "-app", &appsv1.Deployment{}) }).Should(BeTrue())
			pod := h.controlledPod(ctx, "app")
			setRestarts(ctx, pod, 1) // before the end of the plan
			h.rollOut(ctx)
			h.completes(ctx, "deploy", kudo.PlanStatus{})
			eventually(ctx, h).Should(reason(kudo.ReasonSoaking))
			since := h.get(ctx).Status.Soak.Since.Time
			h.podOf(ctx, map[string]string{"app": h.name})
			Eventually(time.Now).Should(BeTemporally(">", since.Add(2*time.Second)))
			setRestarts(ctx, pod, 2)
			eventually(ctx, h).Should(And(reason(kudo.ReasonRestarted),
				HaveField("Message", HavePrefix("container app of Pod "+h.namespace+"/"+pod.Name+" has restarted: exited with code 137 (OOMKilled); healthy since "))))
			record := h.get(ctx).Status.Soak
			Expect(record).To(And(HaveField("Restarts", BeEquivalentTo(1)), HaveField("Since.Time", BeTemporally(">", since))))
			Eventually(func() []string { return h.eventsOf(ctx, kudo.ReasonRestarted) }).Should(HaveLen(1))
			eventually(ctx, h).Should(reason(kudo.ReasonHealthyLongEnough))
			Expect(h.get(ctx).Status.Soak.CompletionTime.Sub(record.Since.Time)).To(BeNumerically(">=", 20*time.Second))
			h.finish(ctx)
		})

		It("counts no time while objects differ, or it is unhealthy, for too long of which it fails and can recover", func(ctx context.Context) {
			h := deploy(ctx, 8*time.Second)
			config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name + "-config"}}
			write := func(value string) {
				GinkgoHelper()
				Expect(managed.Patch(ctx, config, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"value":"`+value+`"}}`)), client.FieldOwner("intruder"))).To(Succeed())
			}
			eventually(ctx, h).Should(reason(kudo.ReasonSoaking))
			write("another")
			eventually(ctx, h).Should(And(reason(kudo.ReasonDrifted), HaveField("Message", ContainSubstring("ConfigMap "+h.namespace+"/"+h.name+"-config"))))
			write("one")
			eventually(ctx, h).Should(And(reason(kudo.ReasonSoaking), HaveField("Message", ContainSubstring("; the time was interrupted: ConfigMap "))))

			breakDown(ctx, h)
			eventually(ctx, h).Should(And(reason(kudo.ReasonUnhealthy), HaveField("Message", ContainSubstring("Deployment "+h.namespace+"/"+h.name+"-app"))))
			eventually(ctx, h).Should(And(reason(kudo.ReasonSoakFailed), HaveField("Message", HavePrefix("the Instance was unhealthy for 8s in total since its plan: "))))
			Eventually(func() []string { return h.eventsOf(ctx, kudo.ReasonSoakFailed) }).Should(HaveLen(1))
			h.rollOut(ctx)
			eventually(ctx, h).Should(reason(kudo.ReasonHealthyLongEnough))
			Expect(h.get(ctx).Status.Soak.Failure).To(BeEmpty())
			h.finish(ctx)
		})

		It("counts restarts and drift of its children", func(ctx context.Context) {
			spec := configOnly()
			spec.Templates["child.yaml"] = "VALUE: two\n"
			spec.Tasks = append(spec.Tasks, childTask("child", "child.yaml"))
			spec.Plans = map[string]kudo.Plan{"deploy": serial("child")}
			parent := install(ctx, spec, 30*time.Second)
			Eventually(func() kudo.ExecutionStatus { return parent.plan(ctx, "deploy").Status }).Should(Equal(kudo.InProgress))
			child := parent.bear(ctx, "child", standard())
			owner := parent.get(ctx)
			child.edit(ctx, func(i *kudo.Instance) {
				i.Labels = map[string]string{kudo.LabelRoot: parent.name}
				i.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kudo.GroupVersion.WithKind("Instance"))}
			})
			local := &hubPart{name: render.InstanceName(child.name), namespace: child.namespace}
			pod := local.controlledPod(ctx, "app")
			setRestarts(ctx, pod, 0)
			child.rollOut(ctx)
			parent.completes(ctx, "deploy", kudo.PlanStatus{})
			eventually(ctx, parent).Should(reason(kudo.ReasonSoaking))
			Expect(child.soakCondition(ctx)).To(BeZero())
			setRestarts(ctx, pod, 1)
			eventually(ctx, parent).Should(And(reason(kudo.ReasonRestarted), HaveField("Message", ContainSubstring(pod.Name))))
			config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: child.namespace, Name: local.name + "-config"}}
			Expect(managed.Patch(ctx, config, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"value":"another"}}`)), client.FieldOwner("intruder"))).To(Succeed())
			eventually(ctx, parent).Should(And(reason(kudo.ReasonDrifted), HaveField("Message", ContainSubstring("Instance "+child.name+": "))))
			child.edit(ctx, func(i *kudo.Instance) { i.OwnerReferences = nil })
			parent.finish(ctx)
			child.finish(ctx)
		})
	})

	It("neither loses nor shortens the time if the agent is restarted", func(ctx context.Context) {
		stop := runAgent()
		h := deploy(ctx, 12*time.Second)
		eventually(ctx, h).Should(reason(kudo.ReasonSoaking))
		before := h.mirror(ctx).Status.Soak
		stop()
		DeferCleanup(runAgent())
		eventually(ctx, h).Should(reason(kudo.ReasonHealthyLongEnough))
		after := h.get(ctx).Status.Soak
		Expect(after.Since).To(Equal(before.Since))
		Expect(after.CompletionTime.Sub(after.Since.Time)).To(BeNumerically(">=", 12*time.Second))
		h.finish(ctx)
	})
})
