package plan

import (
	"fmt"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// MissingPlanError reports that an OperatorVersion lacks the plan to run; Requested is true if the plan was requested manually.
type MissingPlanError struct {
	Plan      string
	Requested bool
}

func (e *MissingPlanError) Error() string {
	return fmt.Sprintf("the OperatorVersion has no plan %q", e.Plan)
}

// RestartsPods reports whether a change of the parameter restarts pods (KEP-27).
func RestartsPods(p kudo.Parameter) bool { return p.ForcePodRestart == nil || bool(*p.ForcePodRestart) }

// forcesRestart reports whether the parameter says itself that its change restarts pods.
func forcesRestart(p kudo.Parameter) bool {
	return p.ForcePodRestart != nil && bool(*p.ForcePodRestart)
}

// Trigger is a plan and the changed parameters that trigger it.
type Trigger struct {
	Plan       string
	Parameters []string
}

// Triggers lists the plans that the parameters with a changed effective value trigger, in the package's order. It omits a parameter without
// a trigger, which may change along with any other, as in KUDO.
func Triggers(definitions []kudo.Parameter, before, after Values) []Trigger {
	var triggers []Trigger
	places := map[string]int{}
	for _, p := range changedParameters(definitions, before, after) {
		if p.Trigger == "" {
			continue
		}
		at, known := places[p.Trigger]
		if !known {
			at, triggers = len(triggers), append(triggers, Trigger{Plan: p.Trigger})
			places[p.Trigger] = at
		}
		triggers[at].Parameters = append(triggers[at].Parameters, p.Name)
	}
	return triggers
}

// changedParameters lists the parameters with a changed effective value, in the package's order.
func changedParameters(definitions []kudo.Parameter, before, after Values) []kudo.Parameter {
	var changed []kudo.Parameter
	for i := range definitions {
		if p := &definitions[i]; differs(p, before, after) {
			changed = append(changed, *p)
		}
	}
	return changed
}

// changes are the differences between two Values that start plans.
type changes struct {
	// parameters are those with a changed effective value, in the package's order.
	parameters []kudo.Parameter
	// registries is true if the image registries differ: they start the plan of a parameter without a trigger.
	registries bool
}

// changesOf returns the differences between values of those parameters.
func changesOf(definitions []kudo.Parameter, before, after Values) changes {
	return changes{changedParameters(definitions, before, after), !slices.Equal(before.Registries, after.Registries)}
}

func (c changes) isEmpty() bool { return len(c.parameters) == 0 && !c.registries }

// triggers returns a parameter for each change, the trigger of which names its plan.
func (c changes) triggers() []kudo.Parameter {
	if !c.registries {
		return c.parameters
	}
	return append(slices.Clone(c.parameters), kudo.Parameter{})
}

// TriggeredPlan returns the plan that a change of p runs. A *MissingPlanError means that it does not exist.
func TriggeredPlan(version *kudo.OperatorVersionSpec, p kudo.Parameter) (string, error) {
	if p.Trigger != "" {
		return firstPlan(version, p.Trigger)
	}
	return firstPlan(version, kudo.UpdatePlan, kudo.DeployPlan)
}

// firstPlan returns the first of names that exists. Its error names the last.
func firstPlan(version *kudo.OperatorVersionSpec, names ...string) (string, error) {
	for _, name := range names {
		if _, exists := version.Plans[name]; exists {
			return name, nil
		}
	}
	last := names[len(names)-1]
	return last, &MissingPlanError{Plan: last}
}
