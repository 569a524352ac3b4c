package engine

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/tandem-addons/tandem/pkg/plan"
)

// start records the execution and the objects that it is about to apply before any task runs: after a restart the agent knows the
// execution.
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

// forgetUnapplied removes entries that were listed ahead for the last execution and never applied, or not permitted. A complete execution
// has applied all of its objects. If nothing was executed, the inventory remains from a cancelled removal: objects that it has deleted are
// not missing.
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
