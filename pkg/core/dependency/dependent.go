package dependency

import (
	"maps"
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// Dependent is an add-on that is affected when another add-on is not available.
type Dependent struct {
	Name string
	// Type is the effect: a Required dependency makes the add-on unavailable, an Optional one degrades it.
	Type addonv1alpha1.DependencyType
	// Through lists the add-ons between the two, starting next to the one that is not available; empty for a direct dependent.
	Through []string
	// Others lists the other add-ons that satisfy the dependency as well.
	Others []string
	// Protects is true if the dependent, a direct one, does not allow the removal of the add-on.
	Protects bool
}

// Direct inverts needs: it returns the direct dependents of each add-on, sorted by name. An add-on is also a dependent of its alternatives.
func Direct(needs map[string][]addonv1alpha1.AddonDependency) map[string][]Dependent {
	direct := map[string][]Dependent{}
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		for _, need := range needs[name] {
			candidates := Candidates(need)
			for i, candidate := range candidates {
				d := Dependent{Name: name, Type: need.Type, Protects: need.Removal == addonv1alpha1.RemovalProtect}
				if len(candidates) > 1 {
					d.Others = slices.Delete(slices.Clone(candidates), i, i+1)
				}
				direct[candidate] = append(direct[candidate], d)
			}
		}
	}
	return direct
}

// Dependents returns the existing add-ons that are affected when addOn is not available. First come all that become unavailable because
// they require addOn directly or transitively, each by the shortest path. Then come those that are degraded because an unavailable add-on
// is Optional for them. An add-on that is affected in both ways is listed once, in the first group. An add-on is not affected while another
// add-on satisfies the dependency. direct holds the direct dependents. there reports whether an add-on exists, and replaces whether another one satisfies the
// dependency of a dependent on an add-on; without these functions, all that could be affected somewhere are listed.
func Dependents(addOn string, direct map[string][]Dependent, there func(name string) bool, replaces func(dependent, addOn, other string) bool) []Dependent {
	gone := map[string]bool{addOn: true}
	isAffected := func(d Dependent, of string) bool {
		isReplaced := func(other string) bool { return !gone[other] && replaces(d.Name, of, other) }
		return there == nil || there(d.Name) && !slices.ContainsFunc(d.Others, isReplaced)
	}
	f := affected{addOn: addOn, direct: direct, met: map[string]bool{addOn: true}, is: isAffected}
	stopped := []Dependent{{Name: addOn}}
	for i := 0; i < len(stopped); i++ {
		gone[stopped[i].Name] = true
		stopped = append(stopped, f.next(stopped[i], addonv1alpha1.DependencyTypeRequired)...)
	}
	var degraded []Dependent
	for _, d := range stopped {
		degraded = append(degraded, f.next(d, addonv1alpha1.DependencyTypeOptional)...)
	}
	return append(stopped[1:], degraded...)
}

// affected finds the dependents of an add-on that are affected when it is not available, each once.
type affected struct {
	addOn  string
	direct map[string][]Dependent
	met    map[string]bool
	is     func(d Dependent, of string) bool
}

// next returns the direct dependents of a type that are affected and were not met before.
func (f affected) next(of Dependent, t addonv1alpha1.DependencyType) []Dependent {
	through := of.Through
	if of.Name != f.addOn {
		through = append(slices.Clip(through), of.Name)
	}
	var found []Dependent
	for _, d := range f.direct[of.Name] {
		if d.Type == t && !f.met[d.Name] && f.is(d, of.Name) {
			f.met[d.Name] = true
			found = append(found, Dependent{Name: d.Name, Type: t, Through: through, Protects: d.Protects && of.Name == f.addOn})
		}
	}
	return found
}
