package controller

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Sightings remember when a change was first seen of what has not been looked at since. They may be used by several goroutines.
type Sightings[K comparable] struct {
	mutex sync.Mutex
	since map[K]time.Time
}

// NewSightings has seen nothing yet.
func NewSightings[K comparable]() *Sightings[K] { return &Sightings[K]{since: map[K]time.Time{}} }

// Keep notes a sighting, unless an earlier one still waits.
func (s *Sightings[K]) Keep(key K, at time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if first, waits := s.since[key]; !waits || at.Before(first) {
		s.since[key] = at
	}
}

// Take ends the wait, and returns since when; zero if no change was seen.
func (s *Sightings[K]) Take(key K) time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	since := s.since[key]
	delete(s.since, key)
	return since
}

// Latency measures the time from a change to the write that it leads to. What is there when the controller starts is no change: nothing
// says when it came about.
type Latency struct {
	// Seconds are the times that were measured.
	Seconds prometheus.Histogram

	waiting *Sightings[reconcile.Request]
}

// NewLatency measures into a histogram.
func NewLatency(options prometheus.HistogramOpts) *Latency {
	return &Latency{Seconds: prometheus.NewHistogram(options), waiting: NewSightings[reconcile.Request]()}
}

// Queue is a controller's queue whose requests are timed.
func (l *Latency) Queue(
	controller string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return &timedQueue{latency: l, TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(
		limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: controller})}
}

// Take ends the wait of a request, and returns since when it waited; zero if no change led to it.
func (l *Latency) Take(request reconcile.Request) time.Time { return l.waiting.Take(request) }

// Again reports that what a request waits for, since then, has not been done.
func (l *Latency) Again(request reconcile.Request, since time.Time) {
	if !since.IsZero() {
		l.waiting.Keep(request, since)
	}
}

// Done measures a write.
func (l *Latency) Done(since time.Time) {
	if !since.IsZero() {
		l.Seconds.Observe(time.Since(since).Seconds())
	}
}

// timedQueue tells Latency of the requests that come from changes: not of those that the controller itself puts back, nor of what
// is there at the start, which is all added before the first is taken.
type timedQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	latency *Latency
	started atomic.Bool
}

// Add adds the request of a change.
func (q *timedQueue) Add(request reconcile.Request) {
	if q.started.Load() {
		q.latency.waiting.Keep(request, time.Now())
	}
	q.TypedRateLimitingInterface.Add(request)
}

// Get waits for a request. What is left when the queue ends is left, for nothing could be written any more.
func (q *timedQueue) Get() (reconcile.Request, bool) {
	q.started.Store(true)
	request, ended := q.TypedRateLimitingInterface.Get()
	return request, ended || q.ShuttingDown()
}
