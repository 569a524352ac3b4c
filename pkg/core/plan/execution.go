package plan

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Start returns the status of an Instance after the choice has started. It uses uid unless the choice has one.
func Start(status kudo.InstanceStatus, choice Choice, uid types.UID, now time.Time) kudo.InstanceStatus {
	execution := *choice.Start
	execution.UID = cmp.Or(execution.UID, uid)
	status = MigrateStatus(status, nil)
	started := *status.DeepCopy()
	started.PlanStatus = plansOf(choice.Version, status, execution, now)
	started.Execution = &execution
	if IsManual(started) {
		started.HandledRequests = addHandled(started.HandledRequests, execution.UID)
	}
	if execution.Plan == kudo.CleanupPlan {
		started.Whole = nil // what was applied is about to be removed
	}
	execution.Available = started.Whole != nil && !IsAside(started) && (IsAvailable(status) || isUpdating(status))
	return recordLast(started, choice.Version, kudo.OwedFailed, Begin(execution.Plan, choice.Version.Plans[execution.Plan], execution.UID, now))
}

// Advance returns the status of an Instance after the outcomes of tasks of its running execution. An owed plan that ends for a reason that may
// pass starts again by itself.
func (o Observation) Advance(status kudo.InstanceStatus, outcomes map[Task]Outcome) kudo.InstanceStatus {
	name := status.Execution.Plan
	last := Record(o.Running.Plans[name], status.PlanStatus[name], outcomes, o.Now)
	status = recordLast(*status.DeepCopy(), o.Running, kudo.OwedFailed, last)
	if !canPass(last, outcomes) {
		return status
	}
	return o.scheduleRetry(status, name, o.Now, o.retryDelay)
}

// EarlyTasks lists the next tasks if they may run before the outcomes of the tasks before them are recorded; empty otherwise. If the agent
// restarts in between, all of them run again for the same execution. That changes nothing, because they only apply and delete objects, and
// the caller separates tasks that share an object. A KudoOperator task only begins to wait: the hub receives it once it is recorded. Once
// such a task is complete, only other KudoOperator tasks run ahead, because tasks of other kinds could change objects before the completion
// is recorded.
func EarlyTasks(version *kudo.OperatorVersionSpec, status kudo.InstanceStatus, outcomes map[Task]Outcome) []Task {
	mayRun := TaskAction.canRunEarly
	for at, outcome := range outcomes {
		action, known := actionAt(version, *status.Execution, at)
		if outcome.Status != kudo.Complete || !known || !action.canRunEarly() {
			return nil
		}
		if action.OfChild() {
			mayRun = TaskAction.OfChild
		}
	}
	progress := status.PlanStatus[status.Execution.Plan]
	next := Next(version.Plans[status.Execution.Plan], progress)
	for _, at := range next {
		state := progress.Phases[at.Phase].Steps[at.Step].Tasks[at.Task].Status
		action, known := actionAt(version, *status.Execution, at)
		if state != kudo.Pending || !known || !mayRun(action) {
			return nil
		}
	}
	return next
}

// MayWait reports whether the outcomes of these tasks need not be recorded before the tasks are observed again: all are complete or in progress,
// no other program depends on them, and if the agent restarts in between, applying their objects again changes nothing.
func MayWait(version *kudo.OperatorVersionSpec, execution kudo.Execution, outcomes map[Task]Outcome) bool {
	for at, outcome := range outcomes {
		action, known := actionAt(version, execution, at)
		if outcome.Status != kudo.Complete && outcome.Status != kudo.InProgress || !known || action != Apply && action != Nothing {
			return false
		}
	}
	return len(outcomes) > 0
}

// actionAt returns the action of a task of an execution. It is not known if the task cannot run.
func actionAt(version *kudo.OperatorVersionSpec, execution kudo.Execution, at Task) (action TaskAction, known bool) {
	placed, found := Find(version, execution.Plan, at)
	if !found {
		return Nothing, false
	}
	action, err := TaskActionOf(placed.Task, version, execution.Parameters)
	return action, err == nil
}

// CancelExecution returns the status of an Instance whose last execution, which runs version, was cancelled.
func CancelExecution(version *kudo.OperatorVersionSpec, status kudo.InstanceStatus, now time.Time) kudo.InstanceStatus {
	return recordLast(*status.DeepCopy(), version, kudo.OwedCancelled, Cancel(status.PlanStatus[status.Execution.Plan], now))
}

// FailExecution returns the status of an Instance whose execution, which has just started and runs version, cannot continue for that
// reason.
func FailExecution(version *kudo.OperatorVersionSpec, status kudo.InstanceStatus, reason string, now time.Time) kudo.InstanceStatus {
	return recordLast(*status.DeepCopy(), version, kudo.OwedFailed, end(status.PlanStatus[status.Execution.Plan], reason, now))
}

// recordLast records the state of the last execution, and which plans are still owed. outcome is recorded for a plan that has ended without
// completing.
func recordLast(
	status kudo.InstanceStatus, version *kudo.OperatorVersionSpec, outcome kudo.OwedOutcome, last kudo.PlanStatus,
) kudo.InstanceStatus {
	status.PlanStatus[status.Execution.Plan] = last
	return recordEnd(status, version, outcome)
}

// plansOf keeps the states of plans for an unchanged OperatorVersion. The plans of a changed version have never run. A plan that was
// running has ended, because no controller continues it.
func plansOf(
	version *kudo.OperatorVersionSpec, status kudo.InstanceStatus, started kudo.Execution, now time.Time,
) map[string]kudo.PlanStatus {
	last := status.Execution
	same := last != nil && sameReference(last.OperatorVersion, started.OperatorVersion)
	statuses := make(map[string]kudo.PlanStatus, len(version.Plans))
	for name, spec := range version.Plans {
		before, known := status.PlanStatus[name]
		switch {
		case !known || !same:
			statuses[name] = NeverRun(name, spec)
		case before.Status.IsRunning():
			statuses[name] = end(before, fmt.Sprintf("superseded by plan %q", started.Plan), now)
		default:
			statuses[name] = before
		}
	}
	return statuses
}
