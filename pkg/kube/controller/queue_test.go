package controller

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// requestsFor returns a request for each name.
func requestsFor(names ...string) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range names {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return requests
}

// makeRequests returns that many requests.
func makeRequests(count int) []reconcile.Request {
	var requests []reconcile.Request
	for i := range count {
		requests = append(requests, requestsFor(fmt.Sprint(i))...)
	}
	return requests
}

// worker takes requests from a queue.
type worker struct {
	*requestQueue
	taken []string
}

// take takes and finishes that many requests.
func (w *worker) take(count int) {
	for range count {
		request, _ := w.Get()
		w.taken = append(w.taken, request.Name)
		w.Done(request)
	}
}

func (w *worker) add(names ...string) {
	for _, request := range requestsFor(names...) {
		w.Add(request)
	}
}

func TestQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		play func(*worker)
		want []string
	}{
		"requests are taken in order": {func(w *worker) { w.add("a", "b"); w.take(2) }, []string{"a", "b"}},
		"objects that exist at the start are taken once": {
			func(w *worker) { w.add("a", "b", "a"); w.take(2) }, []string{"a", "b"},
		},
		"a change overtakes the objects that exist at the start": {
			func(w *worker) { w.add("a", "b", "c"); w.take(1); w.add("x"); w.take(3) }, []string{"a", "x", "b", "c"},
		},
		"a change overtakes bulk requests": {
			func(w *worker) { w.addBulk(requestsFor("a", "b")); w.take(1); w.add("x"); w.take(2) }, []string{"a", "x", "b"},
		},
		"a request that overtakes itself is taken once": {
			func(w *worker) {
				w.addBulk(requestsFor("a", "b", "c"))
				w.take(1)
				w.add("c")
				w.take(2)
				w.add("x")
				w.take(1)
			}, []string{"a", "c", "b", "x"},
		},
		"a bulk request is taken again if its object is affected again": {
			func(w *worker) {
				w.addBulk(requestsFor("a", "b"))
				w.take(1)
				w.add("b")
				w.take(1)
				w.addBulk(requestsFor("b"))
				w.take(1)
			}, []string{"a", "b", "b"},
		},
		"bulk requests advance although others come all the time": {
			func(w *worker) {
				w.add("first")
				w.take(1)
				w.addBulk(requestsFor("a"))
				for i := range 7 {
					w.add(fmt.Sprint(2*i), fmt.Sprint(2*i+1))
					w.take(1)
				}
				w.take(3)
			}, []string{"first", "0", "1", "2", "3", "4", "5", "6", "7", "a", "8"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &worker{requestQueue: newQueue("test", NewRateLimiter())}
			defer w.ShutDown()
			tc.play(w)
			if diff := cmp.Diff(tc.want, w.taken); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (len(w.pending) > 0 || w.due != 0) && len(w.backlog) == 0 {
				t.Errorf("what has been taken is remembered: %v", w.pending)
			}
		})
	}
}

func TestAllWorkersTakeBulkRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 10
		q := newQueue("test", NewRateLimiter())
		var busy, ended sync.WaitGroup
		busy.Add(workers)
		for range workers {
			ended.Go(func() {
				request, _ := q.Get()
				defer q.Done(request)
				busy.Done()
				busy.Wait() // until every worker has one: a deadlock otherwise
			})
		}
		synctest.Wait()
		q.addBulk(makeRequests(workers))
		ended.Wait()
		q.ShutDown()
	})
}

func TestFewBulkRequestsAreInProgressWhileSingleObjectsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 10
		q := NewLatency(prometheus.HistogramOpts{Name: "seconds"}).Queue("test", NewRateLimiter()).(*timedQueue)
		next := make(chan struct{})
		var bulk, others atomic.Int64
		for range workers {
			go func() {
				for request, ended := q.Get(); !ended; request, ended = q.Get() {
					count := &bulk
					if request.Name == "x" {
						count = &others
					}
					count.Add(1)
					<-next
					count.Add(-1)
					q.Done(request)
				}
			}()
		}
		check := func(when string, wantBulk, wantOthers int64) {
			t.Helper()
			if synctest.Wait(); bulk.Load() != wantBulk || others.Load() != wantOthers {
				t.Errorf("%s %d bulk requests and %d others are in progress, want %d and %d", when, bulk.Load(), others.Load(), wantBulk, wantOthers)
			}
		}
		synctest.Wait()
		<-time.After(2 * single)
		q.addBulk(makeRequests(1000))
		check("at first", workers, 0)
		for range workers {
			next <- struct{}{}
		}
		for _, own := range makeRequests(workers) {
			q.Add(own) // the event of its own write
		}
		check("after their own changes", workers, 0)
		q.Add(requestsFor("x")[0])
		for range 3 * workers {
			next <- struct{}{}
			synctest.Wait()
		}
		check("while another object changes,", fewBulk, others.Load())
		q.Add(requestsFor("x")[0])
		check("without waiting", fewBulk, 1)
		<-time.After(2 * single)
		next <- struct{}{}
		synctest.Wait()
		check("after a while,", workers-others.Load(), others.Load())
		q.ShutDown()
		close(next)
	})
}

func TestQueueShutsDownWithABacklog(t *testing.T) {
	q := newQueue("test", NewRateLimiter())
	q.addBulk(makeRequests(1000))
	request, _ := q.Get()
	q.Done(request)
	q.ShutDown()
	for taken := 0; ; taken++ {
		request, ended := q.Get()
		if ended {
			return
		}
		if q.Done(request); taken > 1 {
			t.Fatal("bulk requests are queued after the end")
		}
	}
}

// controller-runtime wraps a queue that is no PriorityQueue, and sometimes one that is.
func TestBulkRequestsReachTheBacklogThroughControllerRuntime(t *testing.T) {
	change := func(requests []reconcile.Request) func(priorityqueue.PriorityQueue[reconcile.Request]) {
		mapped := handler.WithLowPriorityWhenUnchanged(EnqueueFrom(func(context.Context, client.Object) ([]reconcile.Request, error) {
			return requests, nil
		}))
		return func(q priorityqueue.PriorityQueue[reconcile.Request]) {
			before, after := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}
			after.ResourceVersion = "2"
			mapped.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		}
	}
	for name, tc := range map[string]struct {
		add           func(priorityqueue.PriorityQueue[reconcile.Request])
		queued, bulky int
	}{
		"a change that affects many objects": {change(makeRequests(bulkSize)), 0, bulkSize},
		"a change that affects few":          {change(makeRequests(bulkSize / 4)), bulkSize / 4, 0},
		"an object that was listed": {func(q priorityqueue.PriorityQueue[reconcile.Request]) {
			new(handler.EnqueueRequestForObject).Create(t.Context(), event.CreateEvent{
				Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, IsInInitialList: true,
			}, q)
		}, 0, 1},
		"an object that was created": {func(q priorityqueue.PriorityQueue[reconcile.Request]) {
			new(handler.EnqueueRequestForObject).Create(t.Context(), event.CreateEvent{
				Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
			}, q)
		}, 1, 0},
	} {
		for kind, q := range map[string]priorityqueue.PriorityQueue[reconcile.Request]{
			"a queue": newQueue("test", NewRateLimiter()),
			"a timed queue": NewLatency(prometheus.HistogramOpts{Name: "seconds"}).
				Queue("test", NewRateLimiter()).(priorityqueue.PriorityQueue[reconcile.Request]),
		} {
			t.Run(name+" in "+kind, func(t *testing.T) {
				defer q.ShutDown()
				q.Add(makeRequests(1)[0])
				request, _, _ := q.GetWithPriority() // after the start
				q.Done(request)
				tc.add(q)
				backlog := 0
				switch q := q.(type) {
				case *requestQueue:
					backlog = len(q.backlog)
				case *timedQueue:
					backlog = len(q.backlog)
				}
				if q.Len() != tc.queued || backlog != tc.bulky {
					t.Errorf("%d are queued and %d in the backlog, want %d and %d", q.Len(), backlog, tc.queued, tc.bulky)
				}
			})
		}
	}
}
