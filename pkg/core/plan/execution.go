package plan

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Start returns the status of an Instance, which is in the current format, after the choice has started. It uses uid unless the choice has one.
func Start(status kudo.InstanceStatus, choice Choice, uid types.UID, now time.Time) kudo.InstanceStatus {
	execution := *choice.Start
	execution.UID = cmp.Or(execution.UID, uid)
	started := *status.DeepCopy()
	started.PlanStatus = plansOf(choice.Version, status, execution, now)
	progress := Begin(execution.Plan, choice.Version.Plans[execution.Plan], execution.UID, now)
	started.Execution = &execution
	if IsManual(started) {
		started.HandledRequests = addHandled(started.HandledRequests, execution.UID)
	}
	if execution.Plan == kudo.CleanupPlan {
		started.Whole = nil // what was applied is about to be removed
	}
	execution.Available = started.Whole != nil && !IsAside(started) && (IsAvailable(status) || isUpdating(status))
	return recordLast(started, choice.Version, kudo.OwedFailed, progress)
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

// CancelExecution returns the status of an Instance whose last execution, which runs version, was cancelled.
func CancelExecution(version *kudo.OperatorVersionSpec, status kudo.InstanceStatus, now time.Time) kudo.InstanceStatus {
	return recordLast(*status.DeepCopy(), version, kudo.OwedCancelled, Cancel(status.PlanStatus[status.Execution.Plan], now))
}

// FailExecution returns the status of an Instance whose execution, which has just started and runs version, cannot continue for that
// reason.
func FailExecution(version *kudo.OperatorVersionSpec, status kudo.InstanceStatus, reason string, now time.Time) kudo.InstanceStatus {
	return recordLast(*status.DeepCopy(), version, kudo.OwedFailed, end(status.PlanStatus[status.Execution.Plan], reason, now))
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
