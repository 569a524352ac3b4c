package install

import (
	"github.com/tandem-addons/tandem/pkg/core/dependency"
)

// ChangesVersion reports whether the add-on is configured with another OperatorVersion than the one that its Instance names, or has no Instance yet.
func ChangesVersion(a AddOn) bool {
	own := a.OwnInstance()
	return a.Version != nil && len(a.Configuration.Problems) == 0 && (own == nil || VersionOf(own) != a.Configuration.OperatorVersion)
}

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
