// Package dependency decides what the add-ons that an add-on depends on mean for it on one managed cluster (OCM's Addon
// Dependency Management proposal): needs and seen add-ons in, verdict out. It is pure and touches no cluster.
package dependency

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// Cause says why a dependency is not satisfied. It goes to events, metrics and the CLI; the condition does not carry it.
type Cause string

// The causes, in the order in which they are looked for.
const (
	// Circular: the add-on depends, over others or immediately, on the one that is judged. Neither can ever come first.
	Circular Cause = "Circular"
	// NoSuchAddOn: neither a ClusterManagementAddOn nor a ManagedClusterAddOn of the name exists.
	NoSuchAddOn Cause = "NoSuchAddOn"
	// NotInstalled: the add-on is not enabled on the cluster.
	NotInstalled Cause = "NotInstalled"
	// Deleting: the add-on is being removed from the cluster.
	Deleting Cause = "Deleting"
	// Unknown: nobody knows at the moment whether the add-on is available.
	Unknown Cause = "Unknown"
	// NotAvailable: the add-on is not available, or has not said so yet.
	NotAvailable Cause = "NotAvailable"
)

// Seen is what is known of one add-on that is depended on. The zero value is an add-on that does not exist anywhere.
type Seen struct {
	// Defined is true if a ClusterManagementAddOn of the name exists.
	Defined bool
	// Installed is true if a ManagedClusterAddOn of the name exists in the cluster's namespace.
	Installed bool
	// Deleting is true if the ManagedClusterAddOn has a deletion timestamp.
	Deleting bool
	// Available and Reason are those of its condition Available; empty where it has none.
	Available metav1.ConditionStatus
	Reason    string
	// Cycle is the way from the judged add-on over this one back to it (see Cycle); nil where it is on none.
	Cycle []string
}

// See is what is known of an add-on from its objects, each nil where it does not exist.
func See(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn) Seen {
	seen := Seen{Defined: definition != nil, Installed: addOn != nil}
	if addOn == nil {
		return seen
	}
	seen.Deleting = !addOn.DeletionTimestamp.IsZero()
	for _, condition := range addOn.Status.Conditions {
		if condition.Type == addonv1alpha1.ConditionAvailable {
			seen.Available, seen.Reason = condition.Status, condition.Reason
		}
	}
	return seen
}

// Judgement is the verdict over one dependency.
type Judgement struct {
	Name string
	Type addonv1alpha1.DependencyType
	// Message is what the declaration says is lost without the dependency, as one line.
	Message string
	// Satisfied is true if the dependency is there and available, or was when that was last known (Held).
	Satisfied bool
	// Held is true if the dependency cannot be reached, so that the last verdict over it stands.
	Held bool
	// Cause is empty for a satisfied dependency.
	Cause Cause
	// Cycle is the way from the judged add-on back to it, where that is the cause.
	Cycle []string
}

// Verdict judges every dependency of an add-on: the Required ones first, then the Optional ones, each in the order declared.
type Verdict []Judgement

// Evaluate judges needs by the add-ons seen on the cluster, keyed by name; one that is missing there does not exist.
//
// previous is the add-on's own condition Degraded as it stands (nil if none). It holds the last verdict, which a dependency
// keeps while its cluster cannot be reached: an outage of a link does not cascade, and recovery does not flap. A dependency
// that was never judged before counts as satisfied then, for nothing speaks against it yet; NotReady still lists it.
//
// A dependency on a circle is not satisfied whatever is seen of it: otherwise the members that happen to be available would
// hold each other up until one of them fails, and then never come back.
func Evaluate(needs []addonv1alpha1.AddonDependency, seen map[string]Seen, previous *metav1.Condition) Verdict {
	last := recall(previous)
	verdict := make(Verdict, 0, len(needs))
	for _, need := range needs {
		verdict = append(verdict, judge(need, seen[need.Name], last))
	}
	slices.SortStableFunc(verdict, func(a, b Judgement) int { return rank(a.Type) - rank(b.Type) })
	return verdict
}

// judge judges one dependency; last is what was decided before.
func judge(need addonv1alpha1.AddonDependency, seen Seen, last memory) Judgement {
	j := Judgement{Name: need.Name, Type: need.Type, Message: oneLine(need.Message)}
	if j.Type == "" {
		j.Type = addonv1alpha1.DependencyTypeRequired
	}
	switch {
	case len(seen.Cycle) > 0:
		j.Cause, j.Cycle = Circular, seen.Cycle
	case seen.outOfReach():
		j.Held = true
		if last.unmet(j) {
			j.Cause = Unknown
		}
	default:
		j.Cause = seen.cause()
	}
	j.Satisfied = j.Cause == ""
	return j
}

// outOfReach reports that the add-on is there, but its cluster cannot be reached, so that nobody knows how it is.
func (s Seen) outOfReach() bool {
	return s.Installed && !s.Deleting &&
		s.Available == metav1.ConditionUnknown && s.Reason == addonv1alpha1.ReasonClusterLeaseStopped
}

// cause says why the add-on does not satisfy those that depend on it; empty if it does.
func (s Seen) cause() Cause {
	switch {
	case !s.Installed && !s.Defined:
		return NoSuchAddOn
	case !s.Installed:
		return NotInstalled
	case s.Deleting:
		return Deleting
	case s.Available == metav1.ConditionTrue:
		return ""
	case s.Available == metav1.ConditionUnknown:
		return Unknown
	default:
		return NotAvailable
	}
}

// rank orders dependencies by type.
func rank(t addonv1alpha1.DependencyType) int {
	if t == addonv1alpha1.DependencyTypeOptional {
		return 1
	}
	return 0
}

// Unmet are the dependencies that are not satisfied, in the verdict's order.
func (v Verdict) Unmet() []Judgement {
	var unmet []Judgement
	for _, j := range v {
		if !j.Satisfied {
			unmet = append(unmet, j)
		}
	}
	return unmet
}

// Reason is the reason of condition Degraded, empty where all dependencies are satisfied.
func (v Verdict) Reason() string {
	unmet := v.Unmet()
	switch {
	case len(unmet) == 0:
		return ""
	case unmet[0].Type == addonv1alpha1.DependencyTypeOptional: // Required ones stand first
		return addonv1alpha1.ReasonDependencyNotSatisfied
	default:
		return addonv1alpha1.ReasonRequiredDependencyNotSatisfied
	}
}

// Condition is the condition Degraded that the verdict asks for, or nil where it asks for none.
func (v Verdict) Condition() *metav1.Condition {
	reason := v.Reason()
	if reason == "" {
		return nil
	}
	return &metav1.Condition{
		Type:    addonv1alpha1.ConditionDegraded,
		Status:  metav1.ConditionTrue,
		Reason:  reason,
		Message: v.Message(),
	}
}

// NotReady are the Required dependencies that keep the add-on from being installed for the first time: those that are not
// satisfied, and those of which that is not known at the moment.
func (v Verdict) NotReady() []Judgement {
	var missing []Judgement
	for _, j := range v {
		if j.Type == addonv1alpha1.DependencyTypeRequired && (!j.Satisfied || j.Held) {
			missing = append(missing, j)
		}
	}
	return missing
}

// Names are the names of the add-ons that are judged.
func Names(judgements []Judgement) []string {
	names := make([]string, 0, len(judgements))
	for _, j := range judgements {
		names = append(names, oneLine(j.Name))
	}
	return names
}

// Summary names the given dependencies with type and cause, for events and logs: "Required zookeeper (NotInstalled)".
func Summary(judgements []Judgement) string {
	parts := make([]string, 0, len(judgements))
	for _, j := range judgements {
		cause := j.Cause
		if cause == "" {
			cause = Unknown
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", j.Type, oneLine(j.Name), cause))
	}
	return strings.Join(parts, ", ")
}
