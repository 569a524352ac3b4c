package agent

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// lose removes the Instance from the hub without a deletion that an agent could observe, as when the hub is restored from a backup.
func (h *hubPart) lose(ctx context.Context) *kudo.Instance {
	GinkgoHelper()
	h.release(ctx)
	lost := h.get(ctx)
	Expect(hub.Delete(ctx, lost)).To(Succeed())
	return lost
}

// claim returns a volume claim as a StatefulSet of the Instance creates it from its template.
func (h *hubPart) claim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: h.namespace,
			Labels: map[string]string{kudo.LabelHeritage: kudo.Heritage, kudo.LabelInstance: h.name}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// again re-creates the Instance on the hub, as a user would.
func (h *hubPart) again(ctx context.Context, lost *kudo.Instance, change ...func(*kudo.Instance)) {
	GinkgoHelper()
	lost.ResourceVersion, lost.UID, lost.Status = "", "", kudo.InstanceStatus{}
	lost.DeletionTimestamp, lost.DeletionGracePeriodSeconds = nil, nil
	lost.Finalizers = []string{kudo.Finalizer}
	for _, c := range change {
		c(lost)
	}
	Expect(hub.Create(ctx, lost)).To(Succeed())
}

var _ = Describe("Whatever happens to an Instance", func() {
	var stop func()
	BeforeEach(func() { stop = runAgent() })
	AfterEach(func(ctx context.Context) {
		Expect(invariants.Violations(ctx, hub)).To(BeEmpty())
		stop()
	})

	It("re-created while the previous one, which the hub has released, is cleaned up, it is deployed", func(ctx context.Context) {
		spec := configOnly()
		spec.Plans["cleanup"] = serial("wait")
		spec.Tasks = append(spec.Tasks, task("wait", kudo.TaskDummy))
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "cleanup").Status }).Should(Equal(kudo.InProgress))
		lost := h.get(ctx)
		h.release(ctx)
		h.again(ctx, lost)
		Consistently(func() *kudo.Execution { return h.get(ctx).Status.Execution }).Should(BeNil(), "the other one's is not its own")
		h.resolve(ctx)
		h.completes(ctx, "deploy", lost.Status.PlanStatus["deploy"])
		h.force(ctx)
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		h.release(ctx)
	})

	It("deleted while it is being mirrored, nothing of it is left", func(ctx context.Context) {
		for range 10 {
			h := newInstance(ctx, configOnly(), nil)
			h.resolve(ctx)
			h.finish(ctx)
			Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(BeNil())
			Expect(h.config(ctx, "-config")).To(BeEmpty())
		}
	})

	It("deleted when its mirror was made and not handed over yet, it goes", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
		Expect(managed.Create(ctx, &kudo.Instance{ObjectMeta: metav1.ObjectMeta{
			Name: h.name, Namespace: h.namespace, Finalizers: []string{kudo.Finalizer},
			Annotations: map[string]string{kudo.AnnotationHubUID: string(h.get(ctx).UID)},
		}})).To(Succeed())
		h.finish(ctx)
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(BeNil())
	})

	It("orphaned, re-created, and deleted before it is resolved, its workloads stay, which are not its own", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		lost := h.lose(ctx)
		stop = runAgent()
		Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).Should(HaveKey(kudo.AnnotationOrphaned))
		h.again(ctx, lost)
		Consistently(func() metav1.Condition { return h.ready(ctx) }).Should(BeZero(), "the orphan says nothing about it")
		h.finish(ctx)
		Expect(h.config(ctx, "-config")).To(Equal("one"))
		Expect(h.mirror(ctx).Annotations).To(HaveKey(kudo.AnnotationOrphaned))
	})

	It("restored with another install namespace, it says why it is stuck", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		lost := h.lose(ctx)
		stop = runAgent()
		h.again(ctx, lost, func(i *kudo.Instance) { i.Spec.InstallNamespace = "elsewhere" })
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonNotMirrored, `its workloads run in namespace "`+h.namespace+`"`))
		h.finish(ctx)
	})

	It("when its mirrored OperatorVersion is lost, it is mirrored again", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		names := h.versions(ctx)
		Expect(managed.DeleteAllOf(ctx, &kudo.OperatorVersion{}, client.InNamespace(h.namespace))).To(Succeed())
		Eventually(func() []string { return h.versions(ctx) }).Should(Equal(names))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		h.finish(ctx)
	})

	It("deleted after its mirror was lost, its workloads go all the same", func(ctx context.Context) {
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		h.loseMirror(ctx)
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		stop = runAgent()
		h.finish(ctx)
		Expect(h.local(ctx, "-app", &appsv1.Deployment{})).To(BeFalse())
		Expect(h.config(ctx, "-config")).To(BeEmpty())
	})

	It("removed twice, it keeps the claims that the package retains and nothing else", func(ctx context.Context) {
		spec := configOnly()
		spec.Templates["set.yaml"] = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Name }}-set"}
spec:
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain}
  volumeClaimTemplates: [{metadata: {name: data}}]`
		spec.Tasks = append(spec.Tasks, task("set", kudo.TaskApply, "set.yaml"))
		h := newInstance(ctx, spec, nil)
		for range 2 {
			h.resolve(ctx)
			h.completes(ctx, "deploy", kudo.PlanStatus{})
			for _, name := range []string{"data-" + h.name + "-set-0", "scratch-" + h.name + "-0"} {
				Expect(client.IgnoreAlreadyExists(managed.Create(ctx, h.claim(name)))).To(Succeed())
			}
			lost := h.get(ctx)
			h.finish(ctx)
			Expect(h.config(ctx, "-config")).To(BeEmpty())
			claims := &corev1.PersistentVolumeClaimList{}
			Expect(managed.List(ctx, claims, client.InNamespace(h.namespace))).To(Succeed())
			Expect(claims.Items).To(ConsistOf(HaveField("Name", "data-"+h.name+"-set-0")))
			h.again(ctx, lost)
		}
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		h.release(ctx)
	})

	It("a plan that fails is named, also when nothing can be rendered any more", func(ctx context.Context) {
		spec := configOnly()
		spec.Templates["config.yaml"] = "{{ if eq .Params.VALUE \"bad\" }}{{ fail \"no\" }}{{ end }}" + spec.Templates["config.yaml"]
		spec.Plans["update"] = serial("config")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "bad"} })
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed, `plan "update" failed`))
		h.finish(ctx)
	})

	// ofDeploy edits the status of plan deploy.
	ofDeploy := func(edit func(*kudo.PlanStatus)) func(*kudo.InstanceStatus) {
		return func(i *kudo.InstanceStatus) {
			status := i.PlanStatus["deploy"]
			edit(&status)
			i.PlanStatus["deploy"] = status
		}
	}

	DescribeTable("its plan continues from an edited status", func(ctx context.Context, edit func(*kudo.InstanceStatus)) {
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.InProgress))
		stop()
		h.tamperStatus(ctx, func(mirror *kudo.Instance) { edit(&mirror.Status) })
		stop = runAgent()
		Eventually(func() kudo.ExecutionStatus { return h.mirror(ctx).Status.PlanStatus["deploy"].Status }).Should(Equal(kudo.InProgress))
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.plan(ctx, "deploy").Phases[0].Steps).To(HaveLen(3))
		h.finish(ctx)
	},
		Entry("to nothing", ofDeploy(func(status *kudo.PlanStatus) { *status = kudo.PlanStatus{} })),
		Entry("to fewer phases", ofDeploy(func(status *kudo.PlanStatus) { status.Phases = nil })),
		Entry("to more phases", ofDeploy(func(status *kudo.PlanStatus) { status.Phases = append(status.Phases, status.Phases...) })),
		Entry("to steps without tasks", ofDeploy(func(status *kudo.PlanStatus) { status.Phases[0].Steps[1].Tasks = nil })),
		Entry("to no plans", func(status *kudo.InstanceStatus) { status.PlanStatus = nil }),
	)

	It("removed when its agent dies before it has reported that to the hub, it is not cleaned up again", func(ctx context.Context) {
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before := h.get(ctx).Status
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(HaveValue(HaveField("IsRemoved()", true)))
		cleanup := h.mirror(ctx).Status.PlanStatus["cleanup"]
		Expect(cleanup.Status).To(Equal(kudo.Complete))
		stop()

		h.report(ctx, func(i *kudo.Instance) { i.Status = before })
		stop = runAgent()
		Eventually(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonRemoved))
		Expect(h.plan(ctx, "cleanup").UID).To(Equal(cleanup.UID))
		h.release(ctx)
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(BeNil())
		Eventually(func() []string { return h.versions(ctx) }).Should(BeEmpty())
	})

	It("a cleanup plan that fails is shown and tried again", func(ctx context.Context) {
		spec := configOnly()
		spec.Templates["broken.yaml"] = "{{ fail \"not yet\" }}"
		spec.Tasks = append(spec.Tasks, task("broken", kudo.TaskApply, "broken.yaml"))
		spec.Plans["cleanup"] = serial("broken")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonRemoving, `plan "cleanup" failed and will be retried`))
		first := h.plan(ctx, "cleanup").UID
		Eventually(func() any { return h.plan(ctx, "cleanup").UID }).ShouldNot(Equal(first))
		Expect(h.config(ctx, "-config")).To(Equal("one"), "nothing is removed before the cleanup has been done")
		h.force(ctx)
		h.release(ctx)
		Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).Should(HaveKey(kudo.AnnotationOrphaned))
	})

	It("a plan is run by hand once, and cancelled", func(ctx context.Context) {
		h := runningByHand(ctx)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution.Cancel = true })
		Eventually(func() metav1.Condition { return h.lastRequest(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonPlanFailed, `plan "wait" failed: cancelled`))
		phase := h.plan(ctx, "wait").Phases[0]
		for _, level := range []kudo.ExecutionStatus{h.plan(ctx, "wait").Status, phase.Status, phase.Steps[0].Status, phase.Steps[0].Tasks[0].Status} {
			Expect(level).To(Equal(kudo.FatalError))
		}
		Expect(phase.Steps[0].Tasks[0].Message).To(Equal("cancelled: the Dummy task is configured to wait"))
		Expect(h.ready(ctx).Status).To(Equal(metav1.ConditionTrue), "a plan that was requested manually and is not owed does not influence it")
		h.finish(ctx)
	})

	It("a plan is cancelled also while the hub has not resolved the last change", func(ctx context.Context) {
		h := runningByHand(ctx)
		h.edit(ctx, func(i *kudo.Instance) {
			i.Spec.Parameters = map[string]string{"UNHEARD_OF": "1"}
			i.Spec.PlanExecution.Cancel = true
		})
		Eventually(func() metav1.Condition { return h.lastRequest(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonPlanFailed, `plan "wait" failed: cancelled`))
		Expect(h.ready(ctx).Status).To(Equal(metav1.ConditionTrue), "a plan that was requested manually and is not owed does not influence it")
		Expect(h.mirror(ctx).Spec.Parameters).NotTo(HaveKey("UNHEARD_OF"))
		h.finish(ctx)
	})
})

var _ = Describe("Tasks", func() {
	var stop func()
	BeforeEach(func() { stop = runAgent() })
	AfterEach(func() { stop() })

	It("that share an object each apply it once", func(ctx context.Context) {
		spec := configOnly()
		spec.Templates["second.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-config\"}\ndata: {value: second}"
		spec.Tasks = append(spec.Tasks, task("second", kudo.TaskApply, "second.yaml"))
		spec.Plans["deploy"] = kudo.Plan{Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "both", Tasks: []string{"config", "second"}}}}}}
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.config(ctx, "-config")).To(Equal("second"))
		h.finish(ctx)
	})

	It("that run side by side on one object do not fight over it", func(ctx context.Context) {
		stop()
		locally, toManaged := environment.RecordWrites(agentLocally)
		stop = runAgentWith(agentOnHub, locally)
		spec := standard()
		spec.Plans["deploy"] = kudo.Plan{Phases: []kudo.Phase{{Name: "main", Strategy: kudo.Parallel, Steps: []kudo.Step{
			{Name: "one", Tasks: []string{"app"}}, {Name: "two", Tasks: []string{"app"}},
		}}}}
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("Deployment"))
		before := len(h.writesOf(toManaged, nil))
		Consistently(func() int { return len(h.writesOf(toManaged, nil)) - before }).Should(BeNumerically("<", 5))
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
	})

	It("may list an object before the definition of its kind", func(ctx context.Context) {
		spec := configOnly()
		spec.Templates["widget.yaml"] = "apiVersion: tandem.test/v1\nkind: Gadget\nmetadata: {name: \"{{ .Name }}\"}"
		spec.Templates["definition.yaml"] = definitionTemplate
		spec.Tasks = []kudo.Task{task("config", kudo.TaskApply, "widget.yaml", "definition.yaml")}
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
	})
})

// runningByHand returns an Instance with the running plan "wait", which was requested manually and runs until it is cancelled.
func runningByHand(ctx context.Context) *hubPart {
	GinkgoHelper()
	spec := configOnly()
	spec.Plans["wait"] = serial("wait")
	spec.Tasks = append(spec.Tasks, task("wait", kudo.TaskDummy))
	h := newInstance(ctx, spec, nil)
	h.resolve(ctx)
	h.completes(ctx, "deploy", kudo.PlanStatus{})
	h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{PlanName: "wait", UID: "by-hand"} })
	Eventually(func() kudo.PlanStatus { return h.plan(ctx, "wait") }).Should(
		And(HaveField("Status", kudo.InProgress), HaveField("UID", BeEquivalentTo("by-hand"))))
	return h
}
