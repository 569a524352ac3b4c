package change

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ifUnchanged calls write with the resourceVersion that the object has now, if only its status has changed since it was read: controllers and
// agents write that at any time. Any other change is a conflict (apierrors.IsConflict).
func ifUnchanged(ctx context.Context, c client.Client, read client.Object, write func(resourceVersion string) error) error {
	version := read.GetResourceVersion()
	onlyStatusChanged := func(err error) bool {
		if !apierrors.IsConflict(err) {
			return false
		}
		latest := &metav1.PartialObjectMetadata{}
		kind, err := c.GroupVersionKindFor(read)
		if err != nil {
			return false
		}
		latest.SetGroupVersionKind(kind)
		if err := c.Get(ctx, client.ObjectKeyFromObject(read), latest); err != nil {
			return false // the conflict is the answer
		}
		version = latest.ResourceVersion
		return isDesiredStateOf(read, latest)
	}
	return retry.OnError(retry.DefaultBackoff, onlyStatusChanged, func() error { return write(version) })
}

// patchIfUnchanged patches the object from its current to its wanted state, if nothing but its status has changed since it was read.
func patchIfUnchanged(ctx context.Context, c client.Client, current, wanted client.Object) error {
	return ifUnchanged(ctx, c, current, func(resourceVersion string) error {
		from := current.DeepCopyObject().(client.Object)
		from.SetResourceVersion(resourceVersion)
		return c.Patch(ctx, wanted, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{}))
	})
}

// isDesiredStateOf reports whether two states of an object differ in its status at most. The API server counts changes of the spec.
func isDesiredStateOf(a, b metav1.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() && a.GetDeletionTimestamp().Equal(b.GetDeletionTimestamp()) &&
		maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations()) &&
		slices.Equal(a.GetFinalizers(), b.GetFinalizers()) && slices.EqualFunc(a.GetOwnerReferences(), b.GetOwnerReferences(), isOwner)
}

func isOwner(a, b metav1.OwnerReference) bool { return a.UID == b.UID }
