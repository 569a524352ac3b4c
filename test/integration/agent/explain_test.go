package agent

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("A step that waits for a workload", func() {
	BeforeEach(func() { DeferCleanup(runAgent()) })

	It("says after a while what holds up its pods", func(ctx context.Context) {
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		Eventually(func() string { return h.plan(ctx, "deploy").Message }).Should(HaveSuffix("-app: waiting for its controller to observe it"))
		pod := &corev1.Pod{
			ObjectMeta: h.controlled(),
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "app", Image: "app:1"}},
				Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: h.name}}}},
			},
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: h.name, Namespace: h.namespace}}
		claim.Spec = corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new("nope"),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}
		Expect(managed.Create(ctx, claim)).To(Succeed())
		Expect(managed.Create(ctx, pod)).To(Succeed())
		foreign := h.podOf(ctx, map[string]string{"app": h.name}) // the selector matches it, and no ReplicaSet of the Deployment controls it
		foreign.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "foreign"}}}}
		Expect(managed.Status().Update(ctx, foreign)).To(Succeed())
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "12:00: no such host"}}}}
		Expect(managed.Status().Update(ctx, pod)).To(Succeed())
		Eventually(func() string { return h.plan(ctx, "deploy").Message }).Should(
			HaveSuffix("-app: waiting for its controller to observe it: Pod " + h.namespace + "/" + pod.Name + ": container app is waiting: ImagePullBackOff: image app:1" +
				": PersistentVolumeClaim " + h.namespace + "/" + h.name + ": is not bound: StorageClass nope does not exist"))
		Expect(h.plan(ctx, "deploy").Status).To(Equal(kudo.Error))
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(managed.Delete(ctx, pod)).To(Succeed())
		Expect(managed.Delete(ctx, foreign)).To(Succeed())
		Expect(managed.Delete(ctx, claim)).To(Succeed())
		h.finish(ctx)
	})

	It("says how the containers of a failed Job ended", func(ctx context.Context) {
		h := newInstance(ctx, single(jobTemplate(`containers: [{name: app, image: "app:1"}]`)), nil)
		h.resolve(ctx)
		job := h.job(ctx)
		pod := h.podOf(ctx, job.Spec.Selector.MatchLabels, metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true)})
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}}}}
		Expect(managed.Status().Update(ctx, pod)).To(Succeed())
		h.end(ctx, batchv1.JobFailed)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", MatchRegexp(`Job \S+: failed: BackoffLimitExceeded.*: Pod %s/%s: failed: container app exited with code 3 \(Error\)$`,
				pod.Namespace, pod.Name)))) // its log cannot be read without a node
		Expect(managed.Delete(ctx, pod)).To(Succeed())
		h.finish(ctx)
	})

	It("says why a workload fails after its plan is complete", func(ctx context.Context) {
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		pod := h.controlledPod(ctx, "app")
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "app", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}},
		}}
		Expect(managed.Status().Update(ctx, pod)).To(Succeed())
		app := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name + "-app"}}
		Expect(environment.EditStatus(ctx, managed, app, func(d *appsv1.Deployment) { d.Status.AvailableReplicas, d.Status.ReadyReplicas = 0, 0 })).To(Succeed())
		Eventually(func() string { return h.ready(ctx).Message }).Should(HaveSuffix(
			"replicas available: Pod " + pod.Namespace + "/" + pod.Name + ": container app restarts: CrashLoopBackOff (image app:1, more than 1 restart): exited with code 137 (OOMKilled)"))
		Expect(h.plan(ctx, "deploy").Status).To(Equal(kudo.Complete))
		Expect(managed.Delete(ctx, pod)).To(Succeed())
		h.finish(ctx)
	})

	It("says which probe does not pass", func(ctx context.Context) {
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		pod := h.controlledPod(ctx, "app")
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}
		Expect(managed.Status().Update(ctx, pod)).To(Succeed())
		event := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: h.name, Namespace: h.namespace}, Reason: plan.ReasonUnhealthy,
			Message: "Readiness probe failed: HTTP probe failed with statuscode: 503\n", LastTimestamp: metav1.Now(),
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		}
		Expect(managed.Create(ctx, event)).To(Succeed())
		Eventually(func() string { return h.plan(ctx, "deploy").Message }).Should(HaveSuffix(
			": is not ready: ContainersNotReady: Readiness probe failed: HTTP probe failed with statuscode: 503"))
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(managed.Delete(ctx, event)).To(Succeed())
		Expect(managed.Delete(ctx, pod)).To(Succeed())
		h.finish(ctx)
	})

	It("says why no pod can be created", func(ctx context.Context) {
		spec := standard()
		spec.Templates["app.yaml"] = strings.Replace(deploymentTemplate, "kind: Deployment", "kind: StatefulSet", 1)
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		set := &appsv1.StatefulSet{}
		Eventually(func() bool { return h.local(ctx, "-app", set) }).Should(BeTrue())
		const failure = `create Pod app-0 in StatefulSet app failed error: pods "app-0" is forbidden: violates PodSecurity "restricted:latest"`
		event := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: h.name, Namespace: h.namespace}, Reason: plan.ReasonFailedCreate,
			Message: failure, LastTimestamp: metav1.Now(),
			InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", Namespace: set.Namespace, Name: set.Name, UID: set.UID},
		}
		Expect(managed.Create(ctx, event)).To(Succeed())
		Eventually(func() string { return h.plan(ctx, "deploy").Message }).Should(HaveSuffix("-app: waiting for its controller to observe it: " + failure))
		Expect(managed.Delete(ctx, event)).To(Succeed())
		h.finish(ctx)
	})
})

// podOf creates a pod with labels and owners.
func (h *hubPart) podOf(ctx context.Context, labels map[string]string, owners ...metav1.OwnerReference) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: h.name + "-app-1", Namespace: h.namespace, Labels: labels, OwnerReferences: owners},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	}
	Eventually(func() error { return managed.Create(ctx, pod) }).Should(Succeed(), "the plan creates its namespace")
	return pod
}
