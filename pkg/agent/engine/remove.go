package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/release"
	"github.com/tandem-addons/tandem/pkg/core/removal"
	"github.com/tandem-addons/tandem/pkg/text"
)

// remove deletes the objects of an Instance that is being removed, or its custom resources if an ancestor is, and records what is left, as
// removal.Decide decides. The mirror stays until the hub has received that nothing is left: only the mirror records that the cleanup plan has
// run.
func (p *pass) remove(ctx context.Context, o plan.Observation, x *execution) result {
	x.Execution, x.version = removal.ExecutionOf(o)
	x.Execution = p.attemptOf(x, o.Instance.Status.Tasks, removalPrefix(o.Instance), removalKey(o.Instance))
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
	decision.Status.Tasks = x.inventory.records
	changed := !equality.Semantic.DeepEqual(x.inventory.records, o.Instance.Status.Tasks)
	decision.Again, decision.MayDelay = decision.Again || changed, decision.MayDelay && !changed
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
	case removal.FactBefore:
		seen.BeforeWait, seen.Err = p.removalHooks(ctx, x, release.PreDelete)
	case removal.FactAfter:
		seen.AfterWait, seen.Err = p.removalHooks(ctx, x, release.PostDelete)
	case removal.FactSearch:
		seen.Search, seen.Err = p.sweeper.findOwned(ctx, x.instance, x.owner(), decision.Kinds)
	case removal.FactRemaining:
		seen.Remaining = p.view.MaskObjects(p.probe(ctx, decision.Objects))
	}
	seen.Known[decision.Need], seen.Inventory = true, x.inventory.entries
	seen.Masker = p.view.Masker()
}

// attemptOf returns the execution with a uid for the hooks of the removal of charts, which is prefix and the number of the attempt: another one each
// time after one has failed. The delays between them are those of key in the recent failures.
func (p *pass) attemptOf(x *execution, records []kudo.TaskRecord, prefix, key string) *kudo.Execution {
	removing, attempt := *x.Execution, 0
	for _, record := range records {
		last, of := strings.CutPrefix(string(record.HooksOf), prefix)
		if !of {
			continue
		}
		tried, _ := strconv.Atoi(last) // an invalid number counts as none
		if release.HasFailed(record) && !p.backoff.IsInBackOffSinceUpdate(key, p.clock()) {
			tried++
		}
		attempt = max(attempt, tried)
	}
	removing.UID = types.UID(prefix + strconv.Itoa(attempt))
	return &removing
}

// removalHooks runs the hooks of an event of the removal for all charts of an Instance, and returns what they wait for. They are skipped if the
// cleanup plan is, in a namespace that is being deleted, and if what the chart has rendered is lost. After the last hooks, nothing is recorded of the
// charts.
func (p *pass) removalHooks(ctx context.Context, x *execution, event release.Event) (waiting string, err error) {
	skips, err := p.skipsHooks(ctx, x)
	if err != nil {
		return "", err
	}
	for _, record := range x.instance.Status.Tasks {
		if outcome := p.removalHooksOf(ctx, x, record, event, skips); outcome.Status != kudo.Complete {
			failed := outcome.Status == kudo.FatalError || outcome.Status == kudo.Error
			if failed {
				return "", errors.New(outcome.Message)
			}
			return outcome.Message, nil
		}
		if event == release.PostDelete {
			x.inventory.drop(record.Task)
		}
	}
	return "", nil
}

// removalHooksOf runs the hooks of an event for one chart.
func (p *pass) removalHooksOf(ctx context.Context, x *execution, record kudo.TaskRecord, event release.Event, skips bool) plan.Outcome {
	if skips || record.Digest == "" || x.version == nil {
		return plan.Outcome{Status: kudo.Complete}
	}
	task := kudo.Task{Name: record.Task, Kind: kudo.TaskHelm}
	if i := slices.IndexFunc(x.version.Tasks, func(t kudo.Task) bool { return t.Name == record.Task }); i >= 0 {
		task = x.version.Tasks[i]
	}
	return p.deletionHooks(ctx, x, plan.Placed{Task: task}, record, event)
}

// skipsHooks reports whether the removal of an Instance runs no hooks.
func (p *pass) skipsHooks(ctx context.Context, x *execution) (bool, error) {
	if x.instance.SkipsCleanup() {
		return true, nil
	}
	namespace := &corev1.Namespace{}
	err := p.live.Get(ctx, types.NamespacedName{Name: x.instance.Namespace}, namespace)
	return err == nil && namespace.DeletionTimestamp != nil, err
}

// emitUnsearched emits an event for a completed removal that could not search all kinds of the cluster.
func (e *engine) emitUnsearched(instance *kudo.Instance, unsearched string) {
	e.events.Eventf(instance, nil, corev1.EventTypeWarning, "SearchIncomplete", "Remove",
		"objects missing from the inventory may remain, because not every kind could be searched: %s", text.Prefix(unsearched, maxNoteBytes))
}

// removalWait returns how long to wait before the remaining objects are checked again. It increases while that fails, because it may
// require a search through all kinds.
func (e *engine) removalWait(o plan.Observation, err error) time.Duration {
	key := removalKey(o.Instance)
	hooked := func(r kudo.TaskRecord) bool {
		return len(r.Hooks) > 0 && strings.HasPrefix(string(r.HooksOf), removalPrefix(o.Instance))
	}
	switch {
	case err == nil && slices.ContainsFunc(o.Instance.Status.Tasks, hooked): // perhaps for another time
		return pollInterval
	case err == nil:
		e.backoff.DeleteEntry(key)
		return pollInterval
	}
	return e.failAgain(key, o.Now)
}

// removalPrefix begins the uids of the executions in which hooks of charts run during a removal.
func removalPrefix(instance *kudo.Instance) string { return string(instance.UID) + "-removal-" }

// removalKey returns the key of the removal in the recent failures.
func removalKey(instance *kudo.Instance) string { return string(instance.UID) + "/removal" }
