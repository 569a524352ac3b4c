package environment

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// CollectGarbage acts until ctx ends as Kubernetes' garbage collector for objects that are deleted in the foreground and have no
// dependents: it removes their finalizer, and the finalizer of volume claims. It does not block. An empty namespace means all.
func CollectGarbage(ctx context.Context, c client.WithWatch, namespace string, kinds ...schema.GroupVersionKind) {
	for _, kind := range kinds {
		// A watch ends from time to time, and cannot start before its kind is defined.
		go wait.UntilWithContext(ctx, func(ctx context.Context) { finalize(ctx, c, namespace, kind) }, 200*time.Millisecond)
	}
}

// finalize removes the finalizers of deleted objects of a kind until the watch ends. The watch starts with all existing objects.
func finalize(ctx context.Context, c client.WithWatch, namespace string, kind schema.GroupVersionKind) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	watcher, err := c.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		return
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*metav1.PartialObjectMetadata)
		if !ok || object.GetDeletionTimestamp() == nil {
			continue
		}
		object.SetGroupVersionKind(kind) // the watch returns PartialObjectMetadata
		before := object.DeepCopy()
		finalized := controllerutil.RemoveFinalizer(object, metav1.FinalizerDeleteDependents)
		if !controllerutil.RemoveFinalizer(object, "kubernetes.io/pvc-protection") && !finalized {
			continue
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if c.Patch(ctx, object, patch) != nil {
			return // after a concurrent change the watch returns it again
		}
	}
}
