package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// An owed plan that ended for a reason that may pass starts again after MinRetryDelay. The delay doubles with each retry, up to MaxRetryDelay.
const (
	MinRetryDelay = time.Minute
	MaxRetryDelay = 10 * time.Minute
)

// RerunPrefix is the prefix of the uid of a request of the hub to run a failed plan of a child again: parent.PLAN.UUID.
const RerunPrefix = "parent."

// IsRerun reports whether the uid is of a request of the hub to run a failed plan of a child again.
func IsRerun(uid types.UID) bool { return strings.HasPrefix(string(uid), RerunPrefix) }

// FindRetry returns the owed plan of that name if it failed and starts again by itself; nil otherwise.
func FindRetry(status kudo.InstanceStatus, name string) *kudo.OwedPlan {
	if status.Execution == nil {
		return nil
	}
	if at := owedIndex(status.Execution.Owed, name); at >= 0 && status.Execution.Owed[at].RetryTime != nil {
		return &status.Execution.Owed[at]
	}
	return nil
}

// NextRetry returns the first owed plan that failed and starts again by itself; nil if there is none.
func NextRetry(status kudo.InstanceStatus) *kudo.OwedPlan {
	if status.Execution == nil {
		return nil
	}
	waiting := func(o kudo.OwedPlan) bool { return o.RetryTime != nil }
	if at := slices.IndexFunc(status.Execution.Owed, waiting); at >= 0 {
		return &status.Execution.Owed[at]
	}
	return nil
}

// IsCancelled reports whether the last execution was cancelled, and its plan is still owed.
func IsCancelled(status kudo.InstanceStatus) bool {
	at := owedIndex(status.Execution.Owed, status.Execution.Plan)
	return at >= 0 && status.Execution.Owed[at].Outcome == kudo.OwedCancelled
}

// Retries returns how often the plan of the last execution has started again by itself; zero if a manual request started it.
func Retries(status kudo.InstanceStatus) int32 {
	if status.Execution == nil || IsManual(status) {
		return 0
	}
	return retriesOf(status.Execution.Owed, status.Execution.Plan)
}

// retryDelay returns how long a plan that was retried so often waits before the next retry.
func (o Observation) retryDelay(retries int32) time.Duration {
	delay := cmp.Or(o.RetryDelay, MinRetryDelay)
	for ; retries > 0 && delay < MaxRetryDelay; retries-- {
		delay *= 2
	}
	return min(delay, MaxRetryDelay)
}

// scheduleRetry returns the status, which the caller owns, with the time at which the plan starts again, if it is owed. A plan that a
// person has requested on a child does not start again by itself (DESIGN §6).
func (o Observation) scheduleRetry(status kudo.InstanceStatus, name string, ended time.Time, delay func(int32) time.Duration) kudo.InstanceStatus {
	at := owedIndex(status.Execution.Owed, name)
	if at < 0 || o.isChild() && isByPerson(status, status.PlanStatus[name].UID) {
		return status
	}
	owed := &status.Execution.Owed[at]
	// Timestamps in a status have whole seconds: the retry may be late by one, and is never early.
	owed.RetryTime = &metav1.Time{Time: ended.Add(delay(owed.Retries)).Truncate(time.Second).Add(time.Second)}
	return status
}

func (o Observation) isChild() bool {
	return o.Instance != nil && o.Instance.Annotations[kudo.AnnotationParent] != ""
}

// returnsOnFailure reports whether the Instance returns to the former version if another one fails. Children follow the plans of their parent.
func (o Observation) returnsOnFailure() bool {
	return o.Instance != nil && o.Instance.Spec.OnFailure == kudo.FailureReturn && !o.isChild()
}

// withoutFormer returns the status without the former version once the plan for another one is complete, and the Instance cannot return any more: it was
// healthy for long enough, if it has to be.
func (o Observation) withoutFormer(status kudo.InstanceStatus) kudo.InstanceStatus {
	if status.Former == nil || !IsWhole(status) || o.mayStillReturn(status) {
		return status
	}
	status = *status.DeepCopy()
	status.Former = nil
	return status
}

// mayStillReturn reports whether an Instance whose plan for another version is complete may still return: it has not been healthy for long enough yet.
func (o Observation) mayStillReturn(status kudo.InstanceStatus) bool {
	if !o.returnsOnFailure() || sameReference(status.Former.OperatorVersion, status.Whole.OperatorVersion) {
		return false
	}
	soak, required := status.Soak, o.Instance.Spec.HealthyFor
	isOver := soak != nil && soak.CompletionTime != nil && (soak.Execution == status.Execution.UID || IsAside(status))
	return required != nil && required.Duration > 0 && !isOver
}

// isByPerson reports whether a person requested the execution.
func isByPerson(status kudo.InstanceStatus, execution types.UID) bool {
	return slices.Contains(status.HandledRequests, execution) && !IsRerun(execution)
}

// rescheduleTimedOut returns the status with retries of the plans that timed out before releases recorded when they start again: they start
// at once.
func (o Observation) rescheduleTimedOut(status kudo.InstanceStatus) kudo.InstanceStatus {
	if status.Execution.Return {
		return status
	}
	for i, owed := range status.Execution.Owed {
		ran := status.PlanStatus[owed.Plan]
		if owed.Outcome != kudo.OwedFailed || owed.RetryTime != nil || !hasTimedOut(ran) {
			continue
		}
		ended := o.Now
		if ran.LastUpdatedTimestamp != nil {
			ended = ran.LastUpdatedTimestamp.Time
		}
		status = *status.DeepCopy()
		status = o.scheduleRetry(status, status.Execution.Owed[i].Plan, ended, func(int32) time.Duration { return 0 })
	}
	return status
}

// canPass reports whether an execution that has ended without completing did so only for reasons that may pass: it timed out, or a child did.
// Outcomes are those of its last tasks.
func canPass(status kudo.PlanStatus, outcomes map[Task]Outcome) bool {
	passing := false
	for _, outcome := range outcomes {
		if outcome.Status == kudo.FatalError && !outcome.Passing {
			return false
		}
		passing = passing || outcome.Status == kudo.FatalError
	}
	return status.Status == kudo.FatalError && (passing || hasTimedOut(status))
}

// hasTimedOut reports whether an execution ended because it, a phase or a step timed out, and no task has failed permanently. The messages of
// tasks that were stopped then begin with the reason.
func hasTimedOut(status kudo.PlanStatus) bool {
	if status.Status != kudo.FatalError {
		return false
	}
	timedOut := isTimeout(status.Message)
	for _, phase := range status.Phases {
		timedOut = timedOut || phase.Status == kudo.FatalError && isTimeout(phase.Message)
		for _, step := range phase.Steps {
			timedOut = timedOut || step.Status == kudo.FatalError && isTimeout(step.Message)
			if slices.ContainsFunc(step.Tasks, hasFailed) {
				return false
			}
		}
	}
	return timedOut
}

func isTimeout(message string) bool { return strings.HasPrefix(message, timedOutAfter) }

// hasFailed reports whether a task has failed permanently, and was not only stopped with its plan.
func hasFailed(task kudo.TaskStatus) bool {
	return task.Status == kudo.FatalError && !strings.HasPrefix(task.Message, stopped)
}

// retryTime returns when a failed plan starts again; the zero value if it does not by itself. It starts earlier if the objects that it waited
// for have become healthy since.
func (o Observation) retryTime(owed kudo.OwedPlan) time.Time {
	switch {
	case owed.RetryTime == nil:
		return time.Time{}
	case o.Unblocked:
		return owed.RetryTime.Add(o.retryDelay(0) - o.retryDelay(owed.Retries))
	default:
		return owed.RetryTime.Time
	}
}

// dueRetries returns the failed owed plans that start again now.
func (o Observation) dueRetries() map[string]bool {
	due := map[string]bool{}
	if last := o.Instance.Status.Execution; last != nil {
		for _, owed := range last.Owed {
			if at := o.retryTime(owed); !at.IsZero() && !o.Now.Before(at) {
				due[owed.Plan] = true
			}
		}
	}
	return due
}

// untilRetry returns the time until the next failed plan starts again; zero if none does by itself.
func (o Observation) untilRetry() time.Duration {
	var next time.Time
	for _, owed := range o.Instance.Status.Execution.Owed {
		if at := o.retryTime(owed); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
		if owed.Whole && owed.Outcome != "" {
			break // no plan starts before it is complete
		}
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(o.Now), time.Second)
}

// FailedText says that the last execution of a plan failed and why, and whether the plan starts again by itself.
func FailedText(status kudo.InstanceStatus, name string) string {
	message := fmt.Sprintf("plan %q failed", name)
	if FindRetry(status, name) != nil {
		message += " and will be retried"
	}
	if cause := status.PlanStatus[name].Message; cause != "" {
		message += ": " + cause
	}
	return message
}
