package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

// remove deletes all objects of the Instance, volume claims last, and waits until they are deleted. The mirror stays until the hub has
// received this report: only the mirror records that the cleanup plan has run.
func (p *pass) remove(ctx context.Context, o plan.Observation) result {
	x := p.executionOf(o)
	if x.Execution == nil {
		x.Execution, x.version = desiredExecution(o)
	}
	left, err := p.deleteOwned(ctx, x)
	if errors.Is(err, errSearching) {
		return result{postponed: true, after: pollInterval}
	}
	p.sweeper.forget(x.instance)
	if err == nil && left.isNothing() {
		removed := resultOf(o.FinishRemoval())
		removed.unsearched = left.reads.Unread()
		return removed
	}
	found := plan.Adds(o.Instance.Status.Inventory, x.inventory.entries) // they are deleted once that is recorded
	began, _ := time.Parse(time.RFC3339, o.Instance.Annotations[kudo.AnnotationHubDeleted])
	removing := p.removing(ctx, o, x, left, err)
	removing.again, removing.postponed = found, err == nil && !found && p.isPaced(o.Now, began)
	return removing
}

// depart deletes the custom resources of an Instance, and their definitions, because an ancestor is being removed, or records that it waits. What
// it waits for needs no record if the removal has just started.
func (p *pass) depart(ctx context.Context, o plan.Observation, action plan.Action) result {
	if action.Kind == plan.ActionHold {
		held := resultOf(action)
		held.after, held.postponed = pollInterval, p.isPaced(o.Now, o.Departure.Since)
		return held
	}
	x := p.executionOf(o)
	if x.Execution == nil {
		x.Execution, x.version = desiredExecution(o)
	}
	custom, _ := plan.Teardown(x.instance.Status.Inventory, o.Departure.Groups)
	objects, _, err := p.deleteWaves(ctx, x, custom)
	left := remains{objects: objects}
	if len(objects) == 0 {
		left.wait = o.Departure.WaitText()
	}
	departing := p.removing(ctx, o, x, left, err)
	departing.again = err == nil && len(objects) == 0
	return departing
}

// remains is what is left of an Instance during its removal.
type remains struct {
	objects []plan.Object

	// wait describes a descendant that is waited for; empty if there is none.
	wait string

	// reads are the kinds that were searched, if nothing is left.
	reads plan.Reads
}

func (r remains) isNothing() bool { return len(r.objects) == 0 && r.wait == "" }

// removing returns the result of a pass that has deleted objects, of which some are left, or that has failed.
func (p *pass) removing(ctx context.Context, o plan.Observation, x *execution, left remains, err error) result {
	message := plan.DeleteOutcome(p.view.MaskObjects(p.probe(ctx, left.objects))).Message
	switch {
	case err != nil:
		message = oneLine(p.view.Masker().Text(err.Error()))
	case len(left.objects) > 1:
		message = fmt.Sprintf("waiting for %d objects to be deleted: %s", len(left.objects), message)
	}
	if err == nil && left.wait != "" {
		message = strings.TrimPrefix(message+"; "+left.wait, "; ")
	}
	status := *o.Instance.Status.DeepCopy()
	status.Inventory = x.inventory.entries
	return result{
		status:    status,
		judgement: judgement{ready: plan.Condition(metav1.ConditionFalse, kudo.ReasonRemoving, message)},
		after:     p.removalWait(o, err),
	}
}

// isPaced reports whether the progress of a removal need not be recorded yet: most removals end soon. Deleted objects stay in the
// inventory until it is recorded.
func (e *engine) isPaced(now, began time.Time) bool {
	return messageInterval.After(now.Sub(began)).Within(e.budget.TryAccept) > 0
}

// desiredExecution returns the desired execution if nothing was started: existing objects remain from a cancelled removal.
func desiredExecution(o plan.Observation) (*kudo.Execution, *kudo.OperatorVersionSpec) {
	unstarted := &kudo.Execution{Parameters: o.Instance.Spec.Parameters}
	return unstarted, o.Desired
}

// deleteOwned deletes the objects in the inventory, wave by wave, and volume claims last. Before the first object that is no custom resource, it
// waits until the descendants have none either, because any Instance of the tree may have their controller. Once the inventory is empty,
// deleteOwned searches for unlisted objects: volume claims of StatefulSets, and objects missing from an inventory restored from the hub. It
// lists the objects found, and deletes them in the next pass. It returns what is left.
func (p *pass) deleteOwned(ctx context.Context, x *execution) (left remains, err error) {
	tree, err := p.treeBelow(ctx, x)
	if left.wait = tree.CleanupWaitText(); err != nil || left.wait != "" {
		return left, err
	}
	claims, others := plan.Claims(x.instance.Status.Inventory)
	custom, rest := plan.Teardown(others, tree.Groups())
	objects, held, err := p.deleteWaves(ctx, x, custom)
	left.objects = objects
	if left.wait = tree.WithdrawalWaitText(); err != nil || held || left.wait != "" {
		return left, err
	}
	objects, held, err = p.deleteWaves(ctx, x, rest)
	if left.objects = append(left.objects, objects...); err != nil || held || len(left.objects) > 0 {
		return left, err
	}
	if left.objects, err = p.deleteClaims(ctx, x, claims); err != nil || len(left.objects) > 0 {
		return left, err
	}
	left.objects, left.reads, err = p.discover(ctx, x)
	return left, err
}

// deleteClaims deletes volume claims except for those that the package requests to keep, and returns those that still exist.
func (p *pass) deleteClaims(ctx context.Context, x *execution, claims []kudo.InventoryEntry) ([]plan.Object, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	deletable := plan.WithoutRetained(claims, x.retainedClaims())
	x.inventory.forget(claims...)
	x.inventory.list(deletable...)
	return p.deleteListed(ctx, x, deletable, beforeDelete)
}

// retainedClaims returns which volume claims, by name, the package requests to keep.
func (x *execution) retainedClaims() func(string) bool {
	rendered := x.outlines()
	return plan.RetainedClaims(rendered.objects, rendered.err)
}

// deleteWaves deletes the objects of waves, and returns those that still exist. While a finalizer blocks an object of a wave, the next wave waits,
// because it may contain the controller that removes the finalizer: then held is true.
func (p *pass) deleteWaves(
	ctx context.Context, x *execution, waves [][]kudo.InventoryEntry,
) (left []plan.Object, held bool, err error) {
	for _, wave := range waves {
		going, err := p.deleteListed(ctx, x, wave, beforeDelete)
		if left = append(left, going...); err != nil || plan.HasHeldObject(going) {
			return left, true, err
		}
	}
	return left, false, nil
}

// discover lists the unlisted objects of the Instance, except for volume claims that the package requests to keep. It fails if a kind that
// plan.Reads.CheckRequired names could not be searched; the objects that it did find are listed all the same.
func (p *pass) discover(ctx context.Context, x *execution) ([]plan.Object, plan.Reads, error) {
	var rendered outlines
	if !isUntouched(x.instance) {
		rendered = x.outlines()
	}
	found, reads, err := p.sweeper.findOwned(ctx, x.instance, x.owner(), kindsToSearch(x.instance, rendered))
	if err != nil {
		return nil, reads, err
	}
	found = slices.DeleteFunc(found, func(o plan.Object) bool {
		return plan.IsClaim(o.Live.GroupVersionKind().GroupKind()) && x.retainedClaims()(o.Live.GetName())
	})
	for _, o := range found {
		x.inventory.list(plan.Entry(o.Live, ""))
	}
	x.inventory.list(reads.UnsearchedEntries(x.instance.Status.Inventory)...) // their kinds must be readable in the next pass, too
	return found, reads, reads.CheckRequired(x.instance.Status.Inventory, rendered.objects)
}

// isUntouched reports whether the Instance has never had objects: no execution was recorded, which happens before anything is applied. Such
// an Instance is removed without being rendered, because it may be the rendering that has kept it from starting.
func isUntouched(instance *kudo.Instance) bool {
	return instance.Status.Execution == nil && len(instance.Status.Inventory) == 0 && instance.Annotations[kudo.AnnotationInventoryRestored] == ""
}

// kindsToSearch returns the kinds of which unlisted objects may exist; nil means all kinds. The inventory lists every object that the Instance
// has applied, unless it was restored from the hub: then only the search through all kinds finds the rest.
func kindsToSearch(instance *kudo.Instance, rendered outlines) []schema.GroupKind {
	if rendered.err != nil || instance.Annotations[kudo.AnnotationInventoryRestored] != "" {
		return nil
	}
	return plan.RequiredKinds(instance.Status.Inventory, rendered.objects)
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
