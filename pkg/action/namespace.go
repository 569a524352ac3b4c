package action

import (
	"fmt"

	"github.com/tandem-addons/tandem/pkg/rights"
)

// reserved returns a warning about a namespace to which agents apply nothing by default. Their flags are not known on the hub.
func reserved(namespace string) []string {
	if namespace != rights.SystemNamespace && namespace != rights.AgentNamespace {
		return nil
	}
	return []string{fmt.Sprintf("addon-agent applies nothing to namespace %q unless its flag --allow-namespaces lists it: use another namespace", namespace)}
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
