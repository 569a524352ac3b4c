package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/former"
	"github.com/tandem-addons/tandem/pkg/core/history"
	"github.com/tandem-addons/tandem/pkg/core/resume"
)

// Start returns the status of an Instance, which is in the current format, after the choice has started. It uses uid unless the choice has one.
func Start(status kudo.InstanceStatus, choice Choice, uid types.UID, now time.Time) kudo.InstanceStatus {
	execution := *choice.Start
	execution.UID = cmp.Or(execution.UID, uid)
	started := *status.DeepCopy()
	started.PlanStatus = plansOf(choice.Version, status, execution, now)
	spec := choice.Version.Plans[execution.Plan]
	progress := Begin(execution.Plan, spec, execution.UID, now)
	if execution.Resume != "" {
		progress = resume.Prepare(choice.Version, spec, status.PlanStatus[execution.Plan], progress)
	}
	started.Execution = &execution
	if IsManual(started) || execution.Resume != "" {
		started.HandledRequests = addHandled(started.HandledRequests, execution.Request)
	}
	if execution.Plan == kudo.CleanupPlan {
		started.Whole = nil // what was applied is about to be removed
	}
	started.Former = former.After(status, choice.Before, &execution)
	started.Returned = former.WithCause(choice.Returned, status, now)
	started.History = history.Begin(status.History, startOf(status.Execution, &execution, choice, now))
	execution.Available = started.Whole != nil && !IsAside(started) && (IsAvailable(status) || isUpdating(status))
	return recordLast(started, choice.Version, kudo.OwedFailed, progress)
}

// startOf returns what the history records of the start of the execution of a choice, after the execution before, nil if there was none.
func startOf(before, execution *kudo.Execution, choice Choice, now time.Time) history.Start {
	start, values := history.Start{Execution: execution, Now: now}, Values{}
	if before != nil {
		start.From, values = before.OperatorVersion, valuesIn(before)
	}
	for _, p := range changedParameters(choice.Version.Parameters, values, valuesIn(execution)) {
		start.Parameters = append(start.Parameters, p.Name)
	}
	start.Cause = causeOf(before, execution, len(start.Parameters) > 0)
	start.By = byOf(start, before, choice)
	return start
}

// byOf returns who has made the change that starts an execution after another one; empty if that is not known, or if the Instance was not changed: the
// OperatorVersion of that name was, or a value in a Secret.
func byOf(start history.Start, before *kudo.Execution, choice Choice) string {
	switch start.Cause {
	case kudo.CauseRequest:
		return choice.RequestedBy
	case kudo.CauseVersion, kudo.CauseParameters:
		version := start.Execution.OperatorVersion
		isSame := start.From.Name == version.Name && start.From.Namespace == version.Namespace
		if isSame && former.StartedDigest(before) == former.StartedDigest(start.Execution) {
			return ""
		}
		return choice.ChangedBy
	case kudo.CauseInstall, kudo.CauseImageRegistries, kudo.CauseParent:
		return choice.ChangedBy
	default:
		return ""
	}
}

// causeOf returns why an execution started after the execution before, nil if there was none. changed is whether it changes values of parameters.
func causeOf(before, execution *kudo.Execution, changed bool) kudo.HistoryCause {
	switch {
	case execution.UID == execution.Request && IsRerun(execution.UID):
		return kudo.CauseParent
	case execution.UID == execution.Request:
		return kudo.CauseRequest
	case execution.Plan == kudo.CleanupPlan:
		return kudo.CauseRemoval
	case execution.Return:
		return kudo.CauseReturn
	case before == nil:
		return kudo.CauseInstall
	case !sameReference(before.OperatorVersion, execution.OperatorVersion):
		return kudo.CauseVersion
	case changed:
		return kudo.CauseParameters
	case !slices.Equal(before.ImageRegistries, execution.ImageRegistries):
		return kudo.CauseImageRegistries
	case retriesOf(execution.Owed, execution.Plan) > 0:
		return kudo.CauseRetry
	default:
		return kudo.CauseOwed
	}
}

// Advance returns the status of an Instance after the outcomes of tasks of its running execution. An owed plan that ends for a reason that may
// pass starts again by itself.
func (o Observation) Advance(status kudo.InstanceStatus, outcomes map[Task]Outcome) kudo.InstanceStatus {
	name := status.Execution.Plan
	last := Record(o.Running.Plans[name], status.PlanStatus[name], outcomes, o.Now)
	status = o.withoutFormer(recordLast(*status.DeepCopy(), o.Running, kudo.OwedFailed, last))
	if status.Execution.Return || !canPass(last, outcomes) {
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
