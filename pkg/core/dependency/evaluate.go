// Package dependency evaluates the dependencies of an add-on on one managed cluster (OCM's Addon Dependency Management proposal): it turns
// declared dependencies and observed add-ons into a verdict. It is pure and touches no cluster.
package dependency

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// Cause is why a dependency is not satisfied. Events, metrics and the CLI show it; the condition does not.
type Cause string

// The causes, in the order in which they are checked.
const (
	// Circular: the dependency depends, directly or transitively, on the add-on that declares it. Neither can ever be installed first.
	Circular Cause = "Circular"
	// NoSuchAddOn: neither a ClusterManagementAddOn nor a ManagedClusterAddOn of that name exists.
	NoSuchAddOn Cause = "NoSuchAddOn"
	// NotInstalled: the add-on is not enabled on the cluster.
	NotInstalled Cause = "NotInstalled"
	// PlacementDecides: the add-on is not enabled on the cluster, and addon-manager does not enable it, because Placements decide where it is.
	PlacementDecides Cause = "PlacementDecides"
	// Declined: the add-on is not enabled on the cluster, and addon-manager does not enable it, because it was disabled after it had been enabled.
	Declined Cause = "Declined"
	// Deleting: the add-on is being removed from the cluster.
	Deleting Cause = "Deleting"
	// Unknown: the availability of the add-on is currently unknown.
	Unknown Cause = "Unknown"
	// NotAvailable: the add-on is not available, or has not reported its availability yet.
	NotAvailable Cause = "NotAvailable"
	// VersionMismatch: the add-on is available, and its version does not satisfy the constraint of the dependency, or is unknown.
	VersionMismatch Cause = "VersionMismatch"
)

// Seen is the observed state of a dependency. The zero value is an add-on that does not exist.
type Seen struct {
	// Defined is true if a ClusterManagementAddOn of that name exists.
	Defined bool
	// Placed is true if its ClusterManagementAddOn has an install strategy other than Manual.
	Placed bool
	// Declined is true if it was enabled together with the add-on that depends on it. It is not enabled again automatically.
	Declined bool
	// Installed is true if a ManagedClusterAddOn of that name exists in the cluster's namespace.
	Installed bool
	// Deleting is true if the ManagedClusterAddOn has a deletion timestamp.
	Deleting bool
	// Deferred is true if its removal has not started, because dependents that are deleted together with it go first. It works until then.
	Deferred bool
	// Available and Reason are the status and reason of condition Available; empty if the condition is missing.
	Available metav1.ConditionStatus
	Reason    string
	// Cycle is the path from the declaring add-on over this one and back (see Cycle); nil if it is on no cycle.
	Cycle []string
	// Versions are those that run. Only a dependency with a constraint depends on them.
	Versions Versions
	// Constraints are those of the running releases of the add-on that depends on it, in addition to that of the declared dependency.
	Constraints []string
}

// See returns the observed state of an add-on from its objects, each nil if it does not exist.
func See(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn) Seen {
	seen := Seen{Defined: definition != nil, Placed: IsPlaced(definition), Installed: addOn != nil}
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

// Judgement is the verdict on one dependency.
type Judgement struct {
	// Name is the declared name. By is the candidate whose state decides: the one that satisfies the dependency, or the one that comes closest. It
	// differs from Name only if it is an alternative.
	Name, By string
	Type     addonv1alpha1.DependencyType
	// Message is the declared effect of a missing dependency, on one line.
	Message string
	// Satisfied is true if the dependency is installed and available, or was at the last observation (Held).
	Satisfied bool
	// Held is true if the dependency is unreachable and keeps its last verdict.
	Held bool
	// Cause is empty for a satisfied dependency.
	Cause Cause
	// Updating is true if the dependency is available, and a plan updates it.
	Updating bool
	// Deferred is true if the dependency is available, and is removed after its dependents that are being removed.
	Deferred bool
	// Automatic is true if the dependency is not installed, and addon-manager enables it.
	Automatic bool
	// Cycle is the path from the declaring add-on back to itself; only set if Cause is Circular.
	Cycle []string
	// Mismatch names the constraint and the version, and begins with a verb; only set if Cause is VersionMismatch.
	Mismatch string
	// Alternatives are the other candidates, in the declared order. Candidates are the verdicts on all of them if none satisfies the dependency.
	Alternatives []string
	Candidates   []Judgement
}

// Verdict holds a Judgement for each dependency of an add-on: first the Required ones, then the Optional ones, each in the declared order.
type Verdict []Judgement

// Evaluate judges needs by the observed add-ons of the cluster, keyed by name. An add-on that is missing from the map does not exist. needs are those
// that exist on the cluster (see On).
//
// A dependency with alternatives is satisfied if any of its candidates satisfies it. One that is ready precedes one that is held or updated, and
// candidates that are equally good count in the declared order.
//
// previous is the current condition Degraded of the add-on (nil if none). It holds the last verdict, which a dependency keeps while its
// cluster is unreachable: a network outage does not cascade, and recovery does not flap. A dependency without a previous verdict is then
// satisfied; NotReady still lists it.
//
// A dependency on a cycle is never satisfied. Otherwise the members that happen to be available would keep each other available until one
// of them fails, and then never recover.
func Evaluate(needs []addonv1alpha1.AddonDependency, seen map[string]Seen, previous *metav1.Condition) Verdict {
	last := recall(previous)
	verdict := make(Verdict, 0, len(needs))
	for _, need := range needs {
		verdict = append(verdict, judge(need, seen, last))
	}
	slices.SortStableFunc(verdict, func(a, b Judgement) int { return rank(a.Type) - rank(b.Type) })
	return verdict
}

// judge judges one dependency by its candidates; last is the previous verdict.
func judge(need addonv1alpha1.AddonDependency, seen map[string]Seen, last memory) Judgement {
	if len(need.Alternatives) == 0 {
		return judgeCandidate(need, need.Name, seen[need.Name], last)
	}
	candidates := make([]Judgement, 0, 1+len(need.Alternatives))
	for _, name := range Candidates(need) {
		candidates = append(candidates, judgeCandidate(need, name, seen[name], last))
	}
	best := slices.MinFunc(candidates, func(a, b Judgement) int { return a.distance() - b.distance() })
	best.Alternatives = slices.DeleteFunc(Candidates(need), func(name string) bool { return name == best.By })
	if !best.Satisfied {
		best.Candidates = candidates
	}
	return best
}

// distance orders candidates: those that satisfy a dependency, then the others by what they lack.
func (j Judgement) distance() int {
	switch {
	case j.Satisfied && !j.Held && !j.Updating && !j.Deferred:
		return 0
	case j.Satisfied && !j.Held:
		return 1
	case j.Satisfied:
		return 2
	default:
		return 3 + slices.Index([]Cause{VersionMismatch, NotAvailable, Unknown, Deleting, NotInstalled, PlacementDecides, Declined, Circular, NoSuchAddOn}, j.Cause)
	}
}

// judgeCandidate judges one dependency by one of its candidates.
func judgeCandidate(need addonv1alpha1.AddonDependency, by string, seen Seen, last memory) Judgement {
	j := Judgement{Name: need.Name, By: by, Type: need.Type, Message: oneLine(need.Message)}
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
		j = j.missing(need, seen)
	}
	if j.Cause == "" && !j.Held {
		j = j.compared(need.Version, seen, last)
	}
	j.Satisfied = j.Cause == ""
	if j.Satisfied && !j.Held {
		j.Updating, j.Deferred = seen.Reason == addonv1alpha1.ReasonUpdating, seen.Deferred
	}
	return j
}

// compared returns the judgement on an add-on that is available with the verdict on its versions. The declared constraint is empty if there is none.
func (j Judgement) compared(declared string, seen Seen, last memory) Judgement {
	constraints := seen.Constraints
	if declared != "" {
		constraints = append([]string{declared}, constraints...)
	}
	for _, constraint := range constraints {
		if j.Mismatch = seen.Versions.mismatch(constraint); j.Mismatch != "" {
			break
		}
	}
	if seen.Versions.Unread {
		j.Mismatch = last.mismatch(j)
	}
	if j.Mismatch = oneLine(j.Mismatch); j.Mismatch != "" {
		j.Cause = VersionMismatch
	}
	return j
}

// missing returns the judgement with why the add-on does not satisfy its dependents, and whether addon-manager enables it.
func (j Judgement) missing(need addonv1alpha1.AddonDependency, seen Seen) Judgement {
	j.Cause = seen.cause()
	if j.Cause != NotInstalled || need.Install != addonv1alpha1.InstallAuto || j.By != need.Name {
		return j
	}
	switch {
	case seen.Placed:
		j.Cause = PlacementDecides
	case seen.Declined:
		j.Cause = Declined
	default:
		j.Automatic = true
	}
	return j
}

// isGoing reports whether the removal of the add-on has started.
func (s Seen) isGoing() bool { return s.Deleting && !s.Deferred }

// outOfReach reports whether the add-on is installed on a cluster that is unreachable, so that its availability is unknown.
func (s Seen) outOfReach() bool {
	return s.Installed && !s.isGoing() &&
		s.Available == metav1.ConditionUnknown && s.Reason == addonv1alpha1.ReasonClusterLeaseStopped
}

// cause returns why the add-on does not satisfy its dependents; empty if it does.
func (s Seen) cause() Cause {
	switch {
	case !s.Installed && !s.Defined:
		return NoSuchAddOn
	case !s.Installed:
		return NotInstalled
	case s.isGoing():
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

// Unmet returns the dependencies that are not satisfied, in the verdict's order.
func (v Verdict) Unmet() []Judgement {
	var unmet []Judgement
	for _, j := range v {
		if !j.Satisfied {
			unmet = append(unmet, j)
		}
	}
	return unmet
}

// Reason returns the reason of condition Degraded; empty if all dependencies are satisfied.
func (v Verdict) Reason() string {
	unmet := v.Unmet()
	switch {
	case len(unmet) == 0:
		return ""
	case unmet[0].Type == addonv1alpha1.DependencyTypeOptional: // Required dependencies are first
		return addonv1alpha1.ReasonDependencyNotSatisfied
	default:
		return addonv1alpha1.ReasonRequiredDependencyNotSatisfied
	}
}

// Condition returns the condition Degraded of the verdict; nil if all dependencies are satisfied.
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

// NotReady returns the Required dependencies that block the first installation of the add-on: those that are not satisfied, those with a
// currently unknown state, those that a plan updates, and those that are about to be removed.
func (v Verdict) NotReady() []Judgement {
	var missing []Judgement
	for _, j := range v {
		if j.Type == addonv1alpha1.DependencyTypeRequired && (!j.Satisfied || j.Held || j.Updating || j.Deferred) {
			missing = append(missing, j)
		}
	}
	return missing
}

// Names returns the names of the judged add-ons: the candidate that satisfies a dependency, and all candidates of one that is not satisfied ("a or b").
func Names(judgements []Judgement) []string {
	names := make([]string, 0, len(judgements))
	for _, j := range judgements {
		names = append(names, j.names())
	}
	return names
}

func (j Judgement) names() string {
	if len(j.Candidates) == 0 {
		return oneLine(j.By)
	}
	names := make([]string, 0, len(j.Candidates))
	for _, candidate := range j.Candidates {
		names = append(names, oneLine(candidate.By))
	}
	return strings.Join(names, " or ")
}

// Summary lists the given dependencies with type and cause, for events and logs: "Required zookeeper (NotInstalled)", and of alternatives each with its
// own: "Required kafka (NotInstalled) or redpanda (NotAvailable)".
func Summary(judgements []Judgement) string {
	parts := make([]string, 0, len(judgements))
	for _, j := range judgements {
		candidates := j.Candidates
		if len(candidates) == 0 {
			candidates = []Judgement{j}
		}
		causes := make([]string, 0, len(candidates))
		for _, candidate := range candidates {
			causes = append(causes, oneLine(candidate.By)+" ("+candidate.causeText()+")")
		}
		parts = append(parts, string(j.Type)+" "+strings.Join(causes, " or "))
	}
	return strings.Join(parts, ", ")
}

// causeText returns why the dependency blocks a first installation.
func (j Judgement) causeText() string {
	switch {
	case j.Updating:
		return addonv1alpha1.ReasonUpdating
	case j.Deferred:
		return string(Deleting)
	case j.Cause == "":
		return string(Unknown)
	case j.Mismatch != "":
		return string(j.Cause) + ": it " + j.Mismatch
	default:
		return string(j.Cause)
	}
}
