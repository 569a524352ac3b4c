package dependency

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// CircularError reports that a new dependency leads back to the add-on that declares it.
type CircularError struct {
	// AddOn is the name of the ClusterManagementAddOn, Where the field or annotation with the index of the dependency.
	AddOn, Where string
	// Cycle is the path from the add-on back to itself.
	Cycle []string
}

func (e *CircularError) Error() string {
	return fmt.Sprintf("ClusterManagementAddOn %q: %s: %s", e.AddOn, e.Where, e.problem())
}

// problem returns the path of the cycle and how to break it.
func (e *CircularError) problem() string {
	if len(e.Cycle) == 2 {
		return fmt.Sprintf("%q depends on itself: remove the entry", e.AddOn)
	}
	return circularOpening + Way(e.Cycle) + ": remove the entry, or another dependency of this cycle"
}

// Admit validates the dependencies in a write of a ClusterManagementAddOn; old is nil on create. It rejects only problems that the write
// itself adds: a write that leaves the dependencies unchanged passes without warnings, and a write that fixes one of two problems passes
// with a warning about the other. The error joins *MalformedError and *CircularError.
//
// needsOf returns the dependencies of an add-on, as Needs does: nil means that the add-on has no ClusterManagementAddOn.
func Admit(
	old, new *addonv1alpha1.ClusterManagementAddOn, needsOf func(name string) []addonv1alpha1.AddonDependency,
) (warnings []string, err error) {
	if old != nil && sameDeclaration(old, new) {
		return nil, nil
	}
	if _, annotated := new.Annotations[addonv1alpha1.AnnotationDependencies]; annotated && len(new.Spec.Dependencies) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s is ignored because %s is set: remove one of them", annotation, field))
	}
	before, known := []addonv1alpha1.AddonDependency(nil), []*MalformedError(nil)
	if old != nil {
		before, _, known = readDeclaration(old)
	}
	needs, where, problems := readDeclaration(new)
	if needs == nil {
		known = nil // without a list, entries cannot be compared: the write is rejected
	}
	refused, stood := splitProblems(problems, known)
	for _, problem := range stood {
		warnings = append(warnings, fmt.Sprintf("%s: %s", problem.Where, problem.Problem))
	}
	circular, remarks := connect(new.Name, where, needs, before, needsOf)
	return append(warnings, remarks...), join(append(refused, circular...))
}

// FindRemoved returns the dependencies of old, and the field or annotation that declares them, if new declares none; nil otherwise, also if
// the declaration in new is malformed.
func FindRemoved(old, new *addonv1alpha1.ClusterManagementAddOn) (needs []addonv1alpha1.AddonDependency, where string) {
	if old == nil {
		return nil, ""
	}
	if left, _, problems := readDeclaration(new); len(left) > 0 || len(problems) > 0 {
		return nil, ""
	}
	needs, where, _ = readDeclaration(old)
	return needs, where
}

// connect returns an error for each dependency that creates a cycle or can never exist, and warns about existing cycles, cycles on some clusters
// only, and dependencies that do not exist yet. An alternative counts as a dependency.
func connect(
	addOn, where string, needs, before []addonv1alpha1.AddonDependency, needsOf func(name string) []addonv1alpha1.AddonDependency,
) (refused []error, warnings []string) {
	for i, need := range needs {
		for _, name := range Candidates(need) {
			e := edge{addOn: addOn, where: entry(where, i), to: name, everywhere: !selectsClusters(need) || name == addOn}
			warning, problem := e.judge(before, needsOf)
			if problem != nil {
				refused = append(refused, problem)
			}
			if warning != "" {
				warnings = append(warnings, e.where+": "+warning)
			}
		}
	}
	return refused, warnings
}

// edge is a new dependency of an add-on on another one, or an alternative of one.
type edge struct {
	addOn, where, to string
	// everywhere is true if it exists on every cluster.
	everywhere bool
}

// judge returns a warning about the edge, or why it is refused; before are the dependencies of the add-on before the write.
func (e edge) judge(
	before []addonv1alpha1.AddonDependency, needsOf func(name string) []addonv1alpha1.AddonDependency,
) (warning string, refused error) {
	circular := &CircularError{AddOn: e.addOn, Where: e.where}
	if e.everywhere {
		circular.Cycle = Cycle(e.addOn, e.to, func(name string) []addonv1alpha1.AddonDependency { return Everywhere(needsOf(name)) })
	}
	switch {
	case circular.Cycle != nil && slices.Contains(CandidatesOf(Everywhere(before)), e.to):
		return circular.problem(), nil
	case circular.Cycle != nil:
		return "", circular
	case e.to == "":
		return "", nil
	}
	if circular.Cycle = Cycle(e.addOn, e.to, needsOf); circular.Cycle != nil {
		return "on clusters that match every selector in it, " + circular.problem(), nil
	}
	switch {
	case len(validation.IsDNS1123Subdomain(e.to)) > 0 && !slices.Contains(CandidatesOf(before), e.to):
		return "", &MalformedError{AddOn: e.addOn, Where: e.where, Problem: fmt.Sprintf(
			"%q cannot be the name of a ClusterManagementAddOn: names consist of lowercase letters, digits, '-' and '.'", e.to)}
	case needsOf(e.to) == nil:
		return fmt.Sprintf("ClusterManagementAddOn %q does not exist yet", e.to), nil
	}
	return "", nil
}

// sameDeclaration reports whether field and annotation are equal in both.
func sameDeclaration(a, b *addonv1alpha1.ClusterManagementAddOn) bool {
	textA, annotatedA := a.Annotations[addonv1alpha1.AnnotationDependencies]
	textB, annotatedB := b.Annotations[addonv1alpha1.AnnotationDependencies]
	return annotatedA == annotatedB && textA == textB && sameNeeds(a.Spec.Dependencies, b.Spec.Dependencies)
}

// splitProblems splits problems into new ones and ones that were known before, at any index.
func splitProblems(problems, known []*MalformedError) (fresh []error, stood []*MalformedError) {
	left := map[string]int{}
	for _, problem := range known {
		left[problem.Problem]++
	}
	for _, problem := range problems {
		if left[problem.Problem] == 0 {
			fresh = append(fresh, problem)
			continue
		}
		left[problem.Problem]--
		stood = append(stood, problem)
	}
	return fresh, stood
}

// problemLimit is the maximum number of problems in one error. The others are reported once those are fixed.
const problemLimit = 10

// join joins all problems into one error; nil if there are none.
func join(problems []error) error {
	if left := len(problems) - problemLimit; left > 0 {
		problems = append(slices.Clip(problems[:problemLimit]), fmt.Errorf("%d more problems", left))
	}
	return errors.Join(problems...)
}
