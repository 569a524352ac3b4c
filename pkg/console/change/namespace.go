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
