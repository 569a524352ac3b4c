package engine

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
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
	rendered, unrenderable := e.rendered(x)
	if choice.Restart {
		x.inventory.entries = plan.MarkRestart(x.inventory.entries, rendered, unrenderable, x.UID)
	}
	if err := plan.Fits(plan.List(x.inventory.entries, rendered...), x.Parameters); err != nil && !o.Instance.Removing() {
		status.Inventory = x.inventory.entries // with the required restarts
		return e.refuse(ctx, o, choice, status, err), nil
	}
	started := status.PlanStatus[x.Plan]
	e.listAhead(x, started)
	status.Inventory = x.inventory.entries
	ready, err := e.readyBeside(ctx, o, status)
	return result{status: status, ready: ready, again: true}, err
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

// rendered lists the objects of the plans that the execution affects, with the tasks whose objects cannot be rendered or whose kinds cannot
// be discovered: a task reports that when it runs.
func (e *engine) rendered(x *execution) ([]kudo.InventoryEntry, map[string]bool) {
	var entries []kudo.InventoryEntry
	affected, unrenderable := plan.Affected(x.Execution), map[string]bool{}
	for _, placed := range plan.Everywhere(x.version) {
		if !affected[placed.Plan] {
			continue
		}
		action, wants, err := x.asks(placed)
		if !action.Makes() {
			continue
		}
		if err == nil {
			wants, _, err = e.objects.placeAll(x.instance, wants)
		}
		if err != nil {
			unrenderable[placed.Task.Name] = true
			continue
		}
		entries = plan.Track(entries, placed.Task.Name, x.aside(), wants)
	}
	return entries, unrenderable
}

// refuse ends an execution before it applies anything: the Instance could not be stored with its objects. If it cannot even be stored with
// its parameters, nothing starts.
func (e *engine) refuse(ctx context.Context, o plan.Observation, choice plan.Choice, started kudo.InstanceStatus, problem error) result {
	if tooLarge := plan.Fits(started.Inventory, started.Execution.Parameters); tooLarge != nil {
		return result{
			status: *o.Instance.Status.DeepCopy(),
			ready:  plan.Condition(metav1.ConditionFalse, kudo.ReasonPlanFailed, tooLarge.Error()),
		}
	}
	o.Running = choice.Version
	return e.end(ctx, o, plan.Refused(choice.Version, started, problem.Error(), o.Now))
}
