package engine

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// listAhead lists what the tasks apply whose turn has come and that have not begun, so that the commit of this pass names every
// object before there is one. It reports whether there was anything that was not listed yet. What is wrong with a task is said when
// it is carried out.
func (e *engine) listAhead(x *execution, status kudo.PlanStatus) bool {
	before := len(x.inventory.entries)
	for _, at := range plan.Upcoming(x.version.Plans[x.Plan], status) {
		placed, found := plan.Find(x.version, x.Plan, at)
		if !found {
			continue
		}
		action, wants, err := x.asks(placed)
		if err != nil || !action.Makes() {
			continue
		}
		if wants, _, err = e.objects.placeAll(x.instance, wants); err != nil {
			continue
		}
		if tracked := plan.Track(x.inventory.entries, placed.Task.Name, wants); len(tracked) <= plan.MostObjects {
			x.inventory.entries = tracked
		}
	}
	return len(x.inventory.entries) > before
}

// postpone puts off a task until a commit has listed what it applies: its kind was not known before. It is final where no commit
// could, because there is no room or because every rendering gives the objects other names.
func (x *execution) postpone(placed plan.Placed, wants []*unstructured.Unstructured) plan.Outcome {
	if more := len(plan.Unlisted(x.instance.Status.Inventory, wants)) + len(x.instance.Status.Inventory); more > plan.MostObjects {
		return fatal(fmt.Errorf("an Instance can have %d objects at most, and this would make it %d", plan.MostObjects, more))
	}
	_, again, err := x.asks(placed)
	if err != nil {
		return fatal(err)
	}
	for _, want := range wants {
		same := func(o *unstructured.Unstructured) bool {
			return o.GetKind() == want.GetKind() && o.GetName() == want.GetName()
		}
		if !slices.ContainsFunc(again, same) {
			return fatal(fmt.Errorf("%s: its name is another one whenever it is rendered", plan.Describe(want)))
		}
	}
	return plan.Outcome{Status: kudo.Pending}
}

// prune deletes what its task does not apply any more and returns what of it is still there. What the version applies elsewhere
// stays, and is that task's from here on. As long as a template that cannot be rendered may hide that, nothing is deleted.
func (e *engine) prune(ctx context.Context, x *execution, surplus []kudo.InventoryEntry) ([]plan.Object, error) {
	if len(surplus) == 0 {
		return nil, nil
	}
	applied, certain, err := e.applied(x)
	if err != nil || !certain {
		return nil, err
	}
	inherited, surplus := plan.Inherit(surplus, applied)
	x.inventory.list(inherited...)
	return e.deleteListed(ctx, x, surplus, e.objects.observe)
}

// applied lists what the version applies with the parameters in force, at every place of its plans. It is certain if all of that
// could be rendered.
func (e *engine) applied(x *execution) (entries []kudo.InventoryEntry, certain bool, err error) {
	for _, placed := range plan.Everywhere(x.version) {
		action, wants, err := x.asks(placed)
		if !action.Makes() {
			continue
		}
		if err != nil {
			return nil, false, nil
		}
		if wants, _, err = e.objects.placeAll(x.instance, wants); err != nil {
			return nil, false, err
		}
		entries = plan.Track(entries, placed.Task.Name, wants)
	}
	return entries, true, nil
}

// deleteListed deletes what entries name, as read finds it, and returns what is still there. What is gone, or is somebody else's by
// now, is struck off.
func (e *engine) deleteListed(
	ctx context.Context, x *execution, entries []kudo.InventoryEntry, read reader,
) (left []plan.Object, err error) {
	for _, entry := range entries {
		object, err := e.objects.listed(ctx, entry, read)
		if err != nil {
			return nil, err
		}
		if object.Live != nil && x.owner().Owns(object.Live) {
			if object, err = e.delete(ctx, object); err != nil {
				return nil, err
			}
		}
		if object.Live == nil || !x.owner().Owns(object.Live) {
			x.inventory.forget(entry)
			continue
		}
		left = append(left, object)
	}
	return left, nil
}
