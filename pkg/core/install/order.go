package install

import (
	"github.com/tandem-addons/tandem/pkg/core/dependency"
)

// Constraints returns what the running releases of the add-on require of the versions of others, by their names: before its installation, those of the
// release that is to be installed.
func Constraints(a AddOn) map[string][]string {
	if own := a.OwnInstance(); own != nil {
		return dependency.RunningConstraints(own)
	}
	if a.Version == nil {
		return nil
	}
	return dependency.ByName(a.Version.Spec.Dependencies)
}
