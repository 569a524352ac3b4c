package controller

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Sightings record when a change was first observed, by key, until it is handled. They are safe for concurrent use.
type Sightings[K comparable] struct {
	mutex sync.Mutex
	since map[K]time.Time
}

// NewSightings returns empty Sightings.
func NewSightings[K comparable]() *Sightings[K] { return &Sightings[K]{since: map[K]time.Time{}} }

// Keep records a sighting, unless an earlier one is still recorded.
func (s *Sightings[K]) Keep(key K, at time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if first, waits := s.since[key]; !waits || at.Before(first) {
		s.since[key] = at
	}
}

// Take removes and returns the sighting; zero if there is none.
func (s *Sightings[K]) Take(key K) time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	since := s.since[key]
	delete(s.since, key)
	return since
}

// Latency measures the time from a change to the resulting write. Objects that exist when the controller starts do not count as changes:
// the time of their last change is unknown.
type Latency struct {
	// Seconds is the histogram of the measured times.
	Seconds prometheus.Histogram

	waiting *Sightings[reconcile.Request]
}

// NewLatency returns a Latency with a histogram.
func NewLatency(options prometheus.HistogramOpts) *Latency {
	return &Latency{Seconds: prometheus.NewHistogram(options), waiting: NewSightings[reconcile.Request]()}
}

// fewBulk is how many bulk requests are in progress while single objects change. A server with few cores executes all requests at the same
// time, each as much more slowly, and is as slow in delivering changes.
const fewBulk = 2

// Queue returns a controller's queue that records when requests are added, and keeps the latency of single changes short.
func (l *Latency) Queue(controller string, limiter workqueue.TypedRateLimiter[reconcile.Request]) queue {
	q := &timedQueue{latency: l, requestQueue: newQueue(controller, limiter)}
	q.few = fewBulk
	return q
}

// Take removes and returns the time since when a request waits; zero if no change led to it.
func (l *Latency) Take(request reconcile.Request) time.Time { return l.waiting.Take(request) }

// PutBack records that a request still waits since that time.
func (l *Latency) PutBack(request reconcile.Request, since time.Time) {
	if !since.IsZero() {
		l.waiting.Keep(request, since)
	}
}

// Observe observes the time of a write.
func (l *Latency) Observe(since time.Time) {
	if !since.IsZero() {
		l.Seconds.Observe(time.Since(since).Seconds())
	}
}

// timedQueue records requests caused by changes: neither retries by the controller itself, nor requests for objects that exist at the
// start, which are all added before the first is taken.
type timedQueue struct {
	*requestQueue
	latency *Latency
}

// Add adds the request of a change.
func (q *timedQueue) Add(request reconcile.Request) {
	q.keep(request)
	q.requestQueue.Add(request)
}

// AddWithOpts adds requests; those that wait for a while first are no changes.
func (q *timedQueue) AddWithOpts(options priorityqueue.AddOpts, requests ...reconcile.Request) {
	if !options.RateLimited && options.After == 0 {
		q.keep(requests...)
	}
	q.requestQueue.AddWithOpts(options, requests...)
}

// keep records the time of a change.
func (q *timedQueue) keep(requests ...reconcile.Request) {
	if !q.hasStarted() {
		return
	}
	for _, request := range requests {
		q.latency.waiting.Keep(request, time.Now())
	}
}

// Get waits for a request. Requests that remain when the queue shuts down are dropped, because nothing can be written any more.
func (q *timedQueue) Get() (reconcile.Request, bool) {
	request, ended := q.requestQueue.Get()
	return request, ended || q.ShuttingDown()
}

// GetWithPriority is Get.
func (q *timedQueue) GetWithPriority() (reconcile.Request, int, bool) {
	request, ended := q.Get()
	return request, 0, ended
}
