package plan

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Start is the status of an Instance for which what was chosen has started, under uid unless it was given one.
func Start(status kudo.InstanceStatus, choice Choice, uid types.UID, now time.Time) kudo.InstanceStatus {
	execution := *choice.Start
	execution.UID = cmp.Or(execution.UID, uid)
	started := *status.DeepCopy()
	started.PlanStatus = plansOf(choice.Version, status, execution, now)
	started.Execution = &execution
	return recordLast(started, Begin(execution.Plan, choice.Version.Plans[execution.Plan], execution.UID, now))
}

// Advance is the status of an Instance after outcomes of tasks of its last execution, which runs version.
func Advance(version *kudo.OperatorVersionSpec, status kudo.InstanceStatus, outcomes map[Task]Outcome, now time.Time) kudo.InstanceStatus {
	name := status.Execution.Plan
	return recordLast(*status.DeepCopy(), Record(version.Plans[name], status.PlanStatus[name], outcomes, now))
}

// recordLast puts in the state of the last execution. With one that completes, no restart of pods is owed any more (KEP-27).
func recordLast(status kudo.InstanceStatus, last kudo.PlanStatus) kudo.InstanceStatus {
	status.PlanStatus[status.Execution.Plan] = last
	if last.Status == kudo.Complete {
		status.Execution.RestartPending = false
	}
	return status
}

// plansOf keeps the states of plans as long as the OperatorVersion is the same; another one's plans have never run. What ran until
// now has ended: nobody goes on with it.
func plansOf(
	version *kudo.OperatorVersionSpec, status kudo.InstanceStatus, started kudo.Execution, now time.Time,
) map[string]kudo.PlanStatus {
	last := status.Execution
	same := last != nil && sameVersion(last.OperatorVersion, started.OperatorVersion)
	statuses := make(map[string]kudo.PlanStatus, len(version.Plans))
	for name, spec := range version.Plans {
		before, known := status.PlanStatus[name]
		switch {
		case !known || !same:
			statuses[name] = NeverRun(name, spec)
		case before.Status.Running():
			statuses[name] = end(before, fmt.Sprintf("superseded by plan %q", started.Plan), now)
		default:
			statuses[name] = before
		}
	}
	return statuses
}
