package dependency

import (
	"maps"
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// Dependant is an add-on that suffers when another one is not available.
type Dependant struct {
	Name string
	// Type says how: with Required it is not available either, with Optional it is degraded.
	Type addonv1alpha1.DependencyType
	// Through are the add-ons by way of which it depends on the other one, the nearest to that first; empty where it does itself.
	Through []string
}

// Direct turns who needs what around: who depends, itself, on an add-on, sorted by name.
func Direct(needs map[string][]addonv1alpha1.AddonDependency) map[string][]Dependant {
	direct := map[string][]Dependant{}
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		for _, need := range needs[name] {
			direct[need.Name] = append(direct[need.Name], Dependant{Name: name, Type: need.Type})
		}
	}
	return direct
}

// Dependants are those of the add-ons there that suffer when addOn is not available: first all that stop being available, for they
// require it or require one that stops, each by the shortest way; then those that are degraded because what stops is Optional
// to them. An add-on that suffers both ways stands among the first. direct says who depends on whom.
func Dependants(addOn string, direct map[string][]Dependant, there func(name string) bool) []Dependant {
	met := map[string]bool{addOn: true}
	next := func(of Dependant, t addonv1alpha1.DependencyType) []Dependant {
		var found []Dependant
		through := of.Through
		if of.Name != addOn {
			through = append(slices.Clip(through), of.Name)
		}
		for _, d := range direct[of.Name] {
			if d.Type == t && !met[d.Name] && there(d.Name) {
				met[d.Name] = true
				found = append(found, Dependant{Name: d.Name, Type: t, Through: through})
			}
		}
		return found
	}
	stopped := []Dependant{{Name: addOn}}
	for i := 0; i < len(stopped); i++ {
		stopped = append(stopped, next(stopped[i], addonv1alpha1.DependencyTypeRequired)...)
	}
	var degraded []Dependant
	for _, d := range stopped {
		degraded = append(degraded, next(d, addonv1alpha1.DependencyTypeOptional)...)
	}
	return append(stopped[1:], degraded...)
}
