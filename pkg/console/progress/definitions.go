package progress

import (
	"cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// Definition is a parameter that a package defines, with its texts for users.
type Definition struct {
	kudo.Parameter
	// Package is the version of the package.
	Package *kudo.OperatorVersionSpec
}

// DefinitionsOf returns the parameters of a package.
func DefinitionsOf(version *kudo.OperatorVersionSpec) []Definition {
	definitions := make([]Definition, len(version.Parameters))
	for i, p := range version.Parameters {
		definitions[i] = Definition{p, version}
	}
	return definitions
}

// TypeText returns the type, and whether the value has to be in a Secret.
func (d Definition) TypeText() string {
	text := cmp.Or(string(d.Type), string(kudo.StringType))
	if d.IsSensitive() {
		text += ", sensitive"
	}
	return text
}

// NeedsValue reports whether an Instance has to set the parameter.
func (d Definition) NeedsValue() bool { return d.Default == nil && d.Required != nil && *d.Required }

// PlanText returns the plan that a change of the parameter triggers.
func (d Definition) PlanText() string {
	if d.Immutable != nil && *d.Immutable {
		return "(immutable)"
	}
	name, err := plan.TriggeredPlan(d.Package, d.Parameter)
	if err != nil {
		return name + " (missing)"
	}
	return name
}

// RestartText states whether a change of the parameter restarts pods.
func (d Definition) RestartText() string {
	if d.ForcePodRestart != nil && !bool(*d.ForcePodRestart) {
		return "no"
	}
	return "yes"
}
