package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

// removalPause is the interval of checks for remaining objects of an Instance: not all of them are watched.
const removalPause = time.Second

// remove deletes all objects of the Instance, volume claims last, and waits until they are deleted. The mirror stays until the hub has
// received this report: only the mirror records that the cleanup plan has run.
func (e *engine) remove(ctx context.Context, o plan.Observation) result {
	x := e.executionOf(o)
	if x.Execution == nil {
		x.Execution, x.version = unstarted(o)
	}
	e.beginnings.end(o.Instance.UID, x.UID)
	left, reads, err := e.deleteOwned(ctx, x)
	if errors.Is(err, errSearching) {
		return result{postponed: true, after: removalPause}
	}
	e.sweeper.forget(x.instance)
	if err == nil && len(left) == 0 {
		removed := recorded(o.Removed())
		removed.unsearched = reads.Unread()
		return removed
	}
	message := plan.DeleteOutcome(e.view.Shown(e.probe(ctx, left))).Message
	switch {
	case err != nil:
		message = oneLine(e.view.Masker().Text(err.Error()))
	case len(left) > 1:
		message = fmt.Sprintf("waiting for %d objects to be deleted: %s", len(left), message)
	}
	status := *o.Instance.Status.DeepCopy()
	status.Inventory = x.inventory.entries
	found := plan.Adds(o.Instance.Status.Inventory, x.inventory.entries) // they are deleted once that is recorded
	return result{
		status:    status,
		judgement: judgement{ready: plan.Condition(metav1.ConditionFalse, kudo.ReasonRemoving, message)},
		again:     found,
		after:     e.removalWait(o, err),
		postponed: err == nil && !found && e.isUnhurried(o),
	}
}

// isUnhurried reports whether the progress of a removal need not be recorded yet: most removals end soon. Deleted objects stay in the
// inventory until it is recorded.
func (e *engine) isUnhurried(o plan.Observation) bool {
	began, err := time.Parse(time.RFC3339, o.Instance.Annotations[kudo.AnnotationHubDeleted])
	if err != nil {
		return false
	}
	age := o.Now.Sub(began).Abs()
	return age < leastTalk || age < longestSilence && !e.drafts.budget.TryAccept()
}

// unstarted returns the desired execution if nothing was started: existing objects remain from a cancelled removal.
func unstarted(o plan.Observation) (*kudo.Execution, *kudo.OperatorVersionSpec) {
	unstarted := &kudo.Execution{Parameters: o.Instance.Spec.Parameters}
	return unstarted, o.Desired
}

// deleteOwned deletes the objects in the inventory, wave by wave, and volume claims last. While a finalizer blocks an object of a wave, the
// next wave waits, because it may contain the controller that removes the finalizer. Once the inventory is empty, deleteOwned searches for
// unlisted objects: volume claims of StatefulSets, and objects missing from an inventory restored from the hub. It lists the objects found,
// and deletes them in the next pass. It returns the objects that still exist; if there are none, reads are the kinds it has searched.
func (e *engine) deleteOwned(ctx context.Context, x *execution) (left []plan.Object, reads plan.Reads, err error) {
	claims, others := plan.Claims(x.instance.Status.Inventory)
	for _, wave := range plan.Teardown(others) {
		going, err := e.deleteListed(ctx, x, wave, e.objects.known)
		if left = append(left, going...); err != nil || plan.Held(going) {
			return left, reads, err
		}
	}
	if len(left) > 0 {
		return left, reads, nil
	}
	if len(claims) > 0 {
		deletable := plan.WithoutRetained(claims, plan.Retained(everything(x)))
		x.inventory.forget(claims...)
		x.inventory.list(deletable...)
		if left, err := e.deleteListed(ctx, x, deletable, e.objects.known); err != nil || len(left) > 0 {
			return left, reads, err
		}
	}
	return e.discover(ctx, x)
}

// discover lists the unlisted objects of the Instance, except for volume claims that the package requests to keep. It fails if a kind that
// plan.Reads.Required names could not be searched; the objects that it did find are listed all the same.
func (e *engine) discover(ctx context.Context, x *execution) ([]plan.Object, plan.Reads, error) {
	var (
		render   = sync.OnceValues(func() ([]*unstructured.Unstructured, error) { return everything(x) })
		kept     = sync.OnceValue(func() func(string) bool { return plan.Retained(render()) })
		rendered []*unstructured.Unstructured
		problem  error
	)
	if !untouched(x.instance) {
		rendered, problem = render()
	}
	found, reads, err := e.sweeper.owned(ctx, x.instance, x.owner(), kindsToSearch(x.instance, rendered, problem))
	if err != nil {
		return nil, reads, err
	}
	found = slices.DeleteFunc(found, func(o plan.Object) bool {
		return plan.IsClaim(o.Live.GroupVersionKind().GroupKind()) && kept()(o.Live.GetName())
	})
	for _, o := range found {
		x.inventory.list(plan.Entry(o.Live, ""))
	}
	x.inventory.list(reads.Unsearched(x.instance.Status.Inventory)...) // their kinds must be readable in the next pass, too
	return found, reads, reads.Required(x.instance.Status.Inventory, rendered)
}

// untouched reports whether the Instance has never had objects: no execution was recorded, which happens before anything is applied. Such an
// Instance is removed without being rendered, because it may be the rendering that has kept it from starting.
func untouched(instance *kudo.Instance) bool {
	return instance.Status.Execution == nil && len(instance.Status.Inventory) == 0 && instance.Annotations[kudo.AnnotationInventoryRestored] == ""
}

// kindsToSearch returns the kinds of which unlisted objects may exist; nil means all kinds. The inventory lists every object that the Instance
// has applied, unless it was restored from the hub: then only the search through all kinds finds the rest.
func kindsToSearch(instance *kudo.Instance, rendered []*unstructured.Unstructured, unrenderable error) []schema.GroupKind {
	if unrenderable != nil || instance.Annotations[kudo.AnnotationInventoryRestored] != "" {
		return nil
	}
	return plan.RequiredKinds(instance.Status.Inventory, rendered)
}

// tellUnsearched emits an event for a completed removal that could not search all kinds of the cluster.
func (e *engine) tellUnsearched(instance *kudo.Instance, unsearched string) {
	e.events.Eventf(instance, nil, corev1.EventTypeWarning, "SearchIncomplete", "Remove",
		"objects missing from the inventory may remain, because not every kind could be searched: %s", text.Prefix(unsearched, mostNote))
}

// removalWait returns how long to wait before the remaining objects are checked again. It increases while that fails, because it may
// require a search through all kinds.
func (e *engine) removalWait(o plan.Observation, err error) time.Duration {
	key := string(o.Instance.UID) + "/removal"
	if err == nil {
		e.backoff.DeleteEntry(key)
		return removalPause
	}
	e.backoff.Next(key, o.Now)
	return e.backoff.Get(key)
}
