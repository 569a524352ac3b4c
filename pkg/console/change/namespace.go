package change

import (
	"fmt"
	"slices"

	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// reservedWarnings returns a warning about a namespace in which nothing is installed by default. The flags of addon-manager and of agents
// are not known here.
func reservedWarnings(namespace string) []string {
	if !slices.Contains(rights.ReservedExcept(nil), namespace) {
		return nil
	}
	return []string{fmt.Sprintf("addon-manager and addon-agent refuse namespace %q unless their flags --allow-namespaces list it: use another namespace", namespace)}
}

// reservedWarnings returns a warning about the namespace of a new plan-based add-on.
func (e EnableRequest) reservedWarnings(c Change) []string {
	switch {
	case c.Step == nil || c.Step.Current != nil || !e.View.Definitions[c.Step.Wanted.Name].PlanManaged:
		return nil
	case c.After != nil:
		return reservedWarnings(c.After.TargetNamespace())
	default:
		return reservedWarnings(c.Step.Wanted.Spec.InstallNamespace)
	}
}
