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

// Pace delays writes to the status of objects whose spec or configuration has just changed. Changes are learned from events and kept in
// memory, so a restart delays nothing. It is safe for concurrent use.
type Pace struct {
	clock func() time.Time

	mutex  sync.Mutex
	delays map[types.NamespacedName]writeDelay
	swept  time.Time
}

// NewPace returns a Pace without delays.
func NewPace(clock func() time.Time) *Pace {
	return &Pace{clock: clock, delays: map[types.NamespacedName]writeDelay{}}
}

// Delay records a change of an object's spec or configuration.
func (p *Pace) Delay(key types.NamespacedName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.clock()
	p.sweep(now)
	p.delays[key] = p.delays[key].begin(now)
}

// Reset ends the write delay of an object that was created: its first status is never delayed.
func (p *Pace) Reset(key types.NamespacedName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.delays, key)
}

// Allow returns nil if the status of an object may be written, else a PostponedError.
func (p *Pace) Allow(key types.NamespacedName) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delay, known := p.delays[key]
	if !known {
		return nil
	}
	delay, left := delay.ask(p.clock())
	if left <= 0 {
		delete(p.delays, key)
		return nil
	}
	p.delays[key] = delay
	return &PostponedError{For: left}
}

// sweep drops the ended delays of objects that needed no write, so that the map does not grow with every object that ever changed.
func (p *Pace) sweep(now time.Time) {
	if now.Sub(p.swept) < maxWriteDelay {
		return
	}
	p.swept = now
	for key, delay := range p.delays {
		if delay.isOver(now) {
			delete(p.delays, key)
		}
	}
}

// writeDelay is the delay after one or more changes.
type writeDelay struct {
	changed time.Time // the last change
	waiting time.Time // the first delayed write; zero if there is none
}

// begin returns the delay after a change.
func (d writeDelay) begin(now time.Time) writeDelay {
	if d.isOver(now) {
		d.waiting = time.Time{}
	}
	d.changed = now
	return d
}

// ask returns how long a write has to wait; the returned delay remembers that one does.
func (d writeDelay) ask(now time.Time) (writeDelay, time.Duration) {
	if d.waiting.IsZero() {
		d.waiting = now
	}
	return d, min(d.changed.Add(minWriteDelay).Sub(now), d.waiting.Add(maxWriteDelay).Sub(now))
}

func (d writeDelay) isOver(now time.Time) bool { return now.Sub(d.changed) >= minWriteDelay }

// OnSpecChange returns a predicate that admits everything, and delays writes to each object whose spec is changed by an update.
func (p *Pace) OnSpecChange() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			p.Reset(client.ObjectKeyFromObject(e.Object))
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			if isSpecChange(e.ObjectOld, e.ObjectNew) {
				p.Delay(client.ObjectKeyFromObject(e.ObjectNew))
			}
			return true
		},
	}
}

// EnqueueFrom is controller.EnqueueFrom, and delays writes as Before does.
func (p *Pace) EnqueueFrom(to func(context.Context, client.Object) ([]reconcile.Request, error)) handler.EventHandler {
	return p.Before(EnqueueFrom(to), to)
}

// Before returns a handler that delays writes to each object that to returns if an update changes the spec of the watched object,
// and then calls next.
func (p *Pace) Before(
	next handler.EventHandler, to func(context.Context, client.Object) ([]reconcile.Request, error),
) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: next.Create, DeleteFunc: next.Delete, GenericFunc: next.Generic,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, pending queue) {
			if isSpecChange(e.ObjectOld, e.ObjectNew) {
				for _, request := range toMapFunc(to)(ctx, e.ObjectNew) {
					p.Delay(request.NamespacedName)
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
