package dependency

import (
	"bytes"
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// MalformedError reports that an add-on's dependencies are declared in a way that cannot be judged.
type MalformedError struct {
	// AddOn is the name of the ClusterManagementAddOn.
	AddOn string
	// Where is the field or annotation at fault, with the index of the dependency where there is one.
	Where string
	// Fault says what is wrong, and the way out.
	Fault string
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("ClusterManagementAddOn %q: %s: %s", e.AddOn, e.Where, e.Fault)
}

const (
	field      = "spec.dependencies"
	annotation = "annotation " + addonv1alpha1.AnnotationDependencies
)

// Declared is what addOn depends on, in the order declared, each with its type. The field wins where both it and the
// annotation exist. The error is a *MalformedError.
//
// Both are held to the same rules, although the API server already refuses most faults of the field: a hub's CRD may be
// somebody else's. A dependency on itself is not malformed: it is a circle, which the judgement shows and admission refuses.
func Declared(addOn *addonv1alpha1.ClusterManagementAddOn) ([]addonv1alpha1.AddonDependency, error) {
	needs, _, faults := read(addOn)
	if len(faults) > 0 {
		return nil, faults[0]
	}
	return needs, nil
}

// Needs is what an add-on depends on as far as that is known: nil without a definition, and none, but not nil, where the
// declaration is malformed. It is the needsOf of Cycle and Admit.
func Needs(definition *addonv1alpha1.ClusterManagementAddOn) []addonv1alpha1.AddonDependency {
	if definition == nil {
		return nil
	}
	needs, err := Declared(definition)
	if err != nil {
		return []addonv1alpha1.AddonDependency{}
	}
	return needs
}

// read gives the dependencies as they stand with their types, the field or annotation where they stand, and everything that
// is malformed in them.
func read(addOn *addonv1alpha1.ClusterManagementAddOn) (
	needs []addonv1alpha1.AddonDependency, where string, faults []*MalformedError,
) {
	declared, where := addOn.Spec.Dependencies, field
	if text, annotated := addOn.Annotations[addonv1alpha1.AnnotationDependencies]; annotated && len(declared) == 0 {
		var err error
		where = annotation
		if declared, err = parse([]byte(text)); err != nil {
			return nil, where, []*MalformedError{{AddOn: addOn.Name, Where: where, Fault: err.Error()}}
		}
	}
	needs = make([]addonv1alpha1.AddonDependency, 0, len(declared))
	names := make(map[string]bool, len(declared))
	for i, need := range declared {
		if need.Type == "" {
			need.Type = addonv1alpha1.DependencyTypeRequired
		}
		if fault := faultOf(need, names); fault != "" {
			faults = append(faults, &MalformedError{AddOn: addOn.Name, Where: entry(where, i), Fault: fault})
		}
		names[need.Name] = true
		needs = append(needs, need)
	}
	return needs, where, faults
}

// entry names the dependency of that index.
func entry(where string, index int) string { return fmt.Sprintf("%s[%d]", where, index) }

// parse reads the annotation: a JSON array, whose unknown and repeated fields are errors.
func parse(text []byte) ([]addonv1alpha1.AddonDependency, error) {
	// null would read as no dependencies without a word.
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '[' {
		return nil, errors.New(`want a JSON array such as [{"name":"other-addon","type":"Required"}]; ` +
			"remove the annotation if there are no dependencies")
	}
	var needs []addonv1alpha1.AddonDependency
	strict, err := kjson.UnmarshalStrict(text, &needs)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	return needs, nil
}

// faultOf says what is wrong with one dependency, given the names before it; empty if nothing is.
func faultOf(need addonv1alpha1.AddonDependency, before map[string]bool) string {
	switch {
	case need.Name == "":
		return "name is empty: name the ClusterManagementAddOn that is needed"
	case before[need.Name]:
		return fmt.Sprintf("%q is named twice: keep one of the entries", need.Name)
	case need.Type != addonv1alpha1.DependencyTypeRequired && need.Type != addonv1alpha1.DependencyTypeOptional:
		return fmt.Sprintf("%q has type %q: want Required or Optional", need.Name, need.Type)
	}
	return ""
}
