package hub

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tandem-addons/tandem/pkg/dependency"
)

// metrics are what the hub measures beside controller-runtime. Only the process that leads shows them, so that they may be summed
// over replicas.
type metrics struct {
	unsatisfied    *tally
	verdictChanges *prometheus.CounterVec
	verdictLatency *latency
	eventsDropped  prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		unsatisfied: newTally(),
		verdictChanges: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_dependency_verdict_changes_total",
			Help: "Verdicts written over the dependencies of an add-on on a cluster, by add-on and verdict: Satisfied, or the " +
				"reason of condition Degraded.",
		}, []string{"addon", "verdict"}),
		verdictLatency: newLatency(prometheus.HistogramOpts{
			Name: "addon_dependency_verdict_seconds",
			Help: "Time from the first change that was seen to the API server's response to the verdict that it led to.",
			// The goal is 100 ms for one cluster; a whole fleet takes as long as its writes do.
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120},
		}),
		eventsDropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "addon_events_dropped_total",
			Help: "Kubernetes events that were not written, because too many came at once.",
		}),
	}
}

func (m *metrics) setUp(mgr manager.Manager) error { return mgr.Add(m) }

// Start shows the metrics until ctx ends.
func (m *metrics) Start(ctx context.Context) error {
	for _, collector := range []prometheus.Collector{m.unsatisfied, m.verdictChanges, m.verdictLatency.seconds, m.eventsDropped} {
		if err := registry.Registry.Register(collector); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
		defer registry.Registry.Unregister(collector)
	}
	<-ctx.Done()
	return nil
}

// verdictSatisfied is the label of a verdict that finds nothing; the others are their reasons.
const verdictSatisfied = "Satisfied"

// verdictChanged counts a verdict that was written.
func (m *metrics) verdictChanged(addOn string, verdict dependency.Verdict) {
	label := verdict.Reason()
	if label == "" {
		label = verdictSatisfied
	}
	m.verdictChanges.WithLabelValues(addOn, label).Inc()
}

// tally counts, over all clusters, the dependencies that are not satisfied. It remembers what it counts of each add-on, so that
// another judgement of the same add-on takes its place; what is satisfied takes no room. After a start it fills while
// every add-on is judged once.
type tally struct {
	clusters *prometheus.Desc

	mutex sync.Mutex
	unmet map[types.NamespacedName][]unmetKey
	count map[unmetKey]int
}

// unmetKey are the labels.
type unmetKey struct{ addOn, dependency, dependencyType, cause string }

func newTally() *tally {
	return &tally{
		clusters: prometheus.NewDesc("addon_dependency_unsatisfied",
			"Clusters on which a dependency of an add-on is not satisfied, by add-on, dependency, its type and the cause.",
			[]string{"addon", "dependency", "type", "cause"}, nil),
		unmet: map[types.NamespacedName][]unmetKey{},
		count: map[unmetKey]int{},
	}
}

// recall counts the last verdict over an add-on that cannot be judged, where this process knows nothing better.
func (t *tally) recall(addOn types.NamespacedName, unmet []dependency.Judgement) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.unmet[addOn] == nil {
		t.replace(addOn, unmet)
	}
}

// set takes the place of what was counted of that add-on on that cluster.
func (t *tally) set(addOn types.NamespacedName, unmet []dependency.Judgement) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.replace(addOn, unmet)
}

// replace is set for a caller that holds the lock.
func (t *tally) replace(addOn types.NamespacedName, unmet []dependency.Judgement) {
	for _, key := range t.unmet[addOn] {
		if t.count[key]--; t.count[key] == 0 {
			delete(t.count, key)
		}
	}
	if len(unmet) == 0 {
		delete(t.unmet, addOn)
		return
	}
	keys := make([]unmetKey, 0, len(unmet))
	for _, j := range unmet {
		key := unmetKey{addOn: addOn.Name, dependency: j.Name, dependencyType: string(j.Type), cause: string(j.Cause)}
		t.count[key]++
		keys = append(keys, key)
	}
	t.unmet[addOn] = keys
}

// Describe and Collect make it a prometheus.Collector.
func (t *tally) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- t.clusters }

func (t *tally) Collect(found chan<- prometheus.Metric) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for key, count := range t.count {
		found <- prometheus.MustNewConstMetric(t.clusters, prometheus.GaugeValue, float64(count),
			key.addOn, key.dependency, key.dependencyType, key.cause)
	}
}

// latency measures the time from a change to the write that it leads to. What is there when the controller starts is no change:
// nobody knows when it came about.
type latency struct {
	seconds prometheus.Histogram

	mutex   sync.Mutex
	waiting map[reconcile.Request]time.Time // since when, by what has not been looked at yet
}

func newLatency(options prometheus.HistogramOpts) *latency {
	return &latency{seconds: prometheus.NewHistogram(options), waiting: map[reconcile.Request]time.Time{}}
}

// queue is a controller's queue whose requests are timed.
func (l *latency) queue(
	controller string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return &timedQueue{latency: l, TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(
		limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: controller})}
}

// take ends the wait of a request, and returns since when it waited; zero if no change led to it.
func (l *latency) take(request reconcile.Request) time.Time {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	since := l.waiting[request]
	delete(l.waiting, request)
	return since
}

// again says that what a request waits for, since then, has not been done.
func (l *latency) again(request reconcile.Request, since time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if !since.IsZero() {
		l.waiting[request] = since
	}
}

// done measures a write.
func (l *latency) done(since time.Time) {
	if !since.IsZero() {
		l.seconds.Observe(time.Since(since).Seconds())
	}
}

// changed says that something changed for a request; what waits already goes on waiting.
func (l *latency) changed(request reconcile.Request) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if _, waits := l.waiting[request]; !waits {
		l.waiting[request] = time.Now()
	}
}

// timedQueue tells latency of the requests that come from changes: not of those that the controller itself puts back, nor of what
// is there at the start, which is all added before the first is taken.
type timedQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	latency *latency
	started atomic.Bool
}

// Add adds the request of a change.
func (q *timedQueue) Add(request reconcile.Request) {
	if q.started.Load() {
		q.latency.changed(request)
	}
	q.TypedRateLimitingInterface.Add(request)
}

// Get waits for a request. What is left when the queue ends is left, for nothing could be written any more.
func (q *timedQueue) Get() (reconcile.Request, bool) {
	q.started.Store(true)
	request, ended := q.TypedRateLimitingInterface.Get()
	return request, ended || q.ShuttingDown()
}
