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

// removalPause is the time between two looks at what is still left of an Instance: not all of it is watched.
const removalPause = time.Second

// remove deletes everything that belongs to the Instance, volume claims last, and waits until it is gone. The mirror stays until the hub
// has heard of that: only it knows that the cleanup plan was carried out.
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
		message = fmt.Sprintf("waiting for %d objects to be gone: %s", len(left), message)
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

// unstarted is what the spec asks for and nobody has started: what stands is left of a removal that was called off.
func unstarted(o plan.Observation) (*kudo.Execution, *kudo.OperatorVersionSpec) {
	unstarted := &kudo.Execution{Parameters: o.Instance.Spec.Parameters}
	return unstarted, o.Desired
}

// deleteOwned deletes what the inventory lists, wave by wave, and volume claims when all else is gone. While a finalizer holds something
// of a wave, the next one stays: whoever has to take that off may be among it. Once nothing is listed any more, it looks for what is
// not: volume claims of StatefulSets, and what an inventory that the hub has restored lacks. What it finds is listed, and deleted in
// the next pass. It returns what is still there.
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

// discover lists what belongs to the Instance and is not listed, but for the volume claims that the package asks to keep. A kind that
// cannot be looked through holds nothing up unless the package has objects of it.
func (e *engine) discover(ctx context.Context, x *execution) ([]plan.Object, error) {
	found, unread, err := e.sweeper.owned(ctx, x.owner())
	if err != nil {
		return nil, err
	}
	rendered, fault := everything(x)
	for _, o := range rendered {
		if err := unread[o.GroupVersionKind()]; err != nil {
			return nil, err
		}
	}
	kept := plan.Retained(rendered, fault)
	found = slices.DeleteFunc(found, func(o plan.Object) bool {
		return plan.IsClaim(o.Live.GroupVersionKind().GroupKind()) && kept(o.Live.GetName())
	})
	for _, o := range found {
		x.inventory.list(plan.Entry(o.Live, ""))
	}
	return found, nil
}

// removalWait is how long until what is left is looked at again: longer each time while that fails, for it may mean to look through
// all kinds.
func (e *engine) removalWait(o plan.Observation, err error) time.Duration {
	key := string(o.Instance.UID) + "/removal"
	if err == nil {
		e.backoff.DeleteEntry(key)
		return removalPause
	}
	e.backoff.Next(key, o.Now)
	return e.backoff.Get(key)
}
