package dependency

import addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"

// Prerequisites returns the add-ons that addOn requires, directly or transitively, each after its own required add-ons: an order in which
// they can be enabled. A member of a cycle follows the add-ons that lead to it; the verdict reports the cycle. Optional dependencies are
// not included.
//
// needsOf returns the dependencies of an add-on. It is called once for each.
func Prerequisites(addOn string, needsOf func(name string) []addonv1alpha1.AddonDependency) []string {
	var found []string
	met := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		met[name] = true
		for _, need := range needsOf(name) {
			if need.Type != addonv1alpha1.DependencyTypeOptional && !met[need.Name] {
				visit(need.Name)
			}
		}
		found = append(found, name)
	}
	visit(addOn)
	return found[:len(found)-1]
}
