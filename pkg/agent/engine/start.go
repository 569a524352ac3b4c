package engine

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/tandem-addons/tandem/pkg/plan"
)

// start records the execution before anything of it is done, with what it is about to apply: after a restart the agent knows what runs.
func (e *engine) start(ctx context.Context, o plan.Observation, choice plan.Choice) (result, error) {
	status := plan.Start(o.Instance.Status, choice, uuid.NewUUID(), o.Now)
	x := executionOf(o)
	x.Execution, x.version = status.Execution, choice.Version
	if err := e.forgetUnapplied(ctx, x, o); err != nil {
		return result{}, err
	}
	started := status.PlanStatus[x.Plan]
	e.listAhead(x, started)
	status.Inventory = x.inventory.entries
	return result{status: status, ready: plan.Running(started), again: true}, nil
}

// forgetUnapplied strikes off what was listed ahead for the last execution, which did not come to apply it or had not the right
// to. An execution that is complete has applied everything. Where nothing was executed, the inventory is what a removal has left
// that was called off: what that has deleted, nobody misses.
func (e *engine) forgetUnapplied(ctx context.Context, x *execution, last plan.Observation) error {
	doubtful, started := slices.Clone(x.inventory.entries), last.Instance.Status.Execution
	switch {
	case started != nil && last.Running == nil:
		return nil
	case started != nil:
		doubtful = plan.Unfinished(doubtful, last.Running.Plans[started.Plan], last.Instance.Status.PlanStatus[started.Plan])
	}
	for _, entry := range doubtful {
		object, err := e.objects.listed(ctx, entry, e.objects.read)
		if err != nil {
			return err
		}
		if object.Live == nil || !x.owner().Owns(object.Live) || started == nil && object.Live.GetDeletionTimestamp() != nil {
			x.inventory.forget(entry)
		}
	}
	return nil
}
