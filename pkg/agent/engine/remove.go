package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// removalPause is the interval of checks for remaining objects of an Instance: not all of them are watched.
const removalPause = time.Second

// remove deletes all objects of the Instance, volume claims last, and waits until they are deleted. The mirror stays until the hub has
// received this report: only the mirror records that the cleanup plan has run.
func (e *engine) remove(ctx context.Context, o plan.Observation) result {
	x := executionOf(o)
	if x.Execution == nil {
		x.Execution, x.version = unstarted(o)
	}
	left, err := e.deleteOwned(ctx, x)
	if err == nil && len(left) == 0 {
		return recorded(o.Removed())
	}
	message := plan.DeleteOutcome(left).Message
	switch {
	case err != nil:
		message = oneLine(err)
	case len(left) > 1:
		message = fmt.Sprintf("waiting for %d objects to be deleted: %s", len(left), message)
	}
	status := *o.Instance.Status.DeepCopy()
	status.Inventory = x.inventory.entries
	return result{
		status: status,
		ready:  plan.Condition(metav1.ConditionFalse, kudo.ReasonRemoving, message),
		again:  len(x.inventory.entries) > len(o.Instance.Status.Inventory),
		after:  e.removalWait(o, err),
	}
}

// unstarted returns the desired execution if nothing was started: existing objects remain from a cancelled removal.
func unstarted(o plan.Observation) (*kudo.Execution, *kudo.OperatorVersionSpec) {
	unstarted := &kudo.Execution{Parameters: o.Instance.Spec.Parameters}
	return unstarted, o.Desired
}

// deleteOwned deletes the objects in the inventory, wave by wave, and volume claims last. While a finalizer blocks an object of a wave, the
// next wave waits, because it may contain the controller that removes the finalizer. Once the inventory is empty, deleteOwned searches for
// unlisted objects: volume claims of StatefulSets, and objects missing from an inventory restored by the hub. It lists the objects found,
// and deletes them in the next pass. It returns the objects that still exist.
func (e *engine) deleteOwned(ctx context.Context, x *execution) ([]plan.Object, error) {
	claims, others := plan.Claims(x.instance.Status.Inventory)
	var left []plan.Object
	for _, wave := range plan.Teardown(others) {
		going, err := e.deleteListed(ctx, x, wave, e.objects.read)
		if left = append(left, going...); err != nil || plan.Held(going) {
			return left, err
		}
	}
	if len(left) > 0 {
		return left, nil
	}
	if len(claims) > 0 {
		kept := plan.Retained(everything(x))
		deletable := slices.DeleteFunc(slices.Clone(claims), func(c kudo.InventoryEntry) bool { return kept(c.Name) })
		x.inventory.forget(claims...)
		x.inventory.list(deletable...)
		if left, err := e.deleteListed(ctx, x, deletable, e.objects.read); err != nil || len(left) > 0 {
			return left, err
		}
	}
	return e.discover(ctx, x)
}

// discover lists the unlisted objects of the Instance, except for volume claims that the package requests to keep. A kind that cannot be
// read blocks nothing unless the package has objects of it.
func (e *engine) discover(ctx context.Context, x *execution) ([]plan.Object, error) {
	found, unread, err := e.sweeper.owned(ctx, x.owner())
	if err != nil {
		return nil, err
	}
	rendered, problem := everything(x)
	for _, o := range rendered {
		if err := unread[o.GroupVersionKind()]; err != nil {
			return nil, err
		}
	}
	kept := plan.Retained(rendered, problem)
	found = slices.DeleteFunc(found, func(o plan.Object) bool {
		return plan.IsClaim(o.Live.GroupVersionKind().GroupKind()) && kept(o.Live.GetName())
	})
	for _, o := range found {
		x.inventory.list(plan.Entry(o.Live, ""))
	}
	return found, nil
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
