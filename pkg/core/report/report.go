// Package report decides what the agent reports to the hub about an Instance, and when. It touches no cluster.
package report

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
	"github.com/tandem-addons/tandem/pkg/core/pace"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// Observation is what a report depends on.
type Observation struct {
	OnHub *kudo.Instance
	// Mirror is the signed mirror; nil if there is none.
	Mirror *kudo.Instance
	// Removed means that the removal is complete, and Problem is why the Instance cannot be mirrored: a mirror shows neither.
	Removed bool
	Problem string
}

// Status returns the desired status on the hub; nil if the agent has nothing to report yet. It ignores a mirror of another Instance of that
// name. A condition that does not come from the engine has no transition time yet.
func Status(o Observation) *kudo.InstanceStatus {
	mirrored := o.Mirror != nil && mirror.Mirrors(o.Mirror, o.OnHub) && mirror.HandedOver(o.Mirror)
	switch {
	case o.Removed:
		rest := o.OnHub.Status
		rest.Inventory = nil
		return withReady(o, rest, kudo.ReasonRemoved, plan.NothingLeft)
	case mirrored && o.Problem != "":
		return withReady(o, o.Mirror.Status, kudo.ReasonNotMirrored, o.Problem)
	case mirrored:
		return reportable(o.Mirror.Status)
	case o.Problem != "":
		return withReady(o, o.OnHub.Status, kudo.ReasonNotMirrored, o.Problem)
	default:
		return nil
	}
}

// withReady returns the agent's part of a status, with a condition Ready that does not come from the engine.
func withReady(o Observation, status kudo.InstanceStatus, reason, message string) *kudo.InstanceStatus {
	part := reportable(status)
	ready := plan.Condition(metav1.ConditionFalse, reason, message)
	ready.ObservedGeneration = o.OnHub.Generation
	meta.RemoveStatusCondition(&part.Conditions, kudo.ConditionReady)
	meta.RemoveStatusCondition(&part.Conditions, kudo.ConditionStalled)
	part.Conditions = append([]metav1.Condition{ready}, part.Conditions...)
	return part
}

// reportable returns the agent's part of a status.
func reportable(status kudo.InstanceStatus) *kudo.InstanceStatus {
	part := &kudo.InstanceStatus{
		PlanStatus:         status.PlanStatus,
		Execution:          status.Execution,
		Whole:              status.Whole,
		Former:             status.Former,
		Returned:           status.Returned,
		HandledRequests:    status.HandledRequests,
		Inventory:          status.Inventory,
		Tasks:              status.Tasks,
		History:            status.History,
		Diagnosis:          status.Diagnosis,
		Drift:              status.Drift,
		Soak:               status.Soak,
		ObservedGeneration: status.ObservedGeneration,
	}
	for _, name := range []string{
		kudo.ConditionReady, kudo.ConditionStalled, kudo.ConditionLastRequestSucceeded, kudo.ConditionWaiting, kudo.ConditionDrifted,
		kudo.ConditionSoaked,
	} {
		if condition := meta.FindStatusCondition(status.Conditions, name); condition != nil {
			part.Conditions = append(part.Conditions, *condition)
		}
	}
	return part
}

// IsUpToDate reports whether the hub has the agent's part of a status.
func IsUpToDate(onHub, want kudo.InstanceStatus) bool {
	return equality.Semantic.DeepEqual(*reportable(onHub), want)
}

// HasEnded reports whether a status has an execution that has ended.
func HasEnded(want kudo.InstanceStatus) bool {
	last := want.Execution
	return last != nil && want.PlanStatus[last.Plan].Status.IsTerminal()
}

// IsProgress reports whether a status is intermediate: a plan or a removal is in progress, and a later report will show its end.
func IsProgress(want kudo.InstanceStatus) bool {
	ready := meta.FindStatusCondition(want.Conditions, kudo.ConditionReady)
	return want.Execution != nil && !HasEnded(want) || ready != nil && ready.Reason == kudo.ReasonRemoving
}

// MaxProgressDelay is how long a report of progress waits while too many Instances report progress: most plans and removals end before, and then
// their progress needs no report.
const MaxProgressDelay = 10 * time.Second

// Pending is a report that has not been sent yet.
type Pending struct {
	Now time.Time
	// Since is when it became pending, and Sent when the last report of the Instance was sent; zero if there was none.
	Since, Sent time.Time
	// Interval is the minimum time between two reports of one Instance.
	Interval time.Duration
}

// DelayOf returns how long the report of a status waits, so that an Instance is written at most once per interval. Progress waits for an interval even
// if nothing was reported before. If too many Instances report progress, it waits for MaxProgressDelay, and then for one interval at a time until
// there are fewer. early is whether the budget of early reports applies.
func DelayOf(want kudo.InstanceStatus, p Pending) (delay pace.Delay, early bool) {
	if !IsProgress(want) {
		return pace.Interval{Min: p.Interval}.After(p.Now.Sub(p.Sent)), false
	}
	limit, age := max(MaxProgressDelay, p.Interval), p.Now.Sub(p.Since)
	if age < limit {
		return pace.Interval{Min: p.Interval, Retry: limit, Max: limit}.After(age), true
	}
	return pace.Delay{Max: p.Interval}, false
}
