package dependency

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	kjson "sigs.k8s.io/json"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
	"github.com/tandem-addons/tandem/pkg/core/selector"
	"github.com/tandem-addons/tandem/pkg/text"
)

// MalformedError reports that the declaration of an add-on's dependencies is invalid.
type MalformedError struct {
	// AddOn is the name of the ClusterManagementAddOn.
	AddOn string
	// Where is the invalid field or annotation, with the index of the dependency where there is one.
	Where string
	// Problem describes the problem and how to fix it.
	Problem string
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("ClusterManagementAddOn %q: %s: %s", e.AddOn, e.Where, e.Problem)
}

const (
	field      = "spec.dependencies"
	annotation = "annotation " + addonv1alpha1.AnnotationDependencies
)

// DeclaredBy returns the dependencies of addOn in the declared order, each with its type. The field takes precedence over the annotation.
// The error is a *MalformedError.
//
// Both follow the same rules. The API server already rejects most problems of the field, but a hub may have a CRD that Tandem did not
// install. A dependency on itself is not malformed: it is a cycle, which the verdict shows and admission rejects.
func DeclaredBy(addOn *addonv1alpha1.ClusterManagementAddOn) ([]addonv1alpha1.AddonDependency, error) {
	needs, _, problems := readDeclaration(addOn)
	if len(problems) > 0 {
		return nil, problems[0]
	}
	return needs, nil
}

// Needs returns the known dependencies of an add-on: nil without a definition, and an empty non-nil slice if the declaration is malformed.
// It serves as needsOf of Cycle and Admit.
func Needs(definition *addonv1alpha1.ClusterManagementAddOn) []addonv1alpha1.AddonDependency {
	if definition == nil {
		return nil
	}
	needs, err := DeclaredBy(definition)
	if err != nil {
		return []addonv1alpha1.AddonDependency{}
	}
	return needs
}

// readDeclaration returns the declared dependencies with their types, the field or annotation that holds them, and every problem of the
// declaration.
func readDeclaration(addOn *addonv1alpha1.ClusterManagementAddOn) (
	needs []addonv1alpha1.AddonDependency, where string, problems []*MalformedError,
) {
	declared, where := addOn.Spec.Dependencies, field
	if text, annotated := addOn.Annotations[addonv1alpha1.AnnotationDependencies]; annotated && len(declared) == 0 {
		var err error
		where = annotation
		if declared, err = parse([]byte(text)); err != nil {
			return nil, where, []*MalformedError{{AddOn: addOn.Name, Where: where, Problem: err.Error()}}
		}
	}
	needs = make([]addonv1alpha1.AddonDependency, 0, len(declared))
	if selective := countSelectors(declared); selective > maxSelectors {
		return nil, where, []*MalformedError{{AddOn: addOn.Name, Where: where, Problem: fmt.Sprintf(
			"%d dependencies have clusters, more than %d", selective, maxSelectors)}}
	}
	names := make(map[string]bool, len(declared))
	for i, need := range declared {
		if need.Type == "" {
			need.Type = addonv1alpha1.DependencyTypeRequired
		}
		if problem := problemOf(need, names); problem != "" {
			problems = append(problems, &MalformedError{AddOn: addOn.Name, Where: entry(where, i), Problem: problem})
		}
		names[need.Name] = true
		needs = append(needs, need)
	}
	return needs, where, problems
}

// maxSelectors limits the dependencies of an add-on that exist on some clusters only: each selector is evaluated for each cluster.
const maxSelectors = 32

func countSelectors(needs []addonv1alpha1.AddonDependency) (count int) {
	for _, need := range needs {
		if need.Clusters != nil {
			count++
		}
	}
	return count
}

// entry formats the path of the dependency at index.
func entry(where string, index int) string { return fmt.Sprintf("%s[%d]", where, index) }

// parse parses the annotation: a JSON array. Unknown and repeated fields are errors.
func parse(text []byte) ([]addonv1alpha1.AddonDependency, error) {
	// null would decode to no dependencies without an error.
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '[' {
		return nil, errors.New(`must be a JSON array such as [{"name":"other-addon","type":"Required"}]; ` +
			"remove the annotation if there are no dependencies")
	}
	var needs []addonv1alpha1.AddonDependency
	strict, err := kjson.UnmarshalStrict(text, &needs)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	return needs, nil
}

// problemOf describes the problem of one dependency, given the names before it; empty if it is valid.
func problemOf(need addonv1alpha1.AddonDependency, before map[string]bool) string {
	switch {
	case need.Name == "":
		return "name is required: set it to the name of a ClusterManagementAddOn"
	case before[need.Name]:
		return fmt.Sprintf("%q is listed twice: remove one of the entries", need.Name)
	case need.Type != addonv1alpha1.DependencyTypeRequired && need.Type != addonv1alpha1.DependencyTypeOptional:
		return fmt.Sprintf("%q has type %q: must be Required or Optional", need.Name, need.Type)
	default:
		return Problem(need)
	}
}

// Problem describes the problem of the alternatives, the clusters, the installation, the removal or the version of a dependency, beginning with its name;
// empty if they are valid.
func Problem(need addonv1alpha1.AddonDependency) string {
	if problem := removalProblem(need); problem != "" {
		return problem
	}
	if need.Install != "" && need.Install != addonv1alpha1.InstallManual && need.Install != addonv1alpha1.InstallAuto {
		return fmt.Sprintf("%q has install %s: must be Manual or Auto", need.Name, text.Quote(string(need.Install)))
	}
	if problem := alternativesProblem(need); problem != "" {
		return problem
	}
	if problem := selector.Problem(need.Clusters); problem != "" {
		return fmt.Sprintf("%q has clusters that are not valid: %s", need.Name, problem)
	}
	return versionProblemOf(need)
}

// removalProblem describes the problem of the removal of a dependency; empty if it is valid.
func removalProblem(need addonv1alpha1.AddonDependency) string {
	switch {
	case need.Removal != "" && need.Removal != addonv1alpha1.RemovalWarn && need.Removal != addonv1alpha1.RemovalProtect:
		return fmt.Sprintf("%q has removal %s: must be Warn or Protect", need.Name, text.Quote(string(need.Removal)))
	case need.Removal == addonv1alpha1.RemovalProtect && need.Type == addonv1alpha1.DependencyTypeOptional:
		return fmt.Sprintf("%q is Optional, and only Required dependencies can have removal Protect: change one of them", need.Name)
	default:
		return ""
	}
}

// maxAlternatives is the limit of the CRD, which an annotation does not pass.
const maxAlternatives = 8

// alternativesProblem describes the problem of the alternatives of a dependency; empty if they are valid.
func alternativesProblem(need addonv1alpha1.AddonDependency) string {
	if len(need.Alternatives) > maxAlternatives {
		return fmt.Sprintf("%q has more than %d alternatives", need.Name, maxAlternatives)
	}
	for i, name := range need.Alternatives {
		switch {
		case name == "":
			return fmt.Sprintf("%q has an alternative without a name: set it to the name of a ClusterManagementAddOn, or remove it", need.Name)
		case name == need.Name || slices.Contains(need.Alternatives[:i], name):
			return fmt.Sprintf("%q is listed twice among the alternatives of %q: remove one of them", name, need.Name)
		}
	}
	return ""
}

// versionProblemOf describes the problem of the constraint of a dependency.
func versionProblemOf(need addonv1alpha1.AddonDependency) string {
	if need.Version == "" {
		return ""
	}
	if _, err := compatibility.ParseConstraint(need.Version); err != nil {
		return fmt.Sprintf("%q has version %s, which is not a constraint such as >=3.8 <5: %v", need.Name, text.Quote(need.Version), err)
	}
	return ""
}
