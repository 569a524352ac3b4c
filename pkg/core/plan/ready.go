package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/health"
)

// Placed is a task with its position in a plan.
type Placed struct {
	Plan, Phase, Step string
	Task              kudo.Task
}

// Find returns the task at that position in a plan of version, and whether the version has it.
func Find(version *kudo.OperatorVersionSpec, plan string, at Task) (Placed, bool) {
	phases := version.Plans[plan].Phases
	if at.Phase >= len(phases) || at.Step >= len(phases[at.Phase].Steps) {
		return Placed{}, false
	}
	phase, step := phases[at.Phase], phases[at.Phase].Steps[at.Step]
	if at.Task >= len(step.Tasks) {
		return Placed{}, false
	}
	i := slices.IndexFunc(version.Tasks, func(t kudo.Task) bool { return t.Name == step.Tasks[at.Task] })
	if i < 0 {
		return Placed{Plan: plan, Phase: phase.Name, Step: step.Name, Task: kudo.Task{Name: step.Tasks[at.Task]}}, false
	}
	return Placed{Plan: plan, Phase: phase.Name, Step: step.Name, Task: version.Tasks[i]}, true
}

// Everywhere lists every task of the version at each of its positions, plan by plan.
func Everywhere(version *kudo.OperatorVersionSpec) []Placed {
	var placed []Placed
	for _, name := range slices.Sorted(maps.Keys(version.Plans)) {
		for p, phase := range version.Plans[name].Phases {
			for s, step := range phase.Steps {
				for t := range step.Tasks {
					if task, found := Find(version, name, Task{p, s, t}); found {
						placed = append(placed, task)
					}
				}
			}
		}
	}
	return placed
}

// Ready returns condition Ready of an Instance of which no plan has failed or is pending (DESIGN §5): True if all objects in the inventory
// exist, belong to the owner and are healthy, and the children are healthy too.
func Ready(owner Owner, listed []Object, children []Child) metav1.Condition {
	for _, o := range listed {
		if problem := problemOf(owner, o); problem != "" {
			return Condition(metav1.ConditionFalse, kudo.ReasonUnhealthy, problem)
		}
	}
	for _, child := range children {
		if problem := child.problem(); problem != "" {
			return Condition(metav1.ConditionFalse, kudo.ReasonUnhealthy, problem)
		}
	}
	return Condition(metav1.ConditionTrue, kudo.ReasonHealthy, "all plans are complete and all applied objects are healthy")
}

// PendingCondition returns condition Ready of an Instance with a plan that is about to start. It is False in between: a client that waits
// for its generation to be Ready would otherwise take pending changes for done.
func PendingCondition(next string) metav1.Condition {
	return Condition(metav1.ConditionFalse, kudo.ReasonPlanPending, fmt.Sprintf("plan %q is next", next))
}

// missing is the end of a condition message about an applied object that no longer exists.
const missing = ": is missing"

// IsMissing reports whether the condition is False because an object is missing: reason Unhealthy also covers objects that fail.
func IsMissing(condition metav1.Condition) bool {
	return condition.Reason == kudo.ReasonUnhealthy && strings.Contains(condition.Message, missing)
}

// problemOf describes the problem of an applied object; empty if it is healthy.
func problemOf(owner Owner, o Object) string {
	switch {
	case o.Unread != "":
		return Describe(o.Want) + ": " + o.Unread
	case o.Live == nil && o.runsToCompletion():
		return ""
	case o.Live == nil:
		return Describe(o.Want) + missing
	case o.IsDeleted():
		return describeDeletion(o)
	}
	if err := owner.Claim(o); err != nil {
		return err.Error()
	}
	if result := o.health(); result.Status != health.Healthy {
		return result.Message
	}
	return ""
}

// runsToCompletion reports whether objects of the kind may be deleted after they have completed.
func (o Object) runsToCompletion() bool {
	kind := o.Want.GroupVersionKind().GroupKind()
	return kind == schema.GroupKind{Group: "batch", Kind: "Job"} || kind == schema.GroupKind{Kind: "Pod"}
}

// LastRequest returns condition LastRequestSucceeded of an Instance: the outcome of its last manual plan request. It returns nil if there is
// none, or if its plan has run again since it ended.
func LastRequest(status kudo.InstanceStatus) *metav1.Condition {
	if len(status.HandledRequests) == 0 {
		return nil
	}
	request := status.HandledRequests[len(status.HandledRequests)-1]
	for _, name := range slices.Sorted(maps.Keys(status.PlanStatus)) {
		ran := status.PlanStatus[name]
		if ran.UID != request {
			continue
		}
		c := &metav1.Condition{Type: kudo.ConditionLastRequestSucceeded}
		switch ran.Status {
		case kudo.Complete:
			c.Status, c.Reason, c.Message = metav1.ConditionTrue, kudo.ReasonPlanComplete, fmt.Sprintf("plan %q is complete", name)
		case kudo.FatalError:
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, kudo.ReasonPlanFailed, FailedText(kudo.InstanceStatus{PlanStatus: status.PlanStatus}, name)
		default:
			c.Status, c.Reason, c.Message = metav1.ConditionUnknown, kudo.ReasonPlanInProgress, fmt.Sprintf("plan %q is running", name)
		}
		return c
	}
	before := meta.FindStatusCondition(status.Conditions, kudo.ConditionLastRequestSucceeded)
	if before == nil || before.Status != metav1.ConditionUnknown || status.Execution == nil {
		return nil
	}
	return &metav1.Condition{
		Type: kudo.ConditionLastRequestSucceeded, Status: metav1.ConditionFalse, Reason: kudo.ReasonPlanFailed,
		Message: fmt.Sprintf("the requested plan was superseded by plan %q", status.Execution.Plan),
	}
}

// RunningCondition returns condition Ready of an Instance with a running plan.
func RunningCondition(status kudo.PlanStatus) metav1.Condition {
	message := fmt.Sprintf("plan %q is running", status.Name)
	if status.Message != "" {
		message += ": " + status.Message
	}
	reason := kudo.ReasonPlanInProgress
	if status.Status == kudo.Error {
		reason = kudo.ReasonPlanError
	}
	return Condition(metav1.ConditionFalse, reason, message)
}

// NothingLeft is the message of condition Ready of a removed Instance.
const NothingLeft = "no objects of the Instance are left on the managed cluster"

// Condition returns condition Ready.
func Condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kudo.ConditionReady, Status: status, Reason: reason, Message: message}
}

// IsAvailable reports whether an Instance is available according to its recorded conditions: Available, and Ready where that is absent.
func IsAvailable(status kudo.InstanceStatus) bool {
	if available := meta.FindStatusCondition(status.Conditions, kudo.ConditionAvailable); available != nil {
		return available.Status == metav1.ConditionTrue
	}
	return meta.IsStatusConditionTrue(status.Conditions, kudo.ConditionReady)
}

// RecordedAvailable returns condition Available as it is recorded; nil if it is absent.
func RecordedAvailable(status kudo.InstanceStatus) *metav1.Condition {
	recorded := meta.FindStatusCondition(status.Conditions, kudo.ConditionAvailable)
	if recorded == nil {
		return nil
	}
	return availability(recorded.Status, recorded.Reason, recorded.Message)
}

// isUpdating reports whether the last execution updates an available Instance and does not take too long: an execution that supersedes it
// continues the update, even if a workload is unavailable at that moment.
func isUpdating(status kudo.InstanceStatus) bool {
	last := status.Execution
	if last == nil || !last.Available || !status.PlanStatus[last.Plan].Status.IsRunning() {
		return false
	}
	recorded := meta.FindStatusCondition(status.Conditions, kudo.ConditionAvailable)
	return recorded == nil || recorded.Reason != kudo.ReasonPlanInProgress
}

func updatingCondition(message string) *metav1.Condition {
	return availability(metav1.ConditionTrue, kudo.ReasonUpdating, message)
}

// availability returns condition Available.
func availability(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: kudo.ConditionAvailable, Status: status, Reason: reason, Message: message}
}
