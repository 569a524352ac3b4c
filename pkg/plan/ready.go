package plan

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/health"
)

// Placed is a task at its place in a plan.
type Placed struct {
	Plan, Phase, Step string
	Task              kudo.Task
}

// Find is the task of that place in a plan of version, and whether the version has it.
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

// Standing lists the tasks that made the Instance what it is: those of the plans that were executed to their end, the latest
// last. What the last of them did to an object is what counts.
func Standing(version *kudo.OperatorVersionSpec, statuses map[string]kudo.PlanStatus, last string) []Placed {
	var complete []kudo.PlanStatus
	for name, status := range statuses {
		if status.Status == kudo.Complete {
			status.Name = name
			complete = append(complete, status)
		}
	}
	slices.SortFunc(complete, func(a, b kudo.PlanStatus) int {
		return cmp.Or(
			cmp.Compare(rank(a.Name, last), rank(b.Name, last)),
			a.LastUpdatedTimestamp.Time.Compare(b.LastUpdatedTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	var placed []Placed
	for _, status := range complete {
		placed = append(placed, All(version, status.Name)...)
	}
	return placed
}

// rank puts the plan that ran last behind all others: timestamps count whole seconds only.
func rank(name, last string) int {
	if name == last {
		return 1
	}
	return 0
}

// All lists every task of a plan in its order.
func All(version *kudo.OperatorVersionSpec, plan string) []Placed {
	var placed []Placed
	for p, phase := range version.Plans[plan].Phases {
		for s, step := range phase.Steps {
			for t := range step.Tasks {
				if task, found := Find(version, plan, Task{p, s, t}); found {
					placed = append(placed, task)
				}
			}
		}
	}
	return placed
}

// Ready is the condition of an Instance whose plans rest (DESIGN §5): True when the last plan is complete and everything that
// stands is healthy and still there. Jobs and Pods that are gone have done their work.
func Ready(last kudo.PlanStatus, standing []Object) metav1.Condition {
	if last.Status == kudo.FatalError {
		return Condition(metav1.ConditionFalse, kudo.ReasonPlanFailed, fmt.Sprintf("plan %q failed: %s", last.Name, last.Message))
	}
	for _, o := range standing {
		if o.Live == nil {
			if kind := o.Want.GetKind(); kind != "Job" && kind != "Pod" {
				return Condition(metav1.ConditionFalse, kudo.ReasonUnhealthy, Describe(o.Want)+": is missing")
			}
			continue
		}
		if result := health.Of(o.Live); result.Status != health.Healthy {
			return Condition(metav1.ConditionFalse, kudo.ReasonUnhealthy, result.Message)
		}
	}
	return Condition(metav1.ConditionTrue, kudo.ReasonHealthy, fmt.Sprintf("plan %q is complete and everything it applied is healthy", last.Name))
}

// Running is the condition of an Instance of which a plan runs.
func Running(status kudo.PlanStatus) metav1.Condition {
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

// Condition is condition Ready.
func Condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kudo.ConditionReady, Status: status, Reason: reason, Message: message}
}
