package plan

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Task is one task of a plan, by its place: the indices of its phase, its step and itself.
type Task struct{ Phase, Step, Task int }

// Outcome is what came of a task when it was last looked at or carried out.
type Outcome struct {
	// Status is InProgress, Complete, Error (it will be tried again) or FatalError (it ends the plan).
	Status kudo.ExecutionStatus

	// Message says what is waited for, or what failed on which object and why.
	Message string
}

// Begin is the status of an execution that has just started.
func Begin(name string, spec kudo.Plan, uid types.UID, now time.Time) kudo.PlanStatus {
	status := blank(name, spec, kudo.Pending)
	status.UID = uid
	return settle(spec, status, kudo.PlanStatus{}, now)
}

// NeverRun is the status of a plan of which nothing was ever executed.
func NeverRun(name string, spec kudo.Plan) kudo.PlanStatus {
	return blank(name, spec, kudo.NeverRun)
}

// Cancel is the status of an execution that was ended by hand.
func Cancel(status kudo.PlanStatus, now time.Time) kudo.PlanStatus {
	ended := *status.DeepCopy()
	ended.Status, ended.Message = kudo.FatalError, "cancelled"
	ended.LastUpdatedTimestamp = &metav1.Time{Time: now}
	return ended
}

// Next lists the tasks whose turn it is: those that may run side by side now. A task's turn lasts until it is recorded as
// complete. None are left when the execution has ended.
func Next(spec kudo.Plan, status kudo.PlanStatus) []Task {
	if status.Status.Terminal() {
		return nil
	}
	var tasks []Task
	for p := range turns(spec.Strategy, status.Phases, phaseComplete) {
		for s := range turns(spec.Phases[p].Strategy, status.Phases[p].Steps, stepComplete) {
			t := slices.IndexFunc(status.Phases[p].Steps[s].Tasks, taskIncomplete)
			if t >= 0 {
				tasks = append(tasks, Task{p, s, t})
			}
		}
	}
	return tasks
}

// Record folds outcomes into a status. Tasks without an outcome, and tasks that were recorded as complete, stay as they are.
// The input is not changed; lastUpdatedTimestamp moves only when status or message do.
func Record(spec kudo.Plan, status kudo.PlanStatus, outcomes map[Task]Outcome, now time.Time) kudo.PlanStatus {
	recorded := *status.DeepCopy()
	for at, outcome := range outcomes {
		task := &recorded.Phases[at.Phase].Steps[at.Step].Tasks[at.Task]
		if task.Status != kudo.Complete {
			task.Status, task.Message = outcome.Status, outcome.Message
		}
	}
	return settle(spec, recorded, status, now)
}

// blank is a status with the plan's shape.
func blank(name string, spec kudo.Plan, state kudo.ExecutionStatus) kudo.PlanStatus {
	status := kudo.PlanStatus{Name: name, Status: state}
	for _, phase := range spec.Phases {
		ph := kudo.PhaseStatus{Name: phase.Name, Status: state}
		for _, step := range phase.Steps {
			st := kudo.StepStatus{Name: step.Name, Status: state}
			for _, task := range step.Tasks {
				st.Tasks = append(st.Tasks, kudo.TaskStatus{Name: task, Status: state})
			}
			ph.Steps = append(ph.Steps, st)
		}
		status.Phases = append(status.Phases, ph)
	}
	return status
}

// turns yields the indices of the items whose turn it is: the first incomplete one, or with parallel every incomplete one.
func turns[T any](strategy kudo.Ordering, items []T, complete func(T) bool) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i, item := range items {
			if complete(item) {
				continue
			}
			if !yield(i) || strategy != kudo.Parallel {
				return
			}
		}
	}
}

func phaseComplete(p kudo.PhaseStatus) bool { return p.Status == kudo.Complete }
func stepComplete(s kudo.StepStatus) bool   { return s.Status == kudo.Complete }
func taskIncomplete(t kudo.TaskStatus) bool { return t.Status != kudo.Complete }

// settle derives the states of steps, phases and the plan from the tasks', in the plan's order: what has no tasks is complete
// when its turn comes.
func settle(spec kudo.Plan, status, before kudo.PlanStatus, now time.Time) kudo.PlanStatus {
	open := true
	for p := range status.Phases {
		phase := &status.Phases[p]
		settlePhase(spec.Phases[p], phase, open)
		open = open && (spec.Strategy == kudo.Parallel || phase.Status == kudo.Complete)
	}
	states, messages := collect(status.Phases, func(p kudo.PhaseStatus) (kudo.ExecutionStatus, string) {
		return p.Status, quoted("phase", p.Name, p.Message)
	})
	status.Status, status.Message = worst(states), firstOf(messages)
	status.LastUpdatedTimestamp = before.LastUpdatedTimestamp
	if status.Status != before.Status || status.Message != before.Message {
		status.LastUpdatedTimestamp = &metav1.Time{Time: now}
	}
	return status
}

func settlePhase(spec kudo.Phase, phase *kudo.PhaseStatus, open bool) {
	for s := range phase.Steps {
		step := &phase.Steps[s]
		settleStep(step, open)
		open = open && (spec.Strategy == kudo.Parallel || step.Status == kudo.Complete)
	}
	states, messages := collect(phase.Steps, func(s kudo.StepStatus) (kudo.ExecutionStatus, string) {
		return s.Status, quoted("step", s.Name, s.Message)
	})
	phase.Status, phase.Message = worst(states), firstOf(messages)
	if len(phase.Steps) == 0 && !open {
		phase.Status = kudo.Pending
	}
}

func settleStep(step *kudo.StepStatus, open bool) {
	states, messages := collect(step.Tasks, func(t kudo.TaskStatus) (kudo.ExecutionStatus, string) {
		return t.Status, quoted("task", t.Name, t.Message)
	})
	step.Status, step.Message = worst(states), firstOf(messages)
	if len(step.Tasks) == 0 && !open {
		step.Status = kudo.Pending
	}
}

// collect takes the items' states, and the messages of those that are in the worst of these states.
func collect[T any](items []T, of func(T) (kudo.ExecutionStatus, string)) ([]kudo.ExecutionStatus, []string) {
	states := make([]kudo.ExecutionStatus, len(items))
	messages := make([]string, len(items))
	for i, item := range items {
		states[i], messages[i] = of(item)
	}
	overall := worst(states)
	for i := range items {
		if states[i] != overall {
			messages[i] = ""
		}
	}
	return states, messages
}

// worst is the state of a whole whose parts are in these states.
func worst(states []kudo.ExecutionStatus) kudo.ExecutionStatus {
	has := func(s kudo.ExecutionStatus) bool { return slices.Contains(states, s) }
	all := func(s kudo.ExecutionStatus) bool {
		return !slices.ContainsFunc(states, func(other kudo.ExecutionStatus) bool { return other != s })
	}
	switch {
	case has(kudo.FatalError):
		return kudo.FatalError
	case has(kudo.Error):
		return kudo.Error
	case all(kudo.Complete):
		return kudo.Complete
	case all(kudo.Pending):
		return kudo.Pending
	default:
		return kudo.InProgress
	}
}

func quoted(kind, name, message string) string {
	if message == "" {
		return ""
	}
	return fmt.Sprintf("%s %q: %s", kind, name, message)
}

func firstOf(messages []string) string {
	for _, m := range messages {
		if m != "" {
			return m
		}
	}
	return ""
}
