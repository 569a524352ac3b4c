package hub

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tandem-addons/tandem/pkg/dependency"
)

// metrics are what the hub measures beside controller-runtime. Only the process that leads shows them, so that they may be summed
// over replicas.
type metrics struct {
	unsatisfied    *tally[unmetKey]
	verdictChanges *prometheus.CounterVec
	verdictLatency *latency
	unfinished     *tally[rolloutKey]
	certificates   *prometheus.CounterVec
	eventsDropped  prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		unsatisfied: newTally(prometheus.NewDesc("addon_dependency_unsatisfied",
			"Clusters on which a dependency of an add-on is not satisfied, by add-on, dependency, its type and the cause.",
			[]string{"addon", "dependency", "type", "cause"}, nil),
			func(k unmetKey) []string { return []string{k.addOn, k.dependency, k.dependencyType, k.cause} }),
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
		unfinished: newTally(prometheus.NewDesc("addon_rollout_unfinished",
			"Clusters that a rollout of OCM's has not brought an add-on's configuration to yet, by add-on and state: Waiting for its turn, "+
				"Progressing, or Failed, which a plan has.",
			[]string{"addon", "state"}, nil),
			func(k rolloutKey) []string { return []string{k.addOn, k.state} }),
		certificates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_agent_certificate_requests_total",
			Help: "Requests for the certificate of an addon-agent that is delivered, by answer: approved or refused.",
		}, []string{"answer"}),
		eventsDropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "addon_events_dropped_total",
			Help: "Kubernetes events that were not written, because too many came at once.",
		}),
	}
}

func (m *metrics) setUp(mgr manager.Manager) error { return mgr.Add(m) }

// Start shows the metrics until ctx ends.
func (m *metrics) Start(ctx context.Context) error {
	for _, collector := range []prometheus.Collector{
		m.unsatisfied, m.verdictChanges, m.verdictLatency.seconds, m.unfinished, m.certificates, m.eventsDropped,
	} {
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

// unmetKey are the labels of addon_dependency_unsatisfied.
type unmetKey struct{ addOn, dependency, dependencyType, cause string }

// unmetKeys are those under which the unmet dependencies of an add-on are counted.
func unmetKeys(addOn string, unmet []dependency.Judgement) []unmetKey {
	keys := make([]unmetKey, 0, len(unmet))
	for _, j := range unmet {
		keys = append(keys, unmetKey{addOn: addOn, dependency: j.Name, dependencyType: string(j.Type), cause: string(j.Cause)})
	}
	return keys
}

// rolloutKey are the labels of addon_rollout_unfinished.
type rolloutKey struct{ addOn, state string }

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
