package agent

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

const setTemplate = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Name }}-set"}
spec:
  replicas: {{ .Params.REPLICAS }}
  serviceName: app
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec: {containers: [{name: app, image: app:1}]}
`

// serve acts as the Deployment controller in the middle of a rollout: the Deployment has the minimum of pods, or less.
func (h *hubPart) serve(ctx context.Context, pods int32, minimum corev1.ConditionStatus) {
	GinkgoHelper()
	app := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: render.InstanceName(h.name) + "-app"}}
	Expect(environment.EditStatus(ctx, managed, app, func(d *appsv1.Deployment) {
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: pods, ReadyReplicas: pods, AvailableReplicas: pods,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: minimum, Reason: "MinimumReplicas"}},
		}
	})).To(Succeed())
}

var _ = Describe("An add-on that a plan updates", func() {
	var (
		h        *hubPart
		subject  *addonv1alpha1.ManagedClusterAddOn
		complete = is(metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, "")
		updating = is(metav1.ConditionTrue, addonv1alpha1.ReasonUpdating, "is running")
		now      = func(ctx context.Context) func() metav1.Condition {
			return func() metav1.Condition { return available(ctx, subject) }
		}
		// install deploys an add-on whose workload serve makes healthy.
		install = func(ctx context.Context, spec kudo.OperatorVersionSpec, serve func(context.Context)) {
			GinkgoHelper()
			h = newInstance(ctx, spec, nil)
			subject = enable(ctx, h.name)
			judge(ctx, subject, metav1.Condition{Type: addonv1alpha1.ConditionResolved, Status: metav1.ConditionTrue, Reason: kudo.ReasonResolved})
			h.resolve(ctx)
			serve(ctx)
			Eventually(now(ctx)).Should(complete)
		}
		rollOut = func(ctx context.Context) { h.rollOut(ctx) }
	)
	BeforeEach(func() { DeferCleanup(runAgent()) })
	AfterEach(func(ctx context.Context) {
		h.finish(ctx)
		Expect(hub.Delete(ctx, subject)).To(Succeed())
		Expect(invariants.Violations(ctx, hub)).To(BeEmpty())
	})

	It("stays available as long as its workloads are, and names one that is not", func(ctx context.Context) {
		install(ctx, standard(), rollOut)
		installed := available(ctx, subject)
		h.change(ctx, setParameter("REPLICAS", "3"))
		Eventually(now(ctx)).Should(updating)
		h.serve(ctx, 2, corev1.ConditionTrue)
		Consistently(now(ctx)).Should(updating)
		Expect(available(ctx, subject).LastTransitionTime).To(Equal(installed.LastTransitionTime), "it was available throughout")
		Expect(h.ready(ctx)).To(is(metav1.ConditionFalse, kudo.ReasonPlanInProgress, "-app: "))

		By("losing the pods of the workload")
		h.serve(ctx, 0, corev1.ConditionFalse)
		named := is(metav1.ConditionFalse, kudo.ReasonUnhealthy,
			fmt.Sprintf(`Deployment %s/%s-app: is not available: MinimumReplicas; plan "update" is running`, h.namespace, h.name)) // at first in no phase
		Eventually(now(ctx)).Should(named)

		By("changing it once more: the workload still counts")
		before := h.plan(ctx, "update").UID
		h.change(ctx, setParameter("REPLICAS", "4"))
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "update") }).Should(HaveField("UID", Not(Equal(before))))
		Consistently(now(ctx)).Should(named)
		h.serve(ctx, 3, corev1.ConditionTrue)
		Eventually(now(ctx)).Should(updating)

		By("replacing the workload")
		app := &appsv1.Deployment{}
		Expect(h.local(ctx, "-app", app)).To(BeTrue())
		Expect(managed.Delete(ctx, app)).To(Succeed())
		Eventually(now(ctx)).Should(is(metav1.ConditionFalse, kudo.ReasonUnhealthy, "-app: is "))
		rollOut(ctx)
		Eventually(now(ctx)).Should(complete)
		Expect(meta.FindStatusCondition(h.mirror(ctx).Status.Conditions, kudo.ConditionAvailable)).To(BeNil())
	})

	It("is not available when the plan fails, or takes more than ten minutes", func(ctx context.Context) {
		spec := standard()
		spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "NOTE", Trigger: "broken"})
		spec.Tasks = append(spec.Tasks, fatalTask("broken"))
		spec.Plans["broken"] = serial("broken")
		install(ctx, spec, rollOut)
		h.change(ctx, setParameter("REPLICAS", "3"))
		Eventually(now(ctx)).Should(updating)
		h.tamperStatus(ctx, func(i *kudo.Instance) {
			update := i.Status.PlanStatus["update"]
			update.StartedTimestamp = &metav1.Time{Time: time.Now().Add(-11 * time.Minute)}
			i.Status.PlanStatus["update"] = update
		})
		h.serve(ctx, 1, corev1.ConditionTrue)
		Eventually(now(ctx)).Should(is(metav1.ConditionFalse, kudo.ReasonPlanInProgress, `plan "update" has been running for more than 10m0s: phase "main"`))
		rollOut(ctx)
		Eventually(now(ctx)).Should(complete)

		h.change(ctx, setParameter("NOTE", "x"))
		Eventually(now(ctx)).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed, `plan "broken" failed`))
		By("running the next plan: it becomes available at its end")
		h.change(ctx, setParameter("REPLICAS", "4"))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanInProgress, "update"))
		Consistently(now(ctx)).Should(HaveField("Status", metav1.ConditionFalse))
	})

	It("is not available while a workload that the plan replaces does not serve", func(ctx context.Context) {
		spec := standard()
		spec.Tasks = append(spec.Tasks, task("drop", kudo.TaskDelete, "app.yaml"))
		spec.Plans["update"] = serial("drop", "app")
		install(ctx, spec, rollOut)
		h.change(ctx, setParameter("REPLICAS", "3"))
		Eventually(now(ctx)).Should(is(metav1.ConditionFalse, kudo.ReasonUnhealthy, "-app: is not available yet"))
		rollOut(ctx)
		Eventually(now(ctx)).Should(complete)
	})

	It("stays available without a workload that the plan deletes", func(ctx context.Context) {
		spec := standard()
		spec.Tasks = append(spec.Tasks, task("drop", kudo.TaskDelete, "app.yaml"), task("wait", kudo.TaskDummy))
		spec.Plans["update"] = serial("drop", "wait")
		install(ctx, spec, rollOut)
		h.change(ctx, setParameter("REPLICAS", "3"))
		Eventually(func() bool { return h.local(ctx, "-app", &appsv1.Deployment{}) }).Should(BeFalse())
		Eventually(now(ctx)).Should(updating)
		Consistently(now(ctx)).Should(updating)
	})

	It("stays available after the update while what it has replaced is deleted", func(ctx context.Context) {
		spec := standard()
		spec.Templates["config.yaml"] = fmt.Sprintf(configTemplate, "{{ .Params.VALUE }}")
		install(ctx, spec, rollOut)
		former := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name + "-one"}}
		Expect(environment.Edit(ctx, managed, former, func(c *corev1.ConfigMap) { c.Finalizers = append(c.Finalizers, "tandem.test/held") })).To(Succeed())
		h.change(ctx, setParameter("VALUE", "two"))
		Eventually(func() metav1.Condition {
			rollOut(ctx) // whenever the plan restarts the pods
			return available(ctx, subject)
		}).Should(is(metav1.ConditionTrue, addonv1alpha1.ReasonUpdating, "objects that no task applies any longer are being deleted"))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should( // of another object, which the agent writes on its own
			is(metav1.ConditionFalse, kudo.ReasonUnhealthy, "is being deleted, held by finalizer"))
		Expect(environment.Edit(ctx, managed, former, func(c *corev1.ConfigMap) { c.Finalizers = nil })).To(Succeed())
		Eventually(now(ctx)).Should(complete)
	})

	It("is available with one ready pod of a StatefulSet, and not with one that crash-loops", func(ctx context.Context) {
		spec := standard()
		spec.Templates["app.yaml"] = setTemplate
		set := &appsv1.StatefulSet{}
		ready := func(ctx context.Context, pods int32) {
			GinkgoHelper()
			set.Namespace, set.Name = h.namespace, h.name+"-set"
			Eventually(func() error {
				return environment.EditStatus(ctx, managed, set, func(s *appsv1.StatefulSet) {
					s.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, Replicas: *s.Spec.Replicas, UpdatedReplicas: *s.Spec.Replicas,
						ReadyReplicas: pods, AvailableReplicas: pods}
				})
			}).Should(Succeed())
		}
		install(ctx, spec, func(ctx context.Context) { ready(ctx, 2) })
		h.change(ctx, setParameter("REPLICAS", "3"))
		Eventually(now(ctx)).Should(updating)
		ready(ctx, 1)
		Consistently(now(ctx)).Should(updating)

		By("a pod that fails repeatedly, first of another workload")
		fails := func(ctx context.Context, owners ...metav1.OwnerReference) *corev1.Pod {
			GinkgoHelper()
			pod := h.podOf(ctx, map[string]string{"app": h.name}, owners...)
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "app", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}},
			}}
			Expect(managed.Status().Update(ctx, pod)).To(Succeed())
			return pod
		}
		foreign := fails(ctx)
		Consistently(now(ctx), "6s").Should(updating)
		Expect(managed.Delete(ctx, foreign)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(managed.Get(ctx, client.ObjectKeyFromObject(foreign), foreign))
		}).Should(BeTrue())
		pod := fails(ctx, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set.Name, UID: set.UID, Controller: new(true)})
		Eventually(now(ctx)).Should(is(metav1.ConditionFalse, kudo.ReasonUnhealthy, "container app restarts: CrashLoopBackOff (image app:1, more than 1 restart): exited with code 3 (Error)"))
		Expect(managed.Delete(ctx, pod)).To(Succeed())
		Eventually(now(ctx)).Should(updating)
		ready(ctx, 0)
		Eventually(now(ctx)).Should(is(metav1.ConditionFalse, kudo.ReasonUnhealthy, "-set: is not available: no pod is ready"))
		ready(ctx, 3)
		Eventually(now(ctx)).Should(complete)
	})

	It("stays available while a child is updated", func(ctx context.Context) {
		parent := configOnly()
		operator := task("db", kudo.TaskKudoOperator)
		operator.Spec.Package = "db"
		parent.Tasks = append(parent.Tasks, operator)
		parent.Plans["deploy"] = serial("config", "db")
		var child *hubPart
		install(ctx, parent, func(ctx context.Context) {
			Eventually(func() kudo.ExecutionStatus { return h.step(ctx, 1) }).Should(Equal(kudo.InProgress))
			child = h.bear(ctx, "db", standard())
			child.rollOut(ctx)
		})
		child.change(ctx, setParameter("REPLICAS", "3"))
		Eventually(now(ctx)).Should(is(metav1.ConditionTrue, addonv1alpha1.ReasonUpdating, "child Instances are being updated"))
		child.serve(ctx, 0, corev1.ConditionFalse)
		Eventually(now(ctx)).Should(is(metav1.ConditionFalse, kudo.ReasonUnhealthy, "Instance "+h.namespace+"/"+child.name))
		child.serve(ctx, 2, corev1.ConditionTrue)
		Eventually(now(ctx)).Should(HaveField("Reason", addonv1alpha1.ReasonUpdating))

		By("running a plan of the parent, too")
		h.change(ctx, setParameter("VALUE", "two"))
		Eventually(now(ctx)).Should(updating)
		child.rollOut(ctx)
		h.report(ctx, func(i *kudo.Instance) { i.Status.Children[0].Execution = i.Status.Execution.UID })
		Eventually(now(ctx)).Should(complete)
		child.finish(ctx)
	})
})
