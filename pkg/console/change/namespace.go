package change

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tandem-addons/tandem/pkg/core/install"
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

// namespaceWarnings returns a warning about the namespace of a new plan-based add-on.
func (e EnableRequest) namespaceWarnings(c Change) []string {
	if c.Step == nil || c.Step.Current != nil || !e.View.Definitions[c.Step.Wanted.Name].PlanManaged {
		return nil
	}
	namespace := cmp.Or(c.Step.Wanted.Spec.InstallNamespace, install.DefaultInstallNamespace)
	if c.After != nil {
		namespace = c.After.TargetNamespace()
	}
	if namespace == install.DefaultInstallNamespace {
		return []string{fmt.Sprintf("it is installed in namespace %q, OCM's default, which holds credentials of other add-ons for the hub: "+
			"to use another one, set --namespace", namespace)}
	}
	return reservedWarnings(namespace)
}
