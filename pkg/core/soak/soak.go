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
	"github.com/tandem-addons/tandem/pkg/text"
)

// Decide returns the record, the condition and the time of the next look. Nothing counts before the plan is complete, and nothing ends a completed soak but
// another execution that changes the Instance.
func Decide(o Observation) Decision {
	if o.HealthyFor <= 0 {
		return Decision{}
	}
	if r := o.Status.Returned; r != nil {
		return Decision{Condition: condition(kudo.ReasonReturned, bound(former.Text(r)))}
	}
	l := look{Observation: o, record: o.lastRecord(), next: o.Memory.withPods(o.Uptime, o.Pods)}
	switch complete := isComplete(o.Status); {
	case l.record != nil && l.record.CompletionTime != nil:
		return l.decide(l.overCondition(), 0)
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
	record := o.lastRecord()
	return o.HealthyFor > 0 && o.Status.Returned == nil && isComplete(o.Status) && (record == nil || record.CompletionTime == nil)
}

// NeedsPods reports whether a look needs the pods of the Instance. The Pods of the observation are ignored.
func NeedsPods(o Observation) bool {
	record := o.lastRecord()
	switch age := o.Memory.age(o.Uptime); {
	case !IsUnderWay(o):
		return false
	case age >= Interval:
		unready, drifted := o.state()
		return record == nil || drifted == "" && (unready == nil || record.Failure == "")
	default: // the last look needs new ones
		l := look{Observation: o, record: record, next: o.Memory}
		return record != nil && record.Since != nil && age >= minReadDelay && o.Memory.problem == "" && l.timeSince(&record.Since) >= o.HealthyFor
	}
}

// Max is the maximum time for which an Instance has to be healthy, and maxSource the maximum length of a text that specifies a time.
const (
	Max       = 24 * time.Hour
	maxSource = 64
)

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
