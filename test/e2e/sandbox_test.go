package e2e

import (
	"context"
	"errors"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/sandbox"
)

var _ = Describe("A sandbox", Label(quick), onSandbox("it is what is tested"), Ordered, func() {
	var (
		box     *sandbox.Sandbox
		cluster client.Client
		home    string
	)

	BeforeAll(func(ctx SpecContext) {
		box = startSandbox(ctx, 1, func(o *sandbox.Options) { o.Tandem, home = "", o.Home })
		var err error
		cluster, err = client.New(box.Cluster("cluster1").Config(), client.Options{})
		Expect(err).NotTo(HaveOccurred())
	})

	It("refuses a second one in the same home", func(ctx SpecContext) {
		_, err := sandbox.Start(ctx, sandbox.Options{Home: home, Clusters: 1})
		Expect(err).To(MatchError(ContainSubstring("a sandbox is running in this home")))
	})

	It("registers its clusters on the hub", func(ctx SpecContext) {
		hub, err := client.New(box.Hub().Config(), client.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(hub.Get(ctx, client.ObjectKey{Name: "cluster1"}, &corev1.Namespace{})).To(Succeed())
	})

	Describe("rolls out and removes", Ordered, func() {
		deployment, set, job := newDeployment(), newStatefulSet(), newJob()

		It("a Deployment, a StatefulSet with volumes and a Job", func(ctx SpecContext) {
			for _, object := range []client.Object{deployment, set, job} {
				Expect(cluster.Create(ctx, object)).To(Succeed())
			}
			Eventually(func(g Gomega) {
				g.Expect(cluster.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
				g.Expect(deployment.Status.AvailableReplicas).To(Equal(int32(3)))
				g.Expect(cluster.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
				g.Expect(set.Status.AvailableReplicas).To(Equal(int32(2)))
				g.Expect(cluster.Get(ctx, client.ObjectKeyFromObject(job), job)).To(Succeed())
				g.Expect(job.Status.Succeeded).To(Equal(int32(1)))
				g.Expect(job.Status.CompletionTime).NotTo(BeNil())
			}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
			Eventually(phases).WithContext(ctx).WithArguments(cluster).WithTimeout(timeout).WithPolling(interval).
				Should(And(HaveLen(2), HaveEach(corev1.VolumeBound)))
		})

		It("pods that are ready again after Kubernetes has marked their node as not ready", func(ctx SpecContext) {
			var pods corev1.PodList
			Expect(cluster.List(ctx, &pods, client.InNamespace("default"), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))).To(Succeed())
			pod := &pods.Items[0]
			mark := []byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"NodeNotReady"}]}}`)
			Expect(cluster.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, mark))).To(Succeed())
			Eventually(func(g Gomega) {
				g.Expect(cluster.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
				g.Expect(pod.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))))
			}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
		})

		It("all of their pods, claims and volumes", func(ctx SpecContext) {
			for _, object := range []client.Object{deployment, set, job} {
				Expect(cluster.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
			}
			Eventually(func(g Gomega) {
				var pods corev1.PodList
				g.Expect(cluster.List(ctx, &pods, client.InNamespace("default"))).To(Succeed())
				g.Expect(pods.Items).To(BeEmpty())
				// By its retention policy the StatefulSet deletes its claims, and then the provisioner their volumes.
				var claims corev1.PersistentVolumeClaimList
				g.Expect(cluster.List(ctx, &claims)).To(Succeed())
				g.Expect(claims.Items).To(BeEmpty())
				g.Expect(phases(ctx, cluster)).To(BeEmpty())
			}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
		})
	})

	It("restarts a killed kube-apiserver", func(ctx SpecContext) {
		Expect(cluster.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}})).To(Succeed())
		before := find(box, "cluster1", "kube-apiserver")
		Expect(syscall.Kill(before.PID, syscall.SIGKILL)).To(Succeed())
		Eventually(func(g Gomega) {
			after := find(box, "cluster1", "kube-apiserver")
			g.Expect(after.Restarts).To(Equal(before.Restarts + 1))
			g.Expect(after.Port).To(Equal(before.Port))
			g.Expect(cluster.Get(ctx, client.ObjectKey{Name: "kept"}, &corev1.Namespace{})).To(Succeed())
		}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
	})

	It("leaves neither processes nor files behind", func() {
		state := box.State()
		box.Stop()
		for _, cluster := range state.Clusters {
			for _, process := range cluster.Processes {
				err := syscall.Kill(process.PID, 0)
				Expect(errors.Is(err, syscall.ESRCH)).To(BeTrue(), "%s of %s still runs", process.Name, cluster.Name)
			}
		}
		Expect(sandbox.Remove(home)).To(Succeed())
		Expect(home).NotTo(BeADirectory())
	})
})

// find returns the state of one program.
func find(box *sandbox.Sandbox, cluster, program string) sandbox.ProcessState {
	for _, process := range box.Cluster(cluster).State().Processes {
		if process.Name == program {
			return process
		}
	}
	Fail(cluster + " runs no " + program)
	return sandbox.ProcessState{}
}

// phases returns the phases of all volumes of the cluster.
func phases(ctx context.Context, c client.Client) []corev1.PersistentVolumePhase {
	GinkgoHelper()
	var volumes corev1.PersistentVolumeList
	Expect(c.List(ctx, &volumes)).To(Succeed())
	phases := make([]corev1.PersistentVolumePhase, 0, len(volumes.Items))
	for _, volume := range volumes.Items {
		phases = append(phases, volume.Status.Phase)
	}
	return phases
}

func newDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       podSpec(),
			},
		},
	}
}

func newStatefulSet() *appsv1.StatefulSet {
	labels := map[string]string{"app": "db"}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "default"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](2),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       podSpec(corev1.VolumeMount{Name: "data", MountPath: "/data"}),
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
					},
				},
			}},
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
				WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
			},
		},
	}
}

func newJob() *batchv1.Job {
	spec := podSpec()
	spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "once", Namespace: "default"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}},
	}
}

// podSpec returns a pod spec with one container, whose image is never pulled.
func podSpec(mounts ...corev1.VolumeMount) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "simulated", VolumeMounts: mounts}}}
}
