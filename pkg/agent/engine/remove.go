package engine

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/removal"
	"github.com/tandem-addons/tandem/pkg/text"
)

// remove deletes the objects of an Instance that is being removed, or its custom resources if an ancestor is, and records what is left, as
// removal.Decide decides. The mirror stays until the hub has received that nothing is left: only the mirror records that the cleanup plan has
// run.
func (p *pass) remove(ctx context.Context, o plan.Observation) result {
	x := p.executionOf(o)
	x.Execution, x.version = removal.ExecutionOf(o)
	seen := removal.Observation{Observation: o, Inventory: x.inventory.entries, Known: map[removal.Fact]bool{}, Masker: p.view.Masker()}
	decision := removal.Decide(seen)
	for ; !decision.IsFinal(); decision = removal.Decide(seen) {
		if decision.Kind == removal.Delete {
			p.deleteNext(ctx, x, &seen, decision)
		} else {
			p.gather(ctx, x, &seen, decision)
		}
	}
	if decision.Kind == removal.Postpone {
		return result{postponed: true, after: pollInterval}
	}
	p.sweeper.forget(x.instance)
	done := result{
		status: decision.Status, judgement: judgement{ready: decision.Ready}, again: decision.Again, unsearched: decision.Unsearched,
	}
	if decision.MayDelay { // most removals end soon, and deleted objects stay in the inventory until that is recorded
		done.postponed = messageInterval.After(o.Now.Sub(decision.Since)).Within(p.budget.TryAccept) > 0
	}
	if decision.Kind == removal.Record {
		done.after = p.removalWait(o, decision.Err)
	}
	return done
}

// deleteNext deletes the objects of a decision.
func (p *pass) deleteNext(ctx context.Context, x *execution, seen *removal.Observation, decision removal.Decision) {
	x.inventory.entries = decision.Inventory
	left, err := p.deleteListed(ctx, x, decision.Entries, beforeDelete)
	seen.Deleted, seen.Inventory, seen.Err = append(seen.Deleted, left), x.inventory.entries, err
	seen.Masker = p.view.Masker()
}

// gather adds the fact that a decision needs to what is observed.
func (p *pass) gather(ctx context.Context, x *execution, seen *removal.Observation, decision removal.Decision) {
	switch decision.Need {
	case removal.FactTree:
		seen.Tree, seen.Err = p.treeBelow(ctx, x)
	case removal.FactRendered:
		rendered := x.outlines()
		seen.Rendered, seen.RenderErr = rendered.objects, rendered.err
	case removal.FactSearch:
		seen.Search, seen.Err = p.sweeper.findOwned(ctx, x.instance, x.owner(), decision.Kinds)
	case removal.FactRemaining:
		seen.Remaining = p.view.MaskObjects(p.probe(ctx, decision.Objects))
	}
	seen.Known[decision.Need] = true
	seen.Masker = p.view.Masker()
}

// emitUnsearched emits an event for a completed removal that could not search all kinds of the cluster.
func (e *engine) emitUnsearched(instance *kudo.Instance, unsearched string) {
	e.events.Eventf(instance, nil, corev1.EventTypeWarning, "SearchIncomplete", "Remove",
		"objects missing from the inventory may remain, because not every kind could be searched: %s", text.Prefix(unsearched, maxNoteBytes))
}

// removalWait returns how long to wait before the remaining objects are checked again. It increases while that fails, because it may
// require a search through all kinds.
func (e *engine) removalWait(o plan.Observation, err error) time.Duration {
	key := string(o.Instance.UID) + "/removal"
	if err == nil {
		e.backoff.DeleteEntry(key)
		return pollInterval
	}
	e.backoff.Next(key, o.Now)
	return e.backoff.Get(key)
}
