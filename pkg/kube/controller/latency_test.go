package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// timed simulates a controller with timed requests.
type timed struct {
	*Latency
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	request reconcile.Request
}

// begin takes the request, and returns since when it has waited.
func (p timed) begin() time.Time {
	request, _ := p.queue.Get()
	return p.Take(request)
}

// write takes the request, and handles it with a write.
func (p timed) write() {
	p.Observe(p.begin())
	p.queue.Done(p.request)
}

func (p timed) change() { p.queue.Add(p.request) }

// second waits one second, in the time of synctest.
func second() { <-time.After(time.Second) }

func TestLatency(t *testing.T) {
	for name, tc := range map[string]struct {
		play    func(p timed)
		writes  uint64  // number of measured writes
		seconds float64 // their total time
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
		"a failed attempt continues to wait": {func(p timed) {
			p.change()
			second()
			p.PutBack(p.request, p.begin())
			p.queue.AddAfter(p.request, time.Second)
			p.queue.Done(p.request)
			p.write()
		}, 1, 2},
		"an attempt that failed waits since its own change, not since one that came meanwhile": {func(p timed) {
			p.change()
			since := p.begin()
			second()
			p.change()
			p.PutBack(p.request, since)
			p.queue.Done(p.request)
			p.write()
		}, 1, 1},
		"a change while the one before is carried out has its own time": {func(p timed) {
			p.change()
			since := p.begin()
			second()
			p.change()
			p.Observe(since)
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
				l := NewLatency(prometheus.HistogramOpts{Name: "seconds"})
				p := timed{
					Latency: l, request: reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "c", Name: "a"}},
					queue: l.Queue("test", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()),
				}
				defer p.queue.ShutDown()
				p.change() // exists at the start, which is no change
				second()
				p.write()
				tc.play(p)
				var measured dto.Metric
				if err := l.Seconds.Write(&measured); err != nil {
					t.Fatal(err)
				}
				if got := measured.Histogram; got.GetSampleCount() != tc.writes || got.GetSampleSum() != tc.seconds {
					t.Errorf("%d writes in %v s, want %d in %v s", got.GetSampleCount(), got.GetSampleSum(), tc.writes, tc.seconds)
				}
				if len(l.waiting.since) > 0 {
					t.Errorf("what has been done is remembered: %v", l.waiting.since)
				}
			})
		})
	}
}
