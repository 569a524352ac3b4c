package engine

import (
	"context"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// settle prunes objects that the current version no longer applies, and judges the objects in the inventory.
func (e *engine) settle(ctx context.Context, o plan.Observation, surplus []kudo.InventoryEntry) (result, error) {
	x := executionOf(o)
	if _, err := e.prune(ctx, x, surplus); err != nil {
		return result{}, err
	}
	objects := make([]plan.Object, 0, len(x.inventory.entries))
	for _, entry := range x.inventory.entries {
		object, err := e.objects.listed(ctx, entry, e.objects.get)
		if err != nil {
			return result{}, err
		}
		objects = append(objects, object)
	}
	objects, err := e.objects.withClasses(ctx, objects)
	if err != nil {
		return result{}, err
	}
	children, err := e.children(ctx, o)
	if err != nil {
		return result{}, err
	}
	status := *o.Instance.Status.DeepCopy()
	status.Inventory = x.inventory.entries
	return result{status: status, ready: o.Settled(objects, children)}, nil
}
