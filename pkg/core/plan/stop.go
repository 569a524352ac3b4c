package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Cancel returns the status of a manually cancelled execution.
func Cancel(status kudo.PlanStatus, now time.Time) kudo.PlanStatus {
	return end(status, "cancelled", now)
}

// end returns the status of an execution that ends for a reason other than its tasks.
func end(status kudo.PlanStatus, reason string, now time.Time) kudo.PlanStatus {
	ended := *status.DeepCopy()
	ended.Status, ended.Message = kudo.FatalError, reason
	ended.LastUpdatedTimestamp = &metav1.Time{Time: now}
	stop(ended.Phases, reason)
	return ended
}

// stop ends the phases, steps and tasks in which an execution with FATAL_ERROR has stopped, for this reason. Parts that were not reached stay
// pending, as in KUDO.
func stop(phases []kudo.PhaseStatus, reason string) {
	for _, p := range stopPoints(phases, func(p kudo.PhaseStatus) kudo.ExecutionStatus { return p.Status }) {
		phase := &phases[p]
		for _, s := range stopPoints(phase.Steps, func(s kudo.StepStatus) kudo.ExecutionStatus { return s.Status }) {
			step := &phase.Steps[s]
			for _, t := range stopPoints(step.Tasks, func(t kudo.TaskStatus) kudo.ExecutionStatus { return t.Status }) {
				task := &step.Tasks[t]
				fail(&task.Status, &task.Message, strings.TrimSuffix(reason+": "+task.Message, ": "))
				fail(&step.Status, &step.Message, partMessage("task", task.Name, task.Message))
			}
			fail(&step.Status, &step.Message, reason)
			fail(&phase.Status, &phase.Message, partMessage("step", step.Name, step.Message))
		}
		fail(&phase.Status, &phase.Message, reason)
	}
}

// stopPoints returns the positions of the parts in which an execution has stopped: those that run or have failed, else the next one.
func stopPoints[T any](parts []T, status func(T) kudo.ExecutionStatus) []int {
	var at []int
	for i, p := range parts {
		if s := status(p); s == kudo.InProgress || s == kudo.Error || s == kudo.FatalError {
			at = append(at, i)
		}
	}
	if next := slices.IndexFunc(parts, func(p T) bool { return status(p) != kudo.Complete }); len(at) == 0 && next >= 0 {
		at = append(at, next)
	}
	return at
}

// fail ends a part with FATAL_ERROR and a message, unless it has ended.
func fail(status *kudo.ExecutionStatus, message *string, why string) {
	if !status.IsTerminal() {
		*status, *message = kudo.FatalError, why
	}
}

// partMessage returns the message of a part as a part of the message of the whole.
func partMessage(kind, name, message string) string {
	if message == "" {
		return ""
	}
	return fmt.Sprintf("%s %q: %s", kind, name, message)
}
