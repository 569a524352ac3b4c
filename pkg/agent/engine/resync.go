package engine

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// listedPause is the interval of checks whether the cache has listed a kind.
const listedPause = time.Second

// onceListed returns a source that enqueues every Instance with listed objects of a kind, once the cache has listed that kind. An object
// that was judged by a live read and deleted before that list is not in the cache, so its deletion causes no event.
func (e *engine) onceListed(c cache.Cache, object client.Object) source.Source {
	kind := object.GetObjectKind().GroupVersionKind().GroupKind()
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		informer, err := c.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		go func() {
			_ = wait.PollUntilContextCancel(ctx, listedPause, true, func(ctx context.Context) (bool, error) {
				return informer.HasSynced() && e.judgeAgain(ctx, kind, queue), nil
			})
		}()
		return nil
	})
}

// judgeAgain enqueues every Instance with listed objects of a kind, and reports whether it succeeded. It reads the API server: all
// inventory entries from before the cache's list must be known, and objects that are listed later are also created later.
func (e *engine) judgeAgain(ctx context.Context, kind schema.GroupKind, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) bool {
	instances := &kudo.InstanceList{}
	if err := e.live.List(ctx, instances); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "failed to list Instances", "kind", kind)
		return false
	}
	listed := func(entry kudo.InventoryEntry) bool { return entry.Group == kind.Group && entry.Kind == kind.Kind }
	for i := range instances.Items {
		if slices.ContainsFunc(instances.Items[i].Status.Inventory, listed) {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&instances.Items[i])})
		}
	}
	return true
}
