package inflight_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-addons/tandem/pkg/kube/inflight"
)

// client is a Limiter with what it reports.
type client struct {
	*inflight.Limiter
	limit, inFlight atomic.Int64
}

func newClient() *client {
	c := &client{}
	c.Limiter = inflight.New(func(limit, inFlight int) {
		c.limit.Store(int64(limit))
		c.inFlight.Store(int64(inFlight))
	})
	return c
}

// send sends a request that ends when serve returns.
func (c *client) send(ctx context.Context, kind string, serve func()) error {
	return c.Do(ctx, func() inflight.Request {
		began := time.Now()
		serve()
		return inflight.Request{Kind: kind, Began: began, Ended: time.Now()}
	})
}

func TestRequestsBeyondTheLimitWaitInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, end := newClient(), make(chan struct{})
		limit := int(c.limit.Load())
		for range limit {
			go func() { _ = c.send(t.Context(), "get", func() { <-end }) }()
		}
		synctest.Wait()

		impatient, cancel := context.WithCancel(t.Context())
		late := make(chan error, 1)
		go func() {
			late <- c.send(impatient, "get", func() { t.Error("it was sent after its client had given up") })
		}()
		synctest.Wait()
		var order []int
		for i := range 3 {
			go func() {
				_ = c.send(t.Context(), "get", func() {
					order = append(order, i)
					<-end
				})
			}()
			synctest.Wait()
		}
		if c.inFlight.Load() != int64(limit) || len(order) != 0 {
			t.Fatalf("%d requests are in flight, and %v of those that wait, want %d", c.inFlight.Load(), order, limit)
		}
		cancel()
		if err := <-late; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up got %v", err)
		}
		for range 3 {
			end <- struct{}{}
			synctest.Wait()
		}
		if len(order) != 3 || order[0] != 0 || order[1] != 1 || order[2] != 2 {
			t.Errorf("sent in the order %v", order)
		}
		close(end)
		synctest.Wait()
		if c.inFlight.Load() != 0 {
			t.Errorf("%d requests are in flight at the end", c.inFlight.Load())
		}
	})
}

func TestAPanicEndsItsRequest(t *testing.T) {
	c := newClient()
	func() {
		defer func() { _ = recover() }()
		_ = c.Do(t.Context(), func() inflight.Request { panic("broken") })
	}()
	if c.inFlight.Load() != 0 {
		t.Errorf("%d requests are in flight", c.inFlight.Load())
	}
}

// server executes that many requests at a time, each for the time of its kind; others wait.
type server struct{ executing chan struct{} }

var costs = map[string]time.Duration{"get": 20 * time.Millisecond, "patch": 50 * time.Millisecond, "list": 500 * time.Millisecond}

func (s server) serve(kind string) {
	s.executing <- struct{}{}
	<-time.After(costs[kind])
	<-s.executing
}

// phase is a time in which a server gets as many requests as it answers, from that many workers.
type phase struct {
	executes, workers int
	kinds             []string
	// minShare is the least share of the server's throughput that is used, maxLimit the highest limit at the end.
	minShare float64
	maxLimit int64
}

// sendRequests sends requests for a while and returns how many were answered.
func (p phase) sendRequests(t *testing.T, c *client, duration time.Duration) int64 {
	s := server{make(chan struct{}, p.executes)}
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	var answered atomic.Int64
	for worker := range p.workers {
		go func() {
			for i := worker; ctx.Err() == nil; i++ {
				kind := p.kinds[i%len(p.kinds)]
				if c.send(ctx, kind, func() { s.serve(kind) }) == nil && ctx.Err() == nil {
					answered.Add(1)
				}
			}
		}()
	}
	<-ctx.Done()
	synctest.Wait()
	return answered.Load()
}

// capacity returns how many requests the server answers in that time.
func (p phase) capacity(duration time.Duration) float64 {
	var cost time.Duration
	for _, kind := range p.kinds {
		cost += costs[kind]
	}
	return float64(p.executes*len(p.kinds)) * float64(duration) / float64(cost)
}

func TestTheLimitSuitsTheServer(t *testing.T) {
	patches := []string{"patch"}
	for sentence, phases := range map[string][]phase{
		"a small one":                {{3, 100, patches, 0.9, 30}},
		"a large one":                {{100, 400, patches, 0.9, 256}},
		"few clients of a large one": {{100, 20, patches, 0.19, 32}},
		"a large one that becomes small and large again": {
			{100, 200, patches, 0.9, 256}, {5, 200, patches, 0.9, 40}, {100, 200, patches, 0.85, 256},
		},
		// The base of requests that are new under load is up to tolerance times too long until it is measured again: 2 × 2 × 50.
		"one whose requests change": {
			{50, 200, []string{"get"}, 0.9, 256}, {50, 200, patches, 0.9, 200}, {50, 200, []string{"get", "patch", "list"}, 0.9, 150},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const duration = 10 * time.Second
				c := newClient()
				for i, p := range phases {
					share := float64(p.sendRequests(t, c, duration)) / p.capacity(duration)
					t.Logf("phase %d: %.0f %% of the throughput, limit %d at the end", i+1, 100*share, c.limit.Load())
					if share < p.minShare {
						t.Errorf("phase %d: %.0f %% of the server's throughput, want %.0f %%", i+1, 100*share, 100*p.minShare)
					}
					if limit := c.limit.Load(); limit > p.maxLimit {
						t.Errorf("phase %d: the limit is %d, want at most %d", i+1, limit, p.maxLimit)
					}
					<-time.After(time.Second) // requests in flight end
				}
			})
		})
	}
}
