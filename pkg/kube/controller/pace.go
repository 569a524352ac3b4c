package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// minWriteDelay is how long a status is left alone after a change: a user who reads the object after the change and then updates it would
	// fail with a conflict (docs/decisions: Tandem writes no status right after a change).
	minWriteDelay = 2 * time.Second
	// maxWriteDelay is how long a write waits at most if changes follow each other.
	maxWriteDelay = MaxRetryInterval
)

// Pace postpone writes to the status of objects whose spec or configuration has just changed. Changes are learned from events and
// kept in memory, so a restart postpones nothing. They are safe for concurrent use.
type Pace struct {
	clock func() time.Time

	mutex  sync.Mutex
	delays map[types.NamespacedName]writeDelay
	swept  time.Time
}

// NewPace returns empty QuietPeriods.
func NewPace(clock func() time.Time) *Pace {
	return &Pace{clock: clock, delays: map[types.NamespacedName]writeDelay{}}
}

// Delay records a change of an object's spec or configuration.
func (q *Pace) Delay(key types.NamespacedName) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	now := q.clock()
	q.sweep(now)
	q.delays[key] = q.delays[key].begin(now)
}

// Reset ends the quiet period of an object that was created: its first status is never postponed.
func (q *Pace) Reset(key types.NamespacedName) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	delete(q.delays, key)
}

// Allow returns nil if the status of an object may be written, else a Postponed error.
func (q *Pace) Allow(key types.NamespacedName) error {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	period, known := q.delays[key]
	if !known {
		return nil
	}
	period, left := period.ask(q.clock())
	if left <= 0 {
		delete(q.delays, key)
		return nil
	}
	q.delays[key] = period
	return &PostponedError{For: left}
}

// sweep drops the ended periods of objects that needed no write, so that the map does not grow with every object that ever changed.
func (q *Pace) sweep(now time.Time) {
	if now.Sub(q.swept) < maxWriteDelay {
		return
	}
	q.swept = now
	for key, period := range q.delays {
		if period.isOver(now) {
			delete(q.delays, key)
		}
	}
}

// writeDelay is the time after one or more changes.
type writeDelay struct {
	changed time.Time // the last change
	waiting time.Time // the first postponed write; zero if there is none
}

// begin returns the period after a change.
func (p writeDelay) begin(now time.Time) writeDelay {
	if p.isOver(now) {
		p.waiting = time.Time{}
	}
	p.changed = now
	return p
}

// ask returns how long a write has to wait; the returned period remembers that one does.
func (p writeDelay) ask(now time.Time) (writeDelay, time.Duration) {
	if p.waiting.IsZero() {
		p.waiting = now
	}
	return p, min(p.changed.Add(minWriteDelay).Sub(now), p.waiting.Add(maxWriteDelay).Sub(now))
}

func (p writeDelay) isOver(now time.Time) bool { return now.Sub(p.changed) >= minWriteDelay }

// OnSpecChange returns a predicate that admits everything, and begins a quiet period of each object whose spec is changed by an update.
func (q *Pace) OnSpecChange() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			q.Reset(client.ObjectKeyFromObject(e.Object))
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			if isSpecChange(e.ObjectOld, e.ObjectNew) {
				q.Delay(client.ObjectKeyFromObject(e.ObjectNew))
			}
			return true
		},
	}
}

// EnqueueFrom is controller.Mapped, and begins quiet periods as Before does.
func (q *Pace) EnqueueFrom(to func(context.Context, client.Object) ([]reconcile.Request, error)) handler.EventHandler {
	return q.Before(EnqueueFrom(to), to)
}

// Before returns a handler that begins a quiet period of each object that to returns if an update changes the spec of the watched object,
// and then calls next.
func (q *Pace) Before(
	next handler.EventHandler, to func(context.Context, client.Object) ([]reconcile.Request, error),
) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: next.Create, DeleteFunc: next.Delete, GenericFunc: next.Generic,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, pending queue) {
			if isSpecChange(e.ObjectOld, e.ObjectNew) {
				for _, request := range toMapFunc(to)(ctx, e.ObjectNew) {
					q.Delay(request.NamespacedName)
				}
			}
			next.Update(ctx, e, pending)
		},
	}
}

// isSpecChange reports whether an update changed the spec of an object, and neither created it again nor deletes it.
func isSpecChange(before, after client.Object) bool {
	return before.GetUID() == after.GetUID() && before.GetGeneration() != after.GetGeneration() && after.GetDeletionTimestamp().IsZero()
}
