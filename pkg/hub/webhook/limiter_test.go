package webhook

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// start acquires an amount in the background, and returns a channel that gets its release.
func start(t *testing.T, l *limiter, peer string, amount int64) chan func() {
	t.Helper()
	started := make(chan func(), 1)
	go func() {
		release, err := l.acquire(context.Background(), peer, amount)
		if err != nil {
			t.Error(err)
		}
		started <- release
	}()
	return started
}

// awaitWaiting waits until that many requests wait.
func awaitWaiting(l *limiter, number int) {
	for {
		l.mutex.Lock()
		waiting := len(l.waiting)
		l.mutex.Unlock()
		if waiting == number {
			return
		}
	}
}

func TestALimiterKeepsTheOrder(t *testing.T) {
	l := newLimiter(10, 10)
	first := <-start(t, l, "a", 8)
	large := start(t, l, "a", 5)
	awaitWaiting(l, 1)
	small := start(t, l, "a", 1)
	awaitWaiting(l, 2)
	select {
	case <-small:
		t.Error("a small request overtakes a large one, which might wait forever")
	default:
	}
	first()
	(<-large)()
	(<-small)()
}

func TestALimiterLeavesAPartToOtherPeers(t *testing.T) {
	l := newLimiter(10, 6)
	first := <-start(t, l, "a", 6)
	more := start(t, l, "a", 1)
	awaitWaiting(l, 1)
	(<-start(t, l, "b", 4))()
	first()
	(<-more)()
	if len(l.usedBy) > 0 {
		t.Errorf("it remembers %v", l.usedBy)
	}
}

func TestALimiterForgetsRequestsThatEnd(t *testing.T) {
	l := newLimiter(10, 10)
	first := <-start(t, l, "a", 10)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		_, err := l.acquire(ctx, "a", 10)
		ended <- err
	}()
	awaitWaiting(l, 1)
	next := start(t, l, "a", 5)
	awaitWaiting(l, 2)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	first()
	(<-next)()
}

func TestALimiterIsNeverExceeded(t *testing.T) {
	const total = 100
	l := newLimiter(total, 60)
	var used atomic.Int64
	var requests sync.WaitGroup
	for i := range 500 {
		requests.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			if i%7 == 0 {
				cancel()
			}
			defer cancel()
			amount := rand.Int64N(60) + 1
			release, err := l.acquire(ctx, string(rune('a'+i%3)), amount)
			if err != nil {
				return
			}
			if now := used.Add(amount); now > total {
				t.Errorf("%d are used", now)
			}
			used.Add(-amount)
			release()
		})
	}
	requests.Wait()
	if l.used != 0 || len(l.waiting)+len(l.usedBy) > 0 {
		t.Errorf("%d are used by %v, and %d wait", l.used, l.usedBy, len(l.waiting))
	}
}
