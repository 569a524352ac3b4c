package soak

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// maxUnhealthy limits how long an Instance may be unhealthy in total before its soak has failed, and minRestarts is how often its containers restart in a soak
// that has failed.
const (
	maxUnhealthy = 5 * time.Minute
	minRestarts  = 3
)

// look is one decision: it changes its own copy of the record.
type look struct {
	Observation
	record *kudo.SoakStatus
	next   Memory
}

// decide returns the decision with that condition. A failure that was just found is looked at again: what acts on it reads the record.
func (l *look) decide(condition *metav1.Condition, after time.Duration) Decision {
	if l.record != nil && l.record.Failure != "" && Failure(l.Status) == "" {
		after = minReadDelay
	}
	return Decision{Record: l.record, Condition: condition, After: after, Memory: l.next}
}

// overCondition returns the condition of a soak that is over.
func (l *look) overCondition() *metav1.Condition {
	c := condition(kudo.ReasonHealthyLongEnough, "the Instance was healthy for long enough after its plan, at "+format(l.record.CompletionTime.Time))
	c.Status = metav1.ConditionTrue
	return c
}

// judge decides about an Instance whose plan is complete.
func (l *look) judge() Decision {
	switch unready, drifted := l.state(); {
	case unready != nil:
		return l.judgeUnhealthy(unready.Message)
	case drifted != "":
		return l.judgeDrifted(drifted)
	default:
		return l.judgeHealthy()
	}
}

// judgeDrifted waits until no object differs.
func (l *look) judgeDrifted(message string) Decision {
	l.interrupt(kudo.ReasonDrifted, message)
	l.stop()
	after := time.Duration(0)
	if l.ChildDrift != "" { // its changes are not watched
		after = Interval
	}
	return l.decide(l.condition(kudo.ReasonDrifted, "no time counts while objects differ from what was applied: "+bound(message)), after)
}

// judgeUnhealthy counts the time in which the Instance is not ready.
func (l *look) judgeUnhealthy(message string) Decision {
	l.interrupt(kudo.ReasonUnhealthy, message)
	if l.record.UnhealthySince == nil {
		l.stop()
		l.start(&l.record.UnhealthySince, l.Now)
	}
	total := time.Duration(l.record.UnhealthySeconds)*time.Second + l.timeSince(&l.record.UnhealthySince)
	if total >= l.limit() && l.record.Failure == "" {
		l.record.Failure = bound(fmt.Sprintf("the Instance was unhealthy for %s in total since its plan: %s", l.limit(), message))
	}
	after := min(l.untilRead(), max(l.limit()-total, time.Millisecond))
	if l.record.Failure != "" {
		after = 0
	}
	return l.decide(l.condition(kudo.ReasonUnhealthy, "no time counts while the Instance is not ready: "+bound(message)), after)
}

// judgeHealthy counts the time in which the Instance is healthy.
func (l *look) judgeHealthy() Decision {
	if l.record.Since == nil {
		l.stop()
		l.start(&l.record.Since, l.Now)
	}
	l.noteFailedPlan()
	left := l.HealthyFor - l.timeSince(&l.record.Since)
	switch {
	case left > 0:
		return l.decide(l.condition(kudo.ReasonSoaking, l.progress()), min(left, l.untilRead()))
	case !l.Pods.isKnown() && l.next.problem != "":
		return l.decide(l.condition(kudo.ReasonSoaking, "the Instance is healthy for long enough, but "+l.problem()), l.untilRead())
	case !l.Pods.isKnown():
		return l.decide(l.condition(kudo.ReasonSoaking, l.progress()), minReadDelay)
	}
	l.record.CompletionTime = &metav1.Time{Time: l.Now.Truncate(time.Second)}
	l.record.Failure = ""
	return l.decide(l.overCondition(), 0)
}

// progress returns since when the Instance is healthy, and until when it has to be, as a part of a sentence.
func (l *look) progress() string {
	since := l.record.Since.Time
	return fmt.Sprintf("healthy since %s, complete at %s", format(since), format(since.Add(l.HealthyFor)))
}

// condition returns condition Soaked of a soak that is not over. It names the last interruption, or why the soak has failed.
func (l *look) condition(reason, message string) *metav1.Condition {
	switch reset := l.record.Reset; {
	case l.record.Failure != "":
		return condition(kudo.ReasonSoakFailed, l.record.Failure+"; "+message)
	case reason != kudo.ReasonSoaking || reset == nil:
	case reset.Reason == kudo.ReasonRestarted:
		return condition(kudo.ReasonRestarted, reset.Message+"; "+message)
	default:
		return condition(reason, message+"; the time was interrupted: "+reset.Message)
	}
	return condition(reason, message)
}

// limit returns how long the Instance may be unhealthy in total.
func (l *look) limit() time.Duration { return min(l.HealthyFor, maxUnhealthy) }

// untilRead returns the time until the pods may be read again.
func (l *look) untilRead() time.Duration { return max(Interval-l.next.age(l.Uptime), time.Millisecond) }

// problem returns why the pods are not known.
func (l *look) problem() string {
	if l.next.problem == "" {
		return "pods were not read"
	}
	return "pods cannot be read: " + bound(l.next.problem)
}

// interrupt records an interruption of the time that counts, once.
func (l *look) interrupt(reason, message string) {
	if last := l.record.Reset; l.record.Since != nil || last == nil || last.Reason != reason && last.Reason != kudo.ReasonRestarted {
		l.reset(reason, message)
	}
}

func (l *look) reset(reason, message string) {
	l.record.Reset = &kudo.SoakReset{Time: metav1.Time{Time: l.Now.Truncate(time.Second)}, Reason: reason, Message: bound(message)}
}

// noteFailedPlan restarts the time if a plan has failed since it began, such as a backup.
func (l *look) noteFailedPlan() {
	var failed string
	var latest time.Time
	for name, status := range l.Status.PlanStatus {
		if at := status.LastUpdatedTimestamp; status.Status == kudo.FatalError && at != nil && at.After(l.record.Since.Time) && at.After(latest) && !at.After(l.Now) {
			failed, latest = name, at.Time
		}
	}
	if failed == "" {
		return
	}
	l.reset(kudo.ReasonPlanFailed, fmt.Sprintf("plan %q failed: %s", failed, l.Status.PlanStatus[failed].Message))
	l.start(&l.record.Since, latest)
}

// noteRestarts restarts the time if a container has restarted since the last look.
func (l *look) noteRestarts() {
	if !l.Pods.isKnown() {
		return
	}
	found := l.Pods.since(l.record.LastRestart, l.Memory)
	if found == nil {
		return
	}
	l.record.Restarts++
	if l.record.FirstRestart == nil {
		l.record.FirstRestart = &metav1.Time{Time: ceil(l.Now)}
	}
	l.record.LastRestart = latestOf(l.record.LastRestart, found.Time)
	l.reset(kudo.ReasonRestarted, found.Message)
	if l.record.Failure == "" && l.record.Restarts >= minRestarts && l.Now.Sub(l.record.FirstRestart.Time) >= l.limit() {
		l.record.Failure = bound(fmt.Sprintf("containers have restarted %d times since the plan: %s", l.record.Restarts, found.Message))
	}
	if began := l.record.Since; began != nil {
		at := l.Now
		if found.Time.After(began.Time) && found.Time.Before(l.Now) {
			at = found.Time
		}
		l.start(&l.record.Since, at)
	}
}
