package mirror

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// StaleCachePause is how long a cache is given to catch up with a write that it has not seen.
const StaleCachePause = 50 * time.Millisecond

// Changed lets an update pass only where what view shows of the object differs; creation and deletion always pass.
func Changed[O client.Object, V comparable](view func(O) V) predicate.TypedPredicate[O] {
	return predicate.TypedFuncs[O]{UpdateFunc: func(e event.TypedUpdateEvent[O]) bool {
		return view(e.ObjectOld) != view(e.ObjectNew)
	}}
}

// Retries is how every controller of the agent tries again what failed: soon, then twice as late each time, and at last once a
// minute, so that what was mended meanwhile is found mended.
func Retries() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, time.Minute)
}

// SideBySide bounds how many Instances and add-ons a controller works on at once.
const SideBySide = 8
