package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
)

// SuspendedError reports that a plan does not start because the Instance is suspended. By names the objects on the hub that suspend it; empty if only its
// spec does.
type SuspendedError struct{ Plan, By string }

func (e *SuspendedError) Error() string {
	return fmt.Sprintf("plan %q waits: %s", e.Plan, suspension.Message(e.By))
}

// ClosedError reports that a plan does not start because a maintenance window is closed.
type ClosedError struct{ Plan, Reason string }

func (e *ClosedError) Error() string {
	return fmt.Sprintf("plan %q waits for a maintenance window, %s", e.Plan, e.Reason)
}

// holdError returns why a plan does not start now although nothing is wrong; nil if it starts.
func (s State) holdError(plan string) error {
	switch {
	case s.Suspended:
		return &SuspendedError{Plan: plan, By: s.SuspendedBy}
	case s.Closed != "":
		return &ClosedError{Plan: plan, Reason: s.Closed}
	default:
		return nil
	}
}

// MarkSuspension returns the status of an execution with a record of whether it is suspended now (DESIGN §11.2). The time of a suspension that is over
// is added to the parts that ran during it: their timeouts do not include it. An agent that was down in the meantime loses none of it.
func MarkSuspension(spec kudo.Plan, status kudo.PlanStatus, suspended bool, now time.Time) kudo.PlanStatus {
	suspended = suspended && status.Status.IsRunning()
	if suspended == (status.SuspendedSince != nil) {
		return status
	}
	marked := *status.DeepCopy()
	if suspended {
		marked.SuspendedSince = &metav1.Time{Time: now.Truncate(time.Second)}
		return marked
	}
	since := marked.SuspendedSince.Time
	marked.SuspendedSince = nil
	for _, w := range wholesOf(spec, &marked) {
		if *w.started == nil || w.status.IsTerminal() {
			continue
		}
		paused := min(max(now.Sub(latest(since, (*w.started).Time)), 0), maxSuspendedSeconds*time.Second) // clocks jump
		*w.suspended = min(int64((w.suspension()+paused)/time.Second), maxSuspendedSeconds)
	}
	return marked
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// NextStep describes the first step that does not begin because the execution is suspended; empty if there is none.
func NextStep(spec kudo.Plan, status kudo.PlanStatus) string {
	for _, at := range nextTasks(spec, status) {
		if phase := status.Phases[at.Phase]; !hasStarted(phase.Steps[at.Step]) {
			return fmt.Sprintf("step %q of phase %q", phase.Steps[at.Step].Name, phase.Name)
		}
	}
	return ""
}

// WaitingCondition returns condition Waiting of an Instance that is suspended by these objects; by none if its own spec suspends it. next is the plan that
// does not start, empty if there is none, and spec and running are the last execution; the zero values if there is none.
func WaitingCondition(by, next string, spec kudo.Plan, running kudo.PlanStatus) *metav1.Condition {
	message := suspension.Message(by) + ": no plan starts"
	switch {
	case running.Status.IsRunning():
		message = fmt.Sprintf("%s: plan %q finishes the steps that it has started", suspension.Message(by), running.Name)
		if step := NextStep(spec, running); step != "" {
			message = fmt.Sprintf("%s: plan %q does not start %s", suspension.Message(by), running.Name, step)
		}
	case next != "":
		message = (&SuspendedError{Plan: next, By: by}).Error()
	}
	return &metav1.Condition{Type: kudo.ConditionWaiting, Status: metav1.ConditionTrue, Reason: kudo.ReasonSuspended, Message: message}
}
