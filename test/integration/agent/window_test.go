package agent

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// freezeUntil returns maintenance windows that are closed from yesterday until a time, which has no part of a minute.
func freezeUntil(end time.Time) string {
	const format = "2006-01-02T15:04"
	return fmt.Sprintf("freeze: [{from: %s, to: %s, reason: a test}]", time.Now().UTC().AddDate(0, 0, -1).Format(format), end.UTC().Format(format))
}

var _ = Describe("A maintenance window", func() {
	var tomorrow time.Time
	var closed, opening string

	BeforeEach(func() {
		DeferCleanup(runAgent())
		tomorrow = time.Now().UTC().AddDate(0, 0, 1).Truncate(time.Minute)
		closed, opening = freezeUntil(tomorrow), tomorrow.Format(time.RFC3339)
	})

	setWindows := func(windows string) func(*kudo.InstanceSpec) {
		return func(s *kudo.InstanceSpec) { s.ClusterWindows = windows }
	}
	waitMessage := func(ctx context.Context, h *hubPart) func() string {
		return func() string { return waitCondition(ctx, h).Message }
	}
	deployed := func(ctx context.Context, operator string) (*hubPart, kudo.PlanStatus) {
		GinkgoHelper()
		spec := configOnly()
		spec.Operator.Name = operator
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		return h, h.plan(ctx, "deploy")
	}
	// setOwn creates, changes or, if there are none, deletes the windows of the administrator of the managed cluster.
	setOwn := func(ctx context.Context, windows string) {
		GinkgoHelper()
		own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: kudo.WindowsConfigMap}}
		if windows == "" {
			Expect(client.IgnoreNotFound(managed.Delete(ctx, own))).To(Succeed())
			return
		}
		_, err := controllerutil.CreateOrUpdate(ctx, managed, own, func() error { // never deleted in between: the plan would start
			own.Data = map[string]string{kudo.WindowsKey: windows}
			return nil
		})
		Expect(err).NotTo(HaveOccurred())
	}

	It("that the hub sets holds up a change, leaves Ready as it is, and lets the change start once it opens", func(ctx context.Context) {
		h, before := deployed(ctx, "windowed")
		generation := h.get(ctx).Generation
		h.change(ctx, func(s *kudo.InstanceSpec) {
			setWindows(closed)(s)
			setParameter("VALUE", "two")(s)
		})
		Eventually(waitMessage(ctx, h)).Should(Equal(
			`plan "deploy" waits for a maintenance window, closed by the hub (ManagedCluster), freeze "a test": opens at ` + opening))
		Expect(waitCondition(ctx, h).Reason).To(Equal(kudo.ReasonWindow))
		Expect(plansWaiting("windowed", kudo.ReasonWindow)).To(BeEquivalentTo(1))
		Consistently(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(Equal(before))
		Expect(h.ready(ctx)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", generation)), "before the change")
		Expect(h.config(ctx, "-config")).To(Equal("one"))

		By("opening it in the next minutes")
		h.change(ctx, setWindows(freezeUntil(time.Now().Add(90*time.Second))))
		Eventually(func() string { return h.config(ctx, "-config") }, 5*time.Minute).Should(Equal("two"))
		h.completes(ctx, "deploy", before)
		Expect(waitCondition(ctx, h)).To(BeZero())
		Expect(plansWaiting("windowed", kudo.ReasonWindow)).To(BeZero())
		h.finish(ctx)
	})

	It("of the administrator of the cluster holds up a change, whatever the hub says; a malformed one is closed, and a removal does not wait", func(ctx context.Context) {
		h, _ := deployed(ctx, "vetoed")
		DeferCleanup(func(ctx context.Context) { setOwn(ctx, "") })
		setOwn(ctx, closed)
		own := "closed by the managed cluster (ConfigMap " + agent.DefaultNamespace + "/" + kudo.WindowsConfigMap + ")"
		h.change(ctx, func(s *kudo.InstanceSpec) {
			setParameter("VALUE", "two")(s)
			s.IgnoreWindowsUntil = &metav1.Time{Time: time.Now().Add(time.Hour)}
		})
		Eventually(waitMessage(ctx, h)).Should(Equal(`plan "deploy" waits for a maintenance window, ` + own + `, freeze "a test": opens at ` + opening))
		setOwn(ctx, "always")
		Eventually(waitMessage(ctx, h)).Should(HavePrefix(`plan "deploy" waits for a maintenance window, ` + own + ", whose windows are malformed: "))
		Expect(h.config(ctx, "-config")).To(Equal("one"))

		By("the end of the veto")
		setOwn(ctx, "")
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("two"))
		setOwn(ctx, closed)
		h.finish(ctx)
	})

	It("lets a plan that has started end, and a change start on request, with an event", func(ctx context.Context) {
		h := newInstance(ctx, standard(), map[string]string{"FEATURE": "true"})
		h.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.step(ctx, 1) }).Should(Equal(kudo.InProgress))
		h.change(ctx, setWindows(closed))
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(waitCondition(ctx, h)).To(BeZero(), "nothing waits")

		before := h.plan(ctx, "deploy")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "again"} })
		Eventually(waitMessage(ctx, h)).Should(HavePrefix(`plan "deploy" waits for a maintenance window, closed by the hub (ManagedCluster)`))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.IgnoreWindowsUntil = &metav1.Time{Time: time.Now().AddDate(0, 0, 3)} })
		Eventually(waitMessage(ctx, h)).Should(HaveSuffix("; spec.ignoreWindowsUntil has no effect more than 24 hours ahead"))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.IgnoreWindowsUntil = &metav1.Time{Time: time.Now().Add(time.Hour)} })
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(HaveField("UID", BeEquivalentTo("again")))
		Eventually(func() []string { return h.eventsOf(ctx, "WindowOverridden") }).Should(ConsistOf(ContainSubstring("closed by the hub (ManagedCluster)")))
		h.rollsOut(ctx, "deploy", before)
		h.completes(ctx, "deploy", before)
		h.finish(ctx)
	})

	It("that closes while a plan runs lets its children deploy, which wait for the windows of their parent afterwards", func(ctx context.Context) {
		spec := configOnly()
		spec.Templates["child.yaml"] = "VALUE: two\n"
		spec.Tasks = append(spec.Tasks, childTask("child", "child.yaml"))
		spec.Plans = map[string]kudo.Plan{"deploy": {Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "child", Tasks: []string{"child"}}}}}}}
		parent := newInstance(ctx, spec, nil)
		parent.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return parent.plan(ctx, "deploy").Status }).Should(Equal(kudo.InProgress))
		parent.change(ctx, setWindows(closed))

		By("the child's creation")
		child, owner := &hubPart{name: parent.name + ".child", namespace: parent.namespace}, parent.get(ctx)
		child.make(ctx, configOnly(), nil)
		child.edit(ctx, func(i *kudo.Instance) {
			i.Labels = map[string]string{kudo.LabelRoot: parent.name}
			i.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kudo.GroupVersion.WithKind("Instance"))}
		})
		child.resolve(ctx)
		acknowledge := func() {
			GinkgoHelper()
			made := child.get(ctx)
			parent.report(ctx, func(i *kudo.Instance) {
				i.Status.Children = []kudo.ChildStatus{{Task: "child", Execution: i.Status.Execution.UID, State: kudo.ChildApplied,
					Instance: child.name, UID: made.UID, Generation: made.Generation}}
			})
		}
		acknowledge()
		child.completes(ctx, "deploy", kudo.PlanStatus{})
		parent.completes(ctx, "deploy", kudo.PlanStatus{})

		By("a change of the child alone")
		before := child.plan(ctx, "deploy")
		child.change(ctx, setParameter("VALUE", "three"))
		Eventually(waitMessage(ctx, child)).Should(HavePrefix(`plan "deploy" waits for a maintenance window, closed by the hub (ManagedCluster)`))
		parent.change(ctx, setWindows(""))
		child.completes(ctx, "deploy", before)
		child.edit(ctx, func(i *kudo.Instance) { i.OwnerReferences = nil })
		parent.finish(ctx)
		child.finish(ctx)
	})
})
