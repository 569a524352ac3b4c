package dependency

import (
	"errors"
	"fmt"
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// CircularError reports that a dependency which is about to be declared leads back to the add-on that declares it.
type CircularError struct {
	// AddOn is the name of the ClusterManagementAddOn, Where the field or annotation with the index of the dependency.
	AddOn, Where string
	// Cycle is the way from the add-on back to it.
	Cycle []string
}

func (e *CircularError) Error() string {
	return fmt.Sprintf("ClusterManagementAddOn %q: %s: %s", e.AddOn, e.Where, e.fault())
}

// fault says which way the circle goes, and how to break it.
func (e *CircularError) fault() string {
	if len(e.Cycle) == 2 {
		return fmt.Sprintf("%q depends on itself: remove the entry", e.AddOn)
	}
	return circularOpening + Way(e.Cycle) + ": remove the entry, or another dependency on this way"
}

// Admit says what admission has against the dependencies in a write of a ClusterManagementAddOn; old is nil on create. Only what
// the write itself adds is refused: one that leaves the dependencies as they are passes in silence whatever is wrong with them,
// and one that mends one of two faults passes with a warning of the other. The error joins *MalformedError and *CircularError.
//
// needsOf says what the add-ons depend on, as Needs does: nil means that the add-on has no ClusterManagementAddOn.
func Admit(
	old, new *addonv1alpha1.ClusterManagementAddOn, needsOf func(name string) []addonv1alpha1.AddonDependency,
) (warnings []string, err error) {
	if old != nil && sameDeclaration(old, new) {
		return nil, nil
	}
	if _, annotated := new.Annotations[addonv1alpha1.AnnotationDependencies]; annotated && len(new.Spec.Dependencies) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s is not used, because %s is set: remove one of them", annotation, field))
	}
	before, known := []addonv1alpha1.AddonDependency(nil), []*MalformedError(nil)
	if old != nil {
		before, _, known = read(old)
	}
	needs, where, faults := read(new)
	if needs == nil {
		known = nil // no entry can be told from another in what is no list: whoever writes that is refused
	}
	refused, stood := added(faults, known)
	for _, fault := range stood {
		warnings = append(warnings, fmt.Sprintf("%s: %s", fault.Where, fault.Fault))
	}
	circular, remarks := connect(new.Name, where, needs, before, needsOf)
	return append(warnings, remarks...), join(append(refused, circular...))
}

// connect says which of the dependencies make a circle, and warns of those that did before, or that lead nowhere yet.
func connect(
	addOn, where string, needs, before []addonv1alpha1.AddonDependency, needsOf func(name string) []addonv1alpha1.AddonDependency,
) (refused []error, warnings []string) {
	for i, need := range needs {
		circular := &CircularError{AddOn: addOn, Where: entry(where, i), Cycle: Cycle(addOn, need.Name, needsOf)}
		switch {
		case circular.Cycle != nil && named(before, need.Name):
			warnings = append(warnings, fmt.Sprintf("%s: %s", circular.Where, circular.fault()))
		case circular.Cycle != nil:
			refused = append(refused, circular)
		case need.Name != "" && needsOf(need.Name) == nil:
			warnings = append(warnings, fmt.Sprintf("%s: there is no ClusterManagementAddOn %q yet", circular.Where, need.Name))
		}
	}
	return refused, warnings
}

// sameDeclaration reports whether field and annotation are the same in both.
func sameDeclaration(a, b *addonv1alpha1.ClusterManagementAddOn) bool {
	textA, annotatedA := a.Annotations[addonv1alpha1.AnnotationDependencies]
	textB, annotatedB := b.Annotations[addonv1alpha1.AnnotationDependencies]
	return annotatedA == annotatedB && textA == textB && slices.Equal(a.Spec.Dependencies, b.Spec.Dependencies)
}

// added parts faults into those that were not known before, in whatever place, and those that were.
func added(faults, known []*MalformedError) (fresh []error, stood []*MalformedError) {
	left := map[string]int{}
	for _, fault := range known {
		left[fault.Fault]++
	}
	for _, fault := range faults {
		if left[fault.Fault] == 0 {
			fresh = append(fresh, fault)
			continue
		}
		left[fault.Fault]--
		stood = append(stood, fault)
	}
	return fresh, stood
}

// named reports whether needs hold an add-on of that name.
func named(needs []addonv1alpha1.AddonDependency, name string) bool {
	return slices.ContainsFunc(needs, func(n addonv1alpha1.AddonDependency) bool { return n.Name == name })
}

// faultLimit is how many faults an error names; who mends those is told the others.
const faultLimit = 10

// join is one error of all faults; nil if there are none.
func join(faults []error) error {
	if left := len(faults) - faultLimit; left > 0 {
		faults = append(slices.Clip(faults[:faultLimit]), fmt.Errorf("%d more faults", left))
	}
	return errors.Join(faults...)
}
