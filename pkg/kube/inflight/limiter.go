// Package inflight decides how many requests a client has in flight at a server: fewer when their latency grows, more when it does not.
// It touches no cluster and reads no clock.
package inflight

import (
	"container/list"
	"context"
	"sync"
)

// Limiter limits the requests in flight to a number that it adapts to their latency. Further requests wait, first come, first served. It
// is safe for concurrent use.
type Limiter struct {
	mutex    sync.Mutex
	limit    adaptation
	inFlight int
	// waiting lists the channels, closed on admission, of the requests that wait.
	waiting list.List
	changed func(limit, inFlight int)
}

// New returns a Limiter that reports its limit and the number of requests in flight whenever one of them changes.
func New(changed func(limit, inFlight int)) *Limiter {
	l := &Limiter{limit: newAdaptation(), changed: changed}
	l.report()
	return l
}

// Do runs a request as soon as the limit permits. It returns an error, without running the request, if ctx ends before that.
func (l *Limiter) Do(ctx context.Context, run func() Request) error {
	inFlight, err := l.enter(ctx)
	if err != nil {
		return err
	}
	ended := Request{Result: Failed}
	defer func() {
		ended.inFlight = inFlight
		l.leave(ended)
	}()
	ended = run()
	return nil
}

// enter waits until the limit permits one more request, and returns the number of requests in flight.
func (l *Limiter) enter(ctx context.Context) (int, error) {
	l.mutex.Lock()
	if l.inFlight < l.limit.requests() {
		defer l.mutex.Unlock()
		return l.admit(), nil
	}
	l.limit.reached = true
	admitted := make(chan int, 1)
	place := l.waiting.PushBack(admitted)
	l.mutex.Unlock()
	select {
	case inFlight := <-admitted:
		return inFlight, nil
	case <-ctx.Done():
		return l.giveUp(place, ctx.Err())
	}
}

// giveUp removes a request from the queue, unless it has been admitted meanwhile.
func (l *Limiter) giveUp(place *list.Element, err error) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	select {
	case inFlight := <-place.Value.(chan int):
		return inFlight, nil
	default:
		l.waiting.Remove(place)
		return 0, err
	}
}

// leave ends a request, and admits waiting ones.
func (l *Limiter) leave(r Request) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.inFlight--
	l.limit.add(r)
	for l.waiting.Len() > 0 && l.inFlight < l.limit.requests() {
		l.waiting.Remove(l.waiting.Front()).(chan int) <- l.admit()
	}
	l.report()
}

// admit counts a request, for a caller that holds the lock.
func (l *Limiter) admit() int {
	l.inFlight++
	l.report()
	return l.inFlight
}

func (l *Limiter) report() { l.changed(l.limit.requests(), l.inFlight) }
