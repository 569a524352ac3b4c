package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Task identifies a task of a plan by the indices of its phase, its step and itself.
type Task struct{ Phase, Step, Task int }

// Outcome is the result of the last run or observation of a task.
type Outcome struct {
	// Status is InProgress, Complete, Error (it will be retried), FatalError (it ends the plan), or Pending: the task has not started because
	// objects must be deleted first.
	Status kudo.ExecutionStatus

	// Message names what is waited for, or the failed object and why it failed.
	Message string

	// Passing is true for a FatalError whose reason may pass: a child failed and starts again by itself.
	Passing bool

	// Rendered is the digest of what a complete task has rendered; empty if that is another each time. Skipped is true if the task was not executed.
	Rendered string
	Skipped  bool
}

// Begin returns the status of an execution that has just started.
func Begin(name string, spec kudo.Plan, uid types.UID, now time.Time) kudo.PlanStatus {
	status := blank(name, spec, kudo.Pending)
	status.UID = uid
	return settle(spec, status, kudo.PlanStatus{}, now)
}

// NeverRun returns the status of a plan that was never executed.
func NeverRun(name string, spec kudo.Plan) kudo.PlanStatus {
	return blank(name, spec, kudo.NeverRun)
}

// Normalize returns a status with the shape of its plan, which the rest of this package relies on. This is usually the status itself. A
// restored or edited status may have another shape or belong to another execution than uid. The execution then restarts and keeps the
// recorded state of this execution for parts of the same names. What has ended stays so.
func Normalize(name string, spec kudo.Plan, status kudo.PlanStatus, uid types.UID, now time.Time) kudo.PlanStatus {
	recorded := status.UID == uid && (status.Status.IsRunning() || status.Status.IsTerminal())
	switch {
	case !recorded:
		return Begin(name, spec, uid, now)
	case fits(spec, status):
		return status
	}
	fitted := *status.DeepCopy()
	fitted.Phases = keep(blank(name, spec, kudo.Pending).Phases, status.Phases, func(p, recorded kudo.PhaseStatus) (kudo.PhaseStatus, bool) {
		recorded.Steps = keep(p.Steps, recorded.Steps, func(s, recorded kudo.StepStatus) (kudo.StepStatus, bool) {
			recorded.Tasks = keep(s.Tasks, recorded.Tasks, func(t, recorded kudo.TaskStatus) (kudo.TaskStatus, bool) {
				return recorded, t.Name == recorded.Name
			})
			return recorded, s.Name == recorded.Name
		})
		return recorded, p.Name == recorded.Name
	})
	if status.Status.IsTerminal() {
		return fitted
	}
	return settle(spec, fitted, status, now)
}

// fits reports whether a status has the shape of its plan.
func fits(spec kudo.Plan, status kudo.PlanStatus) bool {
	return slices.EqualFunc(spec.Phases, status.Phases, func(p kudo.Phase, recorded kudo.PhaseStatus) bool {
		return p.Name == recorded.Name && slices.EqualFunc(p.Steps, recorded.Steps, func(s kudo.Step, recorded kudo.StepStatus) bool {
			return s.Name == recorded.Name && slices.EqualFunc(s.Tasks, recorded.Tasks, func(task string, recorded kudo.TaskStatus) bool {
				return task == recorded.Name
			})
		})
	})
}

// keep replaces each part with the recorded one that match finds for it.
func keep[T any](parts, recorded []T, match func(part, recorded T) (T, bool)) []T {
	for i, p := range parts {
		for _, r := range recorded {
			if kept, same := match(p, r); same {
				parts[i] = kept
				break
			}
		}
	}
	return parts
}

// HasProgressed reports whether more tasks may be next now than before.
func HasProgressed(before, after kudo.PlanStatus) bool {
	for p := range after.Phases {
		for s := range after.Phases[p].Steps {
			for t, task := range after.Phases[p].Steps[s].Tasks {
				if task.Status == kudo.Complete && before.Phases[p].Steps[s].Tasks[t].Status != kudo.Complete {
					return true
				}
			}
		}
	}
	return false
}

// AllInProgress reports whether each of the next tasks was just observed in progress: then only a change of its objects or its child continues the
// execution.
func AllInProgress(next []Task, outcomes map[Task]Outcome) bool {
	return !slices.ContainsFunc(next, func(at Task) bool { return outcomes[at].Status != kudo.InProgress })
}

// OnlyMessagesDiffer reports whether two statuses of an Instance differ only in the messages of the running execution.
func OnlyMessagesDiffer(before, after kudo.InstanceStatus) bool {
	if before.Execution == nil || after.Execution == nil {
		return false
	}
	return equality.Semantic.DeepEqual(mute(before), mute(after))
}

// mute returns a status without the messages and timestamps of the execution.
func mute(status kudo.InstanceStatus) kudo.InstanceStatus {
	muted := *status.DeepCopy()
	last := muted.PlanStatus[muted.Execution.Plan]
	last.Message, last.LastUpdatedTimestamp = "", nil
	for p := range last.Phases {
		phase := &last.Phases[p]
		phase.Message = ""
		for s := range phase.Steps {
			phase.Steps[s].Message = ""
			for t := range phase.Steps[s].Tasks {
				phase.Steps[s].Tasks[t].Message = ""
			}
		}
	}
	if muted.PlanStatus != nil {
		muted.PlanStatus[muted.Execution.Plan] = last
	}
	for i := range muted.Conditions {
		if kind := muted.Conditions[i].Type; kind == kudo.ConditionReady || kind == kudo.ConditionAvailable || kind == kudo.ConditionStalled {
			muted.Conditions[i].Message = ""
		}
	}
	return muted
}

// Next lists the next tasks: those that may run in parallel now. A task stays in the list until it is recorded as complete. The list is
// empty once the execution has ended. While it is suspended, only the tasks of steps that have started are listed.
func Next(spec kudo.Plan, status kudo.PlanStatus) []Task {
	return slices.DeleteFunc(nextTasks(spec, status), func(at Task) bool {
		return status.SuspendedSince != nil && !hasStarted(status.Phases[at.Phase].Steps[at.Step])
	})
}

// hasStarted reports whether a task of a step was executed, or is in progress.
func hasStarted(step kudo.StepStatus) bool {
	return slices.ContainsFunc(step.Tasks, func(t kudo.TaskStatus) bool { return t.Status != kudo.Pending })
}

// nextTasks is Next whether the execution is suspended or not.
func nextTasks(spec kudo.Plan, status kudo.PlanStatus) []Task {
	if status.Status.IsTerminal() {
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

// PendingOf returns those of the next tasks that have not started yet.
func PendingOf(status kudo.PlanStatus, next []Task) []Task {
	return slices.DeleteFunc(slices.Clone(next), func(at Task) bool {
		return status.Phases[at.Phase].Steps[at.Step].Tasks[at.Task].Status != kudo.Pending
	})
}

// Record adds outcomes to a status and then ends an execution that has timed out: a task that was observed as complete is complete, however
// late. Tasks without an outcome, tasks recorded as complete, and an execution that has ended are left unchanged. The input is not
// modified; lastUpdatedTimestamp only changes with status or message.
func Record(spec kudo.Plan, status kudo.PlanStatus, outcomes map[Task]Outcome, now time.Time) kudo.PlanStatus {
	recorded := *status.DeepCopy()
	if status.Status.IsTerminal() {
		return recorded
	}
	for at, outcome := range outcomes {
		task := &recorded.Phases[at.Phase].Steps[at.Step].Tasks[at.Task]
		if task.Status != kudo.Complete {
			task.Status, task.Message = outcome.Status, outcome.Message
			if outcome.Status == kudo.Complete {
				task.Rendered, task.Skipped = outcome.Rendered, outcome.Skipped
			}
		}
	}
	return settle(spec, recorded, status, now)
}

// blank returns a status with the plan's shape.
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

// turns yields the indices of the next items: the first incomplete one, or with parallel every incomplete one.
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

// settle derives the states of steps, phases and the plan from the states of the tasks, in the plan's order: a part without tasks is
// complete once it is next.
func settle(spec kudo.Plan, status, before kudo.PlanStatus, now time.Time) kudo.PlanStatus {
	open := true
	if status.SuspendedSince != nil {
		spec = withoutTimeouts(spec)
	}
	parts := make([]part, len(status.Phases))
	for p := range status.Phases {
		phase := &status.Phases[p]
		settlePhase(spec.Phases[p], phase, open, now)
		parts[p] = part{phase.Status, partMessage("phase", phase.Name, phase.Message)}
		open = open && (spec.Strategy == kudo.Parallel || phase.Status == kudo.Complete)
	}
	wholePlan(spec, &status).settle(parts, true, now)
	if status.Status == kudo.FatalError {
		stop(status.Phases, stopped)
	}
	status.LastUpdatedTimestamp = before.LastUpdatedTimestamp
	if status.Status != before.Status || status.Message != before.Message {
		status.LastUpdatedTimestamp = &metav1.Time{Time: now}
	}
	return status
}

// withoutTimeouts returns a plan that has no timeouts: those of a suspended execution stop.
func withoutTimeouts(spec kudo.Plan) kudo.Plan {
	endless := *spec.DeepCopy()
	endless.Timeout = nil
	for p := range endless.Phases {
		endless.Phases[p].Timeout = nil
		for s := range endless.Phases[p].Steps {
			endless.Phases[p].Steps[s].Timeout = nil
		}
	}
	return endless
}

func settlePhase(spec kudo.Phase, phase *kudo.PhaseStatus, open bool, now time.Time) {
	turn := open
	parts := make([]part, len(phase.Steps))
	for s := range phase.Steps {
		step := &phase.Steps[s]
		settleStep(spec.Steps[s], step, open, now)
		parts[s] = part{step.Status, partMessage("step", step.Name, step.Message)}
		open = open && (spec.Strategy == kudo.Parallel || step.Status == kudo.Complete)
	}
	wholePhase(spec, phase).settle(parts, turn, now)
}

func settleStep(spec kudo.Step, step *kudo.StepStatus, open bool, now time.Time) {
	parts := make([]part, len(step.Tasks))
	for t, task := range step.Tasks {
		parts[t] = part{task.Status, partMessage("task", task.Name, task.Message)}
	}
	wholeStep(spec, step).settle(parts, open, now)
}

// part is the state of one part of a whole.
type part struct {
	status  kudo.ExecutionStatus
	message string
}

// The beginnings of the messages of a plan, phase or step that timed out, and of a task that stopped with its plan.
const (
	timedOutAfter = "timed out after "
	stopped       = "stopped"
)

// whole is the common part of plans, phases and steps: their state depends on their parts, and they may time out.
type whole struct {
	status    *kudo.ExecutionStatus
	message   *string
	started   **metav1.Time
	suspended *int64 // seconds
	timeout   *metav1.Duration
}

func wholePlan(spec kudo.Plan, s *kudo.PlanStatus) whole {
	return whole{&s.Status, &s.Message, &s.StartedTimestamp, &s.SuspendedSeconds, spec.Timeout}
}

func wholePhase(spec kudo.Phase, s *kudo.PhaseStatus) whole {
	return whole{&s.Status, &s.Message, &s.StartedTimestamp, &s.SuspendedSeconds, spec.Timeout}
}

func wholeStep(spec kudo.Step, s *kudo.StepStatus) whole {
	return whole{&s.Status, &s.Message, &s.StartedTimestamp, &s.SuspendedSeconds, spec.Timeout}
}

// settle derives the state from the states of the parts, with the message of the first part in that state. open is true once the whole is
// next.
func (w whole) settle(parts []part, open bool, now time.Time) {
	*w.status, *w.message = worst(parts), ""
	for _, p := range parts {
		waits := *w.status == kudo.InProgress && p.status == kudo.Pending
		if (p.status == *w.status || waits) && p.message != "" {
			*w.message = p.message
			break
		}
	}
	if !open {
		if len(parts) == 0 {
			*w.status = kudo.Pending
		}
		return
	}
	if *w.started == nil {
		*w.started = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	if deadline := w.deadline(); !deadline.IsZero() && !now.Before(deadline) {
		*w.status, *w.message = kudo.FatalError, strings.TrimSuffix(fmt.Sprintf(timedOutAfter+"%s: %s", w.timeout.Duration, *w.message), ": ")
	}
}

// deadline returns when the whole times out; zero if it has no timeout or does not run. Timestamps in a status have whole seconds, so one
// second is added: the timeout may be late by that, and is never early.
func (w whole) deadline() time.Time {
	if w.timeout == nil || w.timeout.Duration <= 0 || *w.started == nil || w.status.IsTerminal() {
		return time.Time{}
	}
	return (*w.started).Add(w.timeout.Duration + w.suspension() + time.Second)
}

// suspension returns how long the whole was suspended while it ran. Another writer may have recorded any number: it adds a year at most.
func (w whole) suspension() time.Duration {
	return time.Duration(min(max(*w.suspended, 0), maxSuspendedSeconds)) * time.Second
}

// maxSuspendedSeconds is the maximum time of suspensions that is recorded, in seconds: a year.
const maxSuspendedSeconds = 366 * 24 * 60 * 60

// wholesOf returns the plan, its phases and its steps.
func wholesOf(spec kudo.Plan, status *kudo.PlanStatus) []whole {
	wholes := []whole{wholePlan(spec, status)}
	for p := range status.Phases {
		wholes = append(wholes, wholePhase(spec.Phases[p], &status.Phases[p]))
		for s := range status.Phases[p].Steps {
			wholes = append(wholes, wholeStep(spec.Phases[p].Steps[s], &status.Phases[p].Steps[s]))
		}
	}
	return wholes
}

// Deadline returns the earliest deadline of the running parts of an execution; zero if there is none, or while it is suspended.
func Deadline(spec kudo.Plan, status kudo.PlanStatus) time.Time {
	if status.Status.IsTerminal() || status.SuspendedSince != nil {
		return time.Time{}
	}
	wholes := wholesOf(spec, &status)
	var first time.Time
	for _, w := range wholes {
		if at := w.deadline(); first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// worst returns the state of a whole with parts in these states.
func worst(parts []part) kudo.ExecutionStatus {
	count := map[kudo.ExecutionStatus]int{}
	for _, p := range parts {
		count[p.status]++
	}
	switch {
	case count[kudo.FatalError] > 0:
		return kudo.FatalError
	case count[kudo.Error] > 0:
		return kudo.Error
	case count[kudo.Complete] == len(parts):
		return kudo.Complete
	case count[kudo.Pending] == len(parts):
		return kudo.Pending
	default:
		return kudo.InProgress
	}
}

// IsWait reports whether a reason of condition Ready is that a plan waits for something outside of the Instance.
func IsWait(reason string) bool { return reason == kudo.ReasonSecretNotFound || waitsToStart(reason) }

// waitsToStart reports whether a reason of condition Ready is that a plan does not start yet, or does not continue, although nothing has failed.
func waitsToStart(reason string) bool {
	switch reason {
	case kudo.ReasonKubernetesVersionUnsupported, kudo.ReasonNameCollision, kudo.ReasonContentIncomplete:
		return true
	}
	return false
}

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
