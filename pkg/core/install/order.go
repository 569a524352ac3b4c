package install

import (
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
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

// uncheckedDependencies returns the add-ons whose versions the OperatorVersion constrains, although the definition declares no dependency on them.
func uncheckedDependencies(a AddOn) []string {
	declared := dependency.CandidatesOf(dependency.Needs(a.Definition))
	var unchecked []string
	for _, constraint := range a.Version.Spec.Dependencies {
		if !slices.Contains(declared, constraint.Name) {
			unchecked = append(unchecked, constraint.Name+" "+constraint.Version)
		}
	}
	return unchecked
}

// orderProblems returns why the add-on's version cannot change yet.
func orderProblems(a AddOn) []Problem {
	waits := dependency.Waiting(a.ManagedAddOn.Name, a.Members, func(addOn string) []dependency.Release { return a.Releases[addOn] })
	if waits == "" {
		return nil
	}
	return []Problem{{addonv1alpha1.ReasonWaitingForDependencies, waits}}
}
