package soak

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Observation is what a decision depends on.
type Observation struct {
	Now time.Time

	// Uptime is how long the process has run, by a clock that nothing sets.
	Uptime time.Duration

	// HealthyFor is how long the Instance has to be healthy; zero if that is not required.
	HealthyFor time.Duration

	// Status is the status of the Instance, with the conditions Ready and Drifted of this look, and with the record of the last look.
	Status kudo.InstanceStatus

	// ChildDrift describes the drift of a child; empty if there is none.
	ChildDrift string

	// Pods is what was read of the pods of the Instance for this look; nil if they were not read.
	Pods *Pods

	// Memory is what the process remembers of the last look.
	Memory Memory
}

// Decision is the result of a look.
type Decision struct {
	// Record and Condition are status.soak and condition Soaked; nil if there are none.
	Record    *kudo.SoakStatus
	Condition *metav1.Condition

	// After is when to look again if nothing changes; zero means never.
	After time.Duration

	// Memory is for the next look.
	Memory Memory
}

// maxMessage is the maximum length of a recorded message.
const maxMessage = 1024

// notCounting is the message of condition Soaked before the end of the plan.
const notCounting = "the time counts from the end of the plan"

// isComplete reports whether all plans are complete for which an Instance has to be healthy, and none waits to start.
func isComplete(status kudo.InstanceStatus) bool {
	if status.Execution == nil || len(status.Execution.Owed) > 0 || !plan.IsWhole(status) || plan.IsInterrupted(status) {
		return false
	}
	ready := meta.FindStatusCondition(status.Conditions, kudo.ConditionReady)
	return ready != nil && ready.Reason != kudo.ReasonPlanPending && ready.Reason != kudo.ReasonPlanInProgress && !plan.IsWait(ready.Reason)
}

// recordOf returns a copy of the record of a status; nil if it is of an earlier execution. A plan that was requested manually, such as a backup, leaves the
// Instance as it is.
func recordOf(status kudo.InstanceStatus) *kudo.SoakStatus {
	if status.Soak == nil || status.Execution == nil || status.Soak.Execution != status.Execution.UID && !plan.IsAside(status) {
		return nil
	}
	return status.Soak.DeepCopy()
}

// lastRecord returns the record of the last look. A soak of less than the required time is not over: it may have been shorter for a moment.
func (o Observation) lastRecord() *kudo.SoakStatus {
	record := recordOf(o.Status)
	if record != nil && record.CompletionTime != nil && record.Since != nil && record.CompletionTime.Sub(record.Since.Time) < o.HealthyFor-time.Second {
		record.CompletionTime = nil
	}
	return record
}

// Failure returns why the soak after the last execution has failed; empty if it has not. The Instance may still recover, unless the caller acts on it.
func Failure(status kudo.InstanceStatus) string {
	if record := recordOf(status); record != nil && record.CompletionTime == nil {
		return record.Failure
	}
	return ""
}

// state returns condition Ready if it is not True, and what differs from what was applied: no time counts then.
func (o Observation) state() (unready *metav1.Condition, drifted string) {
	if ready := meta.FindStatusCondition(o.Status.Conditions, kudo.ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue {
		unready = ready
	}
	if meta.IsStatusConditionTrue(o.Status.Conditions, kudo.ConditionDrifted) {
		return unready, meta.FindStatusCondition(o.Status.Conditions, kudo.ConditionDrifted).Message
	}
	return unready, o.ChildDrift
}

func condition(reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: kudo.ConditionSoaked, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// bound returns a message on one line, within the limit of recorded messages.
func bound(message string) string { return text.Truncate(text.OneLine(message), maxMessage) }
