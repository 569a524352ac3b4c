package change

import (
	"fmt"
	"slices"

	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// reserved returns a warning about a namespace in which nothing is installed by default. The flags of addon-manager and of agents are not known here.
func reserved(namespace string) []string {
	if !slices.Contains(rights.ReservedExcept(nil), namespace) {
		return nil
	}
	return []string{fmt.Sprintf("addon-manager and addon-agent refuse namespace %q unless their flags --allow-namespaces list it: use another namespace", namespace)}
}

// reserved returns a warning about the namespace of a new plan-based add-on.
func (e Enabling) reserved(c Change) []string {
	switch {
	case c.Step == nil || c.Step.Current != nil || !e.View.Definitions[c.Step.Wanted.Name].PlanManaged:
		return nil
	case c.After != nil:
		return reserved(c.After.TargetNamespace())
	default:
		return reserved(c.Step.Wanted.Spec.InstallNamespace)
	}
}
