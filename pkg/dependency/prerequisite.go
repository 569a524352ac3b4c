package dependency

import addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"

// Prerequisites are the add-ons that addOn requires, itself or by way of others, each behind those that it requires itself: an order in
// which they can be enabled. A member of a circle stands behind those that lead to it; what is wrong with it, the judgement says. What
// is Optional is no prerequisite.
//
// needsOf says what an add-on depends on. It is asked once about each.
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
