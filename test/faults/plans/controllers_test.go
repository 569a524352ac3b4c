package plans

import (
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox/kubelet"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// startControllers acts as Kubernetes on the managed cluster: workloads become ready at once, Jobs end, volume claims are bound, the pods of
// Pipe tasks create their files, and deletions in the foreground are completed.
func (w *world) startControllers(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	environment.CollectGarbage(ctx, w.managed, "",
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Secret"),
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), corev1.SchemeGroupVersion.WithKind("Pod"), batchv1.SchemeGroupVersion.WithKind("Job"),
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		schema.GroupVersionKind{Group: "faults.test", Version: "v1", Kind: "Gadget"},
		schema.GroupVersionKind{Group: "faults.test", Version: "v1", Kind: "Depot"},
	)
	node := &environment.Node{Name: "node"}
	node.Put("/pipe/out/key", "secret")
	server := httptest.NewTLSServer(kubelet.Handler(node.Open))
	t.Cleanup(server.Close)
	if err := node.Join(ctx, w.managed, server.Listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	act(ctx, w.managed, &appsv1.DeploymentList{}, w.rollOut)
	act(ctx, w.managed, &appsv1.StatefulSetList{}, w.scale)
	act(ctx, w.managed, &corev1.PersistentVolumeClaimList{}, w.bind)
	act(ctx, w.managed, &batchv1.JobList{}, w.end)
	act(ctx, w.managed, &corev1.PodList{}, func(ctx context.Context, p *corev1.Pod) error {
		if p.Annotations[kudo.AnnotationPipe] == "" || p.Status.Phase == corev1.PodRunning {
			return nil
		}
		return node.Run(ctx, w.managed, p, environment.WaitInPipe)
	})
}

// act acts as the controller of a kind until ctx ends: reconcile is called for each object that is not being deleted, after each change.
func act[T client.Object](ctx context.Context, c client.WithWatch, kind client.ObjectList, reconcile func(context.Context, T) error) {
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		watcher, err := c.Watch(ctx, kind)
		if err != nil {
			return
		}
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			o, ok := event.Object.(T)
			if !ok || o.GetDeletionTimestamp() != nil {
				continue
			}
			if err := reconcile(ctx, o); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return // the next watch begins with all objects
			}
		}
	}, 100*time.Millisecond)
}

// rollOut makes a Deployment healthy.
func (w *world) rollOut(ctx context.Context, d *appsv1.Deployment) error {
	if d.Status.ObservedGeneration == d.Generation {
		return nil
	}
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
	}
	return w.managed.Status().Update(ctx, d)
}

// scale creates the volume claims of a StatefulSet and makes it healthy.
func (w *world) scale(ctx context.Context, s *appsv1.StatefulSet) error {
	if s.Status.ObservedGeneration == s.Generation {
		return nil
	}
	n := *s.Spec.Replicas
	for _, template := range s.Spec.VolumeClaimTemplates {
		for i := range n {
			claim := template.DeepCopy()
			claim.Namespace, claim.Name = s.Namespace, fmt.Sprintf("%s-%s-%d", template.Name, s.Name, i)
			maps.Copy(claim.Labels, s.Spec.Selector.MatchLabels)
			if err := w.managed.Create(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
	}
	s.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: s.Generation, Replicas: n, CurrentReplicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
	}
	return w.managed.Status().Update(ctx, s)
}

// bind binds a volume claim.
func (w *world) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Status.Phase == corev1.ClaimBound {
		return nil
	}
	claim.Status.Phase = corev1.ClaimBound
	return w.managed.Status().Update(ctx, claim)
}

// end ends a Job, which fails if that is the tag of its image, and deletes one that has ended and has no time to live.
func (w *world) end(ctx context.Context, job *batchv1.Job) error {
	if len(job.Status.Conditions) > 0 {
		if seconds := job.Spec.TTLSecondsAfterFinished; seconds == nil || *seconds > 0 { // a day until it is recorded, then that of the chart
			return nil
		}
		return w.managed.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	by := batchv1.JobComplete
	if strings.HasSuffix(job.Spec.Template.Spec.Containers[0].Image, ":fail") {
		by = batchv1.JobFailed
	}
	environment.EndJob(job, by)
	if err := w.managed.Status().Update(ctx, job); err != nil {
		return err
	}
	w.noteHook(job)
	return nil
}
