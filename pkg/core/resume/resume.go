// Package resume decides which tasks of a failed execution another execution of its plan does not run again. It is pure and touches no cluster.
//
// A resumed execution starts with the digests of the tasks that have completed. Each such task is a candidate until it is next: then it is skipped if
// it would render the same and its objects are healthy; otherwise it runs again, and so does everything that runs after it.
package resume

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Request is what Problem depends on: a request to resume an execution, and the last execution of the Instance.
type Request struct {
	Plan   string
	Resume types.UID

	// Last is the last execution, nil if there is none, and Status its status. OtherVersion is true if the Instance's spec names another
	// OperatorVersion than it.
	Last         *kudo.Execution
	Status       kudo.ExecutionStatus
	OtherVersion bool
}

// Problem returns why an execution cannot be resumed, and what to do; empty if it can.
func Problem(r Request) string {
	asked := text.Prefix(string(r.Resume), maxShown)
	switch last := r.Last; {
	case last == nil:
		return fmt.Sprintf("execution %q cannot be resumed: no plan has run yet: remove spec.planExecution.resume to run the whole plan", asked)
	case last.UID != r.Resume:
		return fmt.Sprintf("execution %q cannot be resumed: the last one is %q of plan %q: resume that, or remove spec.planExecution.resume to run the whole plan",
			asked, text.Prefix(string(last.UID), maxShown), last.Plan)
	case last.Plan != r.Plan:
		return fmt.Sprintf("execution %q cannot be resumed by plan %q: it is of plan %q: correct spec.planExecution.planName", asked, text.Prefix(r.Plan, maxShown), last.Plan)
	case r.OtherVersion:
		return fmt.Sprintf("execution %q cannot be resumed: the OperatorVersion has changed since: remove spec.planExecution.resume to run the whole plan", asked)
	case r.Status == kudo.Complete:
		return fmt.Sprintf("execution %q cannot be resumed: it is complete: remove spec.planExecution.resume to run the whole plan", asked)
	case r.Status != kudo.FatalError:
		return fmt.Sprintf("execution %q cannot be resumed: it has not ended: cancel it, or wait until it fails", asked)
	default:
		return ""
	}
}

// maxShown is the number of bytes of a uid, which may be that of a request, that a message quotes.
const maxShown = 128

// Prepare returns the status of an execution that has just started, with the digests of the tasks that had completed in the one before, which it resumes.
// Steps that have to run again in any case say why.
func Prepare(version *kudo.OperatorVersionSpec, spec kudo.Plan, before, status kudo.PlanStatus) kudo.PlanStatus {
	prepared := *status.DeepCopy()
	blocker := ""
	for p, phase := range prepared.Phases {
		if p >= len(before.Phases) || before.Phases[p].Name != phase.Name {
			break
		}
		ended := preparePhase(version, spec.Phases[p], before.Phases[p], phase, blocker)
		if spec.Strategy != kudo.Parallel && blocker == "" {
			blocker = ended
		}
	}
	return prepared
}

// preparePhase prepares the steps of a phase. blocker is the part before it that runs again, and the result the first part of it that does; empty if there
// is none.
func preparePhase(version *kudo.OperatorVersionSpec, spec kudo.Phase, before, status kudo.PhaseStatus, blocker string) (first string) {
	for s := range status.Steps {
		if s >= len(before.Steps) || before.Steps[s].Name != status.Steps[s].Name {
			break
		}
		blocks := prepareStep(version, before.Steps[s], &status.Steps[s], blocker)
		if !blocks {
			continue
		}
		if first == "" {
			first = status.Steps[s].Name
		}
		if spec.Strategy != kudo.Parallel && blocker == "" {
			blocker = status.Steps[s].Name
		}
	}
	return first
}

// prepareStep takes the digests of the tasks that had completed, until one has none, and reports whether what runs after the step runs again.
func prepareStep(version *kudo.OperatorVersionSpec, before kudo.StepStatus, status *kudo.StepStatus, blocker string) (blocks bool) {
	for t := range status.Tasks {
		if t >= len(before.Tasks) || before.Tasks[t].Name != status.Tasks[t].Name || before.Tasks[t].Status != kudo.Complete {
			return true // it had not completed
		}
		if blocker != "" {
			status.RerunReason = afterText(blocker)
			return true
		}
		if status.Tasks[t].Rendered = before.Tasks[t].Rendered; before.Tasks[t].Rendered != "" {
			continue
		}
		task := taskOf(version, status.Tasks[t].Name)
		status.RerunReason = undigestedText(version, task)
		return !isChild(task) || t+1 < len(status.Tasks)
	}
	return false
}

// afterText is why a step runs again that was complete and would render the same.
func afterText(step string) string { return fmt.Sprintf("follows step %q, which runs again", step) }

// undigestedText is why a complete task without a digest runs again.
func undigestedText(version *kudo.OperatorVersionSpec, task kudo.Task) string {
	switch {
	case isChild(task):
		return fmt.Sprintf("task %q requests a child operator, which runs no plan unless it has changed", task.Name)
	case IsVolatile(version, task):
		return fmt.Sprintf("task %q generates random values or reads the current time", task.Name)
	default:
		return fmt.Sprintf("task %q has no recorded digest of its rendered output", task.Name)
	}
}

// RunAgain returns the status of a running execution in which a candidate runs again for that reason, with the tasks after it in its step and, as far as
// they run one after the other, the steps and phases.
func RunAgain(spec kudo.Plan, status kudo.PlanStatus, at Place, reason string) kudo.PlanStatus {
	again := *status.DeepCopy()
	step := &again.Phases[at.Phase].Steps[at.Step]
	forget(step, at.Task, reason)
	if spec.Phases[at.Phase].Strategy != kudo.Parallel {
		for s := at.Step + 1; s < len(again.Phases[at.Phase].Steps); s++ {
			forget(&again.Phases[at.Phase].Steps[s], 0, afterText(step.Name))
		}
	}
	if spec.Strategy == kudo.Parallel {
		return again
	}
	for p := at.Phase + 1; p < len(again.Phases); p++ {
		for s := range again.Phases[p].Steps {
			forget(&again.Phases[p].Steps[s], 0, afterText(step.Name))
		}
	}
	return again
}

// Place is the position of a task in a plan.
type Place struct{ Phase, Step, Task int }

// forget removes the digests of the candidates of a step from a task on, and says why they run again.
func forget(step *kudo.StepStatus, from int, reason string) {
	for t := from; t < len(step.Tasks); t++ {
		if task := &step.Tasks[t]; IsCandidate(*task) {
			task.Rendered = ""
			if step.RerunReason == "" {
				step.RerunReason = reason
			}
		}
	}
}

// IsCandidate reports whether a task of a resumed execution has completed before, and it has yet to be decided whether it runs again.
func IsCandidate(task kudo.TaskStatus) bool {
	return task.Rendered != "" && task.Status != kudo.Complete
}

// HasDigests reports whether tasks of an execution are complete that another one may skip.
func HasDigests(status kudo.PlanStatus) bool {
	return slices.ContainsFunc(status.Phases, func(p kudo.PhaseStatus) bool {
		return slices.ContainsFunc(p.Steps, func(s kudo.StepStatus) bool {
			return slices.ContainsFunc(s.Tasks, func(t kudo.TaskStatus) bool { return t.Rendered != "" })
		})
	})
}

// MayBeSkipped reports whether a step has tasks, and all of them are candidates.
func MayBeSkipped(step kudo.StepStatus) bool {
	return len(step.Tasks) > 0 && !slices.ContainsFunc(step.Tasks, func(t kudo.TaskStatus) bool { return !IsCandidate(t) })
}

// IsSkipped reports whether a step has tasks, and all of them were skipped.
func IsSkipped(step kudo.StepStatus) bool {
	return len(step.Tasks) > 0 && !slices.ContainsFunc(step.Tasks, func(t kudo.TaskStatus) bool { return !t.Skipped })
}

// isChild reports whether a task requests a child operator.
func isChild(task kudo.Task) bool {
	return task.Kind == kudo.TaskKudoOperator || task.Kind == kudo.TaskOperator
}

// taskOf returns the task of that name; one with only its name if the version has none.
func taskOf(version *kudo.OperatorVersionSpec, name string) kudo.Task {
	if i := slices.IndexFunc(version.Tasks, func(t kudo.Task) bool { return t.Name == name }); i >= 0 {
		return version.Tasks[i]
	}
	return kudo.Task{Name: name}
}
