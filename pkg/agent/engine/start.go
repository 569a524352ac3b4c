package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/text"
)

// start records the execution and all objects that it is going to apply before any task runs: after a restart the agent knows the
// execution.
func (e *engine) start(ctx context.Context, o plan.Observation, choice plan.Choice) (result, error) {
	status := plan.Start(o.Instance.Status, choice, uuid.NewUUID(), o.Now)
	x := e.executionOf(o)
	x.Execution, x.version, x.omissions = status.Execution, choice.Version, &[]render.Omission{}
	own, owed, unrenderable, distorted := e.planEntries(x)
	if distorted == nil {
		distorted = x.checkCleanup()
	}
	rendered := slices.Concat(owed, own)
	if err := e.forgetUnapplied(ctx, x, rendered, o.Instance.Status.Execution != nil); err != nil {
		return result{}, err
	}
	if err := e.guard(ctx, x, o.Instance.Status); err != nil {
		return result{}, err
	}
	if choice.Restart {
		x.inventory.entries = plan.MarkRestart(x.inventory.entries, rendered, unrenderable, x.UID)
	}
	if err := e.keepValues(ctx, o, x.Execution); err != nil {
		return result{}, err
	}
	tooLarge := plan.CheckSize(plan.List(x.inventory.entries, rendered...), x.Parameters)
	if tooLarge != nil && o.IsLeaving() {
		tooLarge = nil
	}
	if problem := cmp.Or(tooLarge, distorted, e.forbids(own)); problem != nil {
		status.Inventory = x.inventory.entries // with the required restarts
		return e.refuse(ctx, o, choice, status, problem), nil
	}
	x.inventory.list(own...)
	status.Inventory = x.inventory.entries
	judged, err := e.judgeDuringPlan(ctx, o, x, status)
	return result{status: status, judgement: judged, again: true, omitted: describe(*x.omissions)}, err
}

// describe lists fields that are not applied; each once, although several steps may apply it.
func describe(omissions []render.Omission) string {
	const shown = 5
	var fields []string
	seen := map[render.Omission]bool{}
	for _, o := range omissions {
		if !seen[o] {
			fields = append(fields, fmt.Sprintf("%s (%s)", o, o.Reason))
		}
		seen[o] = true
	}
	return strings.Join(text.Limit(fields, shown, "more"), "; ")
}

// emitOmitted emits an event for the start of a plan with fields that are not applied.
func (e *engine) emitOmitted(instance *kudo.Instance, omitted string) {
	e.events.Eventf(instance, nil, corev1.EventTypeWarning, "FieldsOmitted", "Start",
		"fields of the package's templates are not applied: %s", text.Prefix(omitted, maxNoteBytes))
}

// keepValues copies the sensitive values of an execution before it is recorded, beside those of the last one.
func (e *engine) keepValues(ctx context.Context, o plan.Observation, started *kudo.Execution) error {
	if len(e.view.Values) == 0 {
		return nil
	}
	used := e.view.Values.Only(started.ParametersFrom)
	if last := o.Instance.Status.Execution; last != nil {
		used = used.With(e.view.Values.Only(last.ParametersFrom))
	}
	return e.secrets.Keep(ctx, o.Instance, used)
}

// forgetUnapplied removes entries that were listed for earlier executions and never applied, unless this one renders them too. If nothing
// was executed before, the inventory remains from a cancelled removal: objects that it has deleted are not missing.
func (e *engine) forgetUnapplied(ctx context.Context, x *execution, rendered []kudo.InventoryEntry, executed bool) error {
	doubtful := plan.PendingExcept(x.inventory.entries, rendered)
	if !executed {
		doubtful = slices.Clone(x.inventory.entries)
	}
	for _, entry := range doubtful {
		object, err := e.objects.readEntry(ctx, entry, e.objects.readLive)
		if err != nil {
			return err
		}
		if object.Live == nil || !x.owner().Owns(object.Live) || !executed && object.Live.GetDeletionTimestamp() != nil {
			x.inventory.forget(entry)
		}
	}
	return nil
}

// planEntries lists the objects of the execution's plan, those of the other plans that it affects, and the tasks whose objects cannot be
// rendered or whose kinds cannot be discovered: a task reports that when it runs. distorted is the first task of the plan in which a value
// changes the structure of a template: then no task runs.
func (e *engine) planEntries(x *execution) (own, owed []kudo.InventoryEntry, unrenderable map[string]bool, distorted error) {
	affected := plan.AffectedPlans(x.Execution)
	unrenderable = map[string]bool{}
	for _, placed := range plan.Everywhere(x.version) {
		if !affected[placed.Plan] {
			continue
		}
		if len(own)+len(owed) > plan.MaxObjects { // refused in any case
			break
		}
		action, wants, err := x.asks(placed)
		if distorted == nil && placed.Plan == x.Plan {
			distorted = x.checkStructure(placed, action, err)
		}
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
		if placed.Plan == x.Plan {
			own = plan.Track(own, placed.Task.Name, x.isAside(), wants)
		} else {
			owed = plan.Track(owed, placed.Task.Name, x.isAside(), wants)
		}
	}
	return own, owed, unrenderable, distorted
}

// refuse ends an execution before it applies anything, such as one with whose objects the Instance could not be stored. If it cannot even be
// stored with its parameters, nothing starts.
func (e *engine) refuse(ctx context.Context, o plan.Observation, choice plan.Choice, started kudo.InstanceStatus, problem error) result {
	if tooLarge := plan.CheckSize(started.Inventory, started.Execution.Parameters); tooLarge != nil {
		return result{
			status:    *o.Instance.Status.DeepCopy(),
			judgement: judgement{ready: plan.Condition(metav1.ConditionFalse, kudo.ReasonPlanFailed, tooLarge.Error())},
		}
	}
	o.Running = choice.Version
	return e.end(ctx, o, plan.FailExecution(choice.Version, started, problem.Error(), o.Now), nil)
}
