package controller

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// bulkSize is the number of requests of one change from which on they are bulk.
	bulkSize = 100
	// overtaking is how many requests may overtake a bulk request before it is queued with them.
	overtaking = 4
	// single is how long single objects count as changing after a request that is not bulk: until the changes that it causes are observed.
	single = 250 * time.Millisecond
	// largeBacklog is the number of bulk requests whose garbage is returned to the machine.
	largeBacklog = 10_000
)

// requestQueue is the queue of a controller, with a backlog of bulk requests: those of all objects at the start, and those of a change
// that affects a fleet. Bulk requests are queued as workers become free, so that the change of one object does not wait for the whole fleet,
// and because a request takes several times the memory in client-go's queue, which never shrinks. It is a PriorityQueue, because
// controller-runtime wraps all other queues.
type requestQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	size prometheus.Gauge
	// few is the maximum number of bulk requests in progress while single objects change; 0 for any number.
	few int

	mutex   sync.Mutex
	started bool
	// idle is the number of workers that wait for a request, overtaken how often one asked since the last bulk request was queued.
	idle, overtaken int
	// backlog holds the bulk requests in order, and maxBacklog is the largest size that it has had. pending maps each of them to whether it is
	// still due, and due counts the due ones. Requests that are no longer due stay in pending, so that changes caused by their own writes do
	// not count as single changes.
	backlog          []reconcile.Request
	pending          map[reconcile.Request]bool
	due, peakBacklog int
	// inProgress holds the bulk requests that are queued or being reconciled, and changed is the time of the last request that is not bulk.
	inProgress map[reconcile.Request]struct{}
	changed    time.Time
}

// queue is the type of every controller's queue.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func newQueue(controller string, limiter workqueue.TypedRateLimiter[reconcile.Request]) *requestQueue {
	sizes, _ := Register(registry.Registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{ // another collector of that name is a bug
		Name: "addon_queue_backlog",
		Help: "Number of objects that are reconciled after those of workqueue_depth, because one change affects many, by controller.",
	}, []string{"controller"}))
	return &requestQueue{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(
			limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: controller}),
		size: sizes.WithLabelValues(controller), pending: map[reconcile.Request]bool{}, inProgress: map[reconcile.Request]struct{}{},
	}
}

// hasStarted reports whether a worker has asked for a request: all objects that exist at the start were added before.
func (q *requestQueue) hasStarted() bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.started
}

// Add adds the request of a change. Requests before the first Get are those of the objects that exist at the start.
func (q *requestQueue) Add(request reconcile.Request) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if !q.started {
		q.addToBacklog(request)
		return
	}
	due, bulk := q.pending[request]
	if due { // it overtakes itself
		q.due--
	}
	if due || !bulk {
		q.changed = time.Now()
	}
	delete(q.pending, request)
	q.TypedRateLimitingInterface.Add(request)
}

// AddWithOpts adds requests as controller-runtime asks for it. Those with a low priority are bulk.
func (q *requestQueue) AddWithOpts(options priorityqueue.AddOpts, requests ...reconcile.Request) {
	if isBulk(options) {
		q.addBulk(requests)
		return
	}
	for _, request := range requests {
		switch {
		case options.RateLimited:
			q.AddRateLimited(request)
		case options.After > 0:
			q.AddAfter(request, options.After)
		default:
			q.Add(request)
		}
	}
}

// isBulk reports whether requests with these options are bulk: not those that wait for a while first.
func isBulk(options priorityqueue.AddOpts) bool {
	return !options.RateLimited && options.After == 0 && ptr.Deref(options.Priority, 0) < 0
}

func (q *requestQueue) addBulk(requests []reconcile.Request) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for _, request := range requests {
		q.addToBacklog(request)
	}
	q.feed()
}

// GetWithPriority is Get. Requests that are added again after an error are not bulk, whatever they were.
func (q *requestQueue) GetWithPriority() (reconcile.Request, int, bool) {
	request, ended := q.Get()
	return request, 0, ended
}

// Get waits for a request.
func (q *requestQueue) Get() (reconcile.Request, bool) {
	q.wait()
	request, ended := q.TypedRateLimitingInterface.Get()
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.idle--
	return request, ended
}

// Done ends the reconciliation of a request.
func (q *requestQueue) Done(request reconcile.Request) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	delete(q.inProgress, request)
	q.TypedRateLimitingInterface.Done(request)
}

// wait counts a worker that waits for a request.
func (q *requestQueue) wait() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.started = true
	q.idle++
	if len(q.backlog) > 0 {
		q.overtaken++
	}
	q.feed()
}

// addToBacklog adds a request to the backlog. The caller holds the lock.
func (q *requestQueue) addToBacklog(request reconcile.Request) {
	if !q.pending[request] {
		q.pending[request] = true
		q.due++
		q.backlog = append(q.backlog, request)
		q.peakBacklog = max(q.peakBacklog, len(q.backlog))
	}
	q.size.Set(float64(q.due))
}

// admits reports whether one more bulk request may be queued: for each waiting worker without another request, or one if enough others have
// overtaken it. The caller holds the lock.
func (q *requestQueue) admits() bool {
	if q.ShuttingDown() || q.few > 0 && len(q.inProgress) >= q.few && time.Since(q.changed) < single {
		return false
	}
	return q.Len() < q.idle || q.overtaken >= overtaking
}

// feed queues bulk requests as they are admitted. The caller holds the lock.
func (q *requestQueue) feed() {
	if len(q.backlog) == 0 {
		return
	}
	for len(q.backlog) > 0 && q.admits() {
		next := q.backlog[0]
		q.backlog = q.backlog[1:]
		if q.pending[next] {
			q.overtaken = 0
			q.pending[next] = false
			q.due--
			q.inProgress[next] = struct{}{}
			q.TypedRateLimitingInterface.Add(next)
		}
	}
	q.size.Set(float64(q.due))
	if len(q.backlog) == 0 {
		if q.peakBacklog >= largeBacklog {
			go debug.FreeOSMemory() // the runtime would keep it for minutes
		}
		q.backlog, q.pending, q.peakBacklog = nil, map[reconcile.Request]bool{}, 0 // a map never shrinks
	}
}

// Enqueue adds the requests of one change to the queue of a controller.
func Enqueue(q queue, requests []reconcile.Request) {
	if prioritized, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok && len(requests) >= bulkSize {
		prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, requests...)
		return
	}
	for _, request := range requests {
		q.Add(request)
	}
}

// EnqueueFrom returns a handler for a function that may fail: its cache only fails during shutdown, when requests are irrelevant. An update
// concerns the requests of the old and of the new object.
func EnqueueFrom(to func(context.Context, client.Object) ([]reconcile.Request, error)) handler.EventHandler {
	of := toMapFunc(to)
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { Enqueue(q, of(ctx, e.Object)) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			Enqueue(q, append(of(ctx, e.ObjectOld), of(ctx, e.ObjectNew)...))
		},
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { Enqueue(q, of(ctx, e.Object)) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { Enqueue(q, of(ctx, e.Object)) },
	}
}
