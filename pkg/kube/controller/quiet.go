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
	// quietTime is how long a status is left alone after a change: a user who reads the object after the change and then updates it would
	// fail with a conflict (docs/decisions: Tandem writes no status right after a change).
	quietTime = 2 * time.Second
	// longestQuiet is how long a write waits at most if changes follow each other.
	longestQuiet = LongestRetry
)

// QuietPeriods postpone writes to the status of objects whose spec or configuration has just changed. Changes are learned from events and
// kept in memory, so a restart postpones nothing. They are safe for concurrent use.
type QuietPeriods struct {
	clock func() time.Time

	mutex   sync.Mutex
	periods map[types.NamespacedName]quietPeriod
	swept   time.Time
}

// NewQuietPeriods returns empty QuietPeriods.
func NewQuietPeriods(clock func() time.Time) *QuietPeriods {
	return &QuietPeriods{clock: clock, periods: map[types.NamespacedName]quietPeriod{}}
}

// Begin records a change of an object's spec or configuration.
func (q *QuietPeriods) Begin(key types.NamespacedName) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	now := q.clock()
	q.sweep(now)
	q.periods[key] = q.periods[key].begin(now)
}

// End ends the quiet period of an object that was created: its first status is never postponed.
func (q *QuietPeriods) End(key types.NamespacedName) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	delete(q.periods, key)
}

// Over returns nil if the status of an object may be written, else a Postponed error.
func (q *QuietPeriods) Over(key types.NamespacedName) error {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	period, known := q.periods[key]
	if !known {
		return nil
	}
	period, left := period.ask(q.clock())
	if left <= 0 {
		delete(q.periods, key)
		return nil
	}
	q.periods[key] = period
	return &Postponed{For: left}
}

// sweep drops the ended periods of objects that needed no write, so that the map does not grow with every object that ever changed.
func (q *QuietPeriods) sweep(now time.Time) {
	if now.Sub(q.swept) < longestQuiet {
		return
	}
	q.swept = now
	for key, period := range q.periods {
		if period.ended(now) {
			delete(q.periods, key)
		}
	}
}

// quietPeriod is the time after one or more changes.
type quietPeriod struct {
	changed time.Time // the last change
	waiting time.Time // the first postponed write; zero if there is none
}

// begin returns the period after a change.
func (p quietPeriod) begin(now time.Time) quietPeriod {
	if p.ended(now) {
		p.waiting = time.Time{}
	}
	p.changed = now
	return p
}

// ask returns how long a write has to wait; the returned period remembers that one does.
func (p quietPeriod) ask(now time.Time) (quietPeriod, time.Duration) {
	if p.waiting.IsZero() {
		p.waiting = now
	}
	return p, min(p.changed.Add(quietTime).Sub(now), p.waiting.Add(longestQuiet).Sub(now))
}

func (p quietPeriod) ended(now time.Time) bool { return now.Sub(p.changed) >= quietTime }

// Respecified returns a predicate that admits everything, and begins a quiet period of each object whose spec is changed by an update.
func (q *QuietPeriods) Respecified() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			q.End(client.ObjectKeyFromObject(e.Object))
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			if respecified(e.ObjectOld, e.ObjectNew) {
				q.Begin(client.ObjectKeyFromObject(e.ObjectNew))
			}
			return true
		},
	}
}

// Mapped is controller.Mapped, and begins quiet periods as Before does.
func (q *QuietPeriods) Mapped(to func(context.Context, client.Object) ([]reconcile.Request, error)) handler.EventHandler {
	return q.Before(Mapped(to), to)
}

// Before returns a handler that begins a quiet period of each object that to returns if an update changes the spec of the watched object,
// and then calls next.
func (q *QuietPeriods) Before(
	next handler.EventHandler, to func(context.Context, client.Object) ([]reconcile.Request, error),
) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: next.Create, DeleteFunc: next.Delete, GenericFunc: next.Generic,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, pending queue) {
			if respecified(e.ObjectOld, e.ObjectNew) {
				for _, request := range logged(to)(ctx, e.ObjectNew) {
					q.Begin(request.NamespacedName)
				}
			}
			next.Update(ctx, e, pending)
		},
	}
}

// respecified reports whether an update changed the spec of an object, and neither created it again nor deletes it.
func respecified(before, after client.Object) bool {
	return before.GetUID() == after.GetUID() && before.GetGeneration() != after.GetGeneration() && after.GetDeletionTimestamp().IsZero()
}
