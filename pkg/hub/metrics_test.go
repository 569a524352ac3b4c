package hub

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// timed plays a controller whose requests are timed.
type timed struct {
	*latency
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	request reconcile.Request
}

// begin takes the request, and returns since when it has waited.
func (p timed) begin() time.Time {
	request, _ := p.queue.Get()
	return p.take(request)
}

// write takes the request, and carries it out with a write.
func (p timed) write() {
	p.done(p.begin())
	p.queue.Done(p.request)
}

func (p timed) change() { p.queue.Add(p.request) }

// second passes, in the time of synctest.
func second() { <-time.After(time.Second) }

func TestLatency(t *testing.T) {
	for name, tc := range map[string]struct {
		play    func(p timed)
		writes  uint64  // how many are timed
		seconds float64 // how long all of them took
	}{
		"a change is timed from when it came":      {func(p timed) { p.change(); second(); p.write() }, 1, 1},
		"several changes are timed from the first": {func(p timed) { p.change(); second(); p.change(); second(); p.write() }, 1, 2},
		"each write is timed by itself": {func(p timed) {
			p.change()
			second()
			p.write()
			second()
			p.change()
			p.write()
		}, 2, 1},
		"what the controller puts back is not timed":                 {func(p timed) { p.queue.AddAfter(p.request, time.Second); p.write() }, 0, 0},
		"nor what it puts back after an error that no change led to": {func(p timed) { p.queue.AddRateLimited(p.request); p.write() }, 0, 0},
		"an attempt that failed goes on waiting": {func(p timed) {
			p.change()
			second()
			p.again(p.request, p.begin())
			p.queue.AddAfter(p.request, time.Second)
			p.queue.Done(p.request)
			p.write()
		}, 1, 2},
		"an attempt that failed waits since its own change, not since one that came meanwhile": {func(p timed) {
			p.change()
			since := p.begin()
			second()
			p.change()
			p.again(p.request, since)
			p.queue.Done(p.request)
			p.write()
		}, 1, 1},
		"a change while the one before is carried out has its own time": {func(p timed) {
			p.change()
			since := p.begin()
			second()
			p.change()
			p.done(since)
			p.queue.Done(p.request)
			second()
			p.write()
		}, 2, 2},
		"a change that leads to no write is forgotten": {func(p timed) {
			p.change()
			p.begin()
			p.queue.Done(p.request)
			second()
			p.change()
			p.write()
		}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLatency(prometheus.HistogramOpts{Name: "seconds"})
				p := timed{
					latency: l, request: reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "c", Name: "a"}},
					queue: l.queue("test", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()),
				}
				defer p.queue.ShutDown()
				p.change() // what is there at the start, which is no change
				second()
				p.write()
				tc.play(p)
				var measured dto.Metric
				if err := l.seconds.Write(&measured); err != nil {
					t.Fatal(err)
				}
				if got := measured.Histogram; got.GetSampleCount() != tc.writes || got.GetSampleSum() != tc.seconds {
					t.Errorf("%d writes in %v s, want %d in %v s", got.GetSampleCount(), got.GetSampleSum(), tc.writes, tc.seconds)
				}
				if len(l.waiting) > 0 {
					t.Errorf("what has been done is remembered: %v", l.waiting)
				}
			})
		})
	}
}

func TestTallyCountsClustersOnce(t *testing.T) {
	on := func(cluster string) types.NamespacedName {
		return types.NamespacedName{Namespace: cluster, Name: "kafka"}
	}
	unfinished := newMetrics().unfinished
	waits, fails := []rolloutKey{{"kafka", "Waiting"}}, []rolloutKey{{"kafka", "Failed"}}
	unfinished.set(on("c1"), waits)
	unfinished.set(on("c2"), waits)
	unfinished.set(on("c3"), waits)
	unfinished.set(on("c2"), fails)
	unfinished.set(on("c3"), nil)
	unfinished.recall(on("c2"), waits) // something better is known
	unfinished.recall(on("c4"), fails)
	registry := prometheus.NewRegistry()
	registry.MustRegister(unfinished)
	if diff := cmp.Diff(map[string]float64{"Waiting": 1, "Failed": 2}, gauges(t, registry, "addon_rollout_unfinished")); diff != "" {
		t.Errorf("clusters by state (-want +got):\n%s", diff)
	}
}
