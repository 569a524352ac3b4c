// Package soak decides whether an Instance has been healthy for long enough after its plan, and whether it has failed to be. It touches no cluster.
//
// Decide is the entry point. Health, drift and plans are read from the status of the Instance. Restarts of containers are only seen in its pods, which are
// read while time counts, and not at rest.
package soak

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/former"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

const (
	// Interval is the time between two looks at the pods of an Instance.
	Interval = 15 * time.Second
	// maxUnhealthy limits how long an Instance may be unhealthy in total before its soak has failed, and minRestarts is how often its containers restart
	// in a soak that has failed.
	maxUnhealthy = 5 * time.Minute
	minRestarts  = 3
	// maxMessage is the maximum length of a recorded message.
	maxMessage = 1024
	// maxSource is the maximum length of a text that specifies a time.
	maxSource = 64
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

// Decide returns the record, the condition and the time of the next look. Nothing counts before the plan is complete, and nothing ends a completed soak but
// another execution that changes the Instance.
func Decide(o Observation) Decision {
	if o.HealthyFor <= 0 {
		return Decision{}
	}
	l := look{Observation: o, record: recordOf(o.Status), next: o.Memory.withPods(o.Uptime, o.Pods)}
	if r := o.Status.Returned; r != nil {
		return Decision{Condition: condition(kudo.ReasonReturned, bound(former.Text(r)))}
	}
	switch complete := isComplete(o.Status); {
	case l.record != nil && l.record.CompletionTime != nil:
		return l.decide(l.completion(), 0)
	case !complete && l.record != nil:
		l.stop()
		fallthrough
	case !complete:
		return l.decide(condition(kudo.ReasonPlanPending, notCounting), 0)
	case l.record == nil && !o.Pods.isKnown():
		return l.decide(condition(kudo.ReasonSoaking, "the time does not count yet: "+l.problem()), l.untilRead())
	case l.record == nil:
		l.record = &kudo.SoakStatus{Execution: o.Status.Execution.UID, LastRestart: latestOf(nil, o.Pods.Latest.Time)}
	default:
		l.noteRestarts()
	}
	return l.judge()
}

// IsUnderWay reports whether a look depends on more than the status.
func IsUnderWay(o Observation) bool {
	record := recordOf(o.Status)
	return o.HealthyFor > 0 && o.Status.Returned == nil && isComplete(o.Status) && (record == nil || record.CompletionTime == nil)
}

// NeedsPods reports whether a look needs the pods of the Instance. The Pods of the observation are ignored.
func NeedsPods(o Observation) bool {
	record := recordOf(o.Status)
	switch age := o.Memory.age(o.Uptime); {
	case !IsUnderWay(o):
		return false
	case age >= Interval:
		unready, drifted := o.state()
		return record == nil || drifted == "" && (unready == nil || record.Failure == "")
	default: // the last look needs new ones
		l := look{Observation: o, record: record, next: o.Memory}
		return record != nil && record.Since != nil && age >= minReadDelay && o.Memory.problem == "" && l.elapsedSince(&record.Since) >= o.HealthyFor
	}
}

// Failure returns why the soak after the last execution has failed; empty if it has not. The Instance may still recover, unless the caller acts on it.
func Failure(status kudo.InstanceStatus) string {
	if record := recordOf(status); record != nil && record.CompletionTime == nil {
		return record.Failure
	}
	return ""
}

// Max is the maximum time for which an Instance has to be healthy.
const Max = 24 * time.Hour

// Parse returns the time that a text specifies. Zero means none.
func Parse(source string) (time.Duration, error) {
	const want = "want a time of at most 24h, such as 10m"
	parsed, err := time.ParseDuration(strings.TrimSpace(source))
	if err != nil || len(source) > maxSource || parsed < 0 || parsed > Max || parsed%time.Second != 0 {
		return 0, fmt.Errorf("%s: %s, in whole seconds", text.Quote(source), want)
	}
	return parsed, nil
}

// IsOver reports whether an Instance has been healthy for long enough at its current generation, according to its status on the hub.
func IsOver(i *kudo.Instance) bool {
	soaked := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionSoaked)
	return soaked != nil && soaked.Status == metav1.ConditionTrue && soaked.ObservedGeneration == i.Generation && recordOf(i.Status) != nil
}

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
