package dependency

import (
	"reflect"
	"slices"

	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/selector"
)

// Candidates returns the add-ons that can satisfy a dependency: the one that it names, then its alternatives in the declared order.
func Candidates(need addonv1alpha1.AddonDependency) []string {
	if len(need.Alternatives) == 0 {
		return []string{need.Name}
	}
	return append([]string{need.Name}, need.Alternatives...)
}

// CandidatesOf returns the add-ons that can satisfy any of the dependencies.
func CandidatesOf(needs []addonv1alpha1.AddonDependency) []string {
	names := make([]string, 0, len(needs))
	for _, need := range needs {
		names = append(append(names, need.Name), need.Alternatives...)
	}
	return names
}

// On returns the dependencies that an add-on has on a cluster: those without a selector of clusters, and those whose selector selects it.
func On(needs []addonv1alpha1.AddonDependency, cluster selector.Cluster) []addonv1alpha1.AddonDependency {
	if !SelectClusters(needs) {
		return needs
	}
	return slices.DeleteFunc(slices.Clone(needs), func(n addonv1alpha1.AddonDependency) bool { return !selector.Matches(n.Clusters, cluster) })
}

// SelectClusters reports whether any of the dependencies exists on some clusters only.
func SelectClusters(needs []addonv1alpha1.AddonDependency) bool {
	return slices.ContainsFunc(needs, selectsClusters)
}

func selectsClusters(need addonv1alpha1.AddonDependency) bool {
	return !selector.SelectsAll(need.Clusters)
}

// Everywhere returns the dependencies that an add-on has on every cluster.
func Everywhere(needs []addonv1alpha1.AddonDependency) []addonv1alpha1.AddonDependency {
	if !SelectClusters(needs) {
		return needs
	}
	return slices.DeleteFunc(slices.Clone(needs), selectsClusters)
}

// sameNeeds reports whether both lists declare the same.
func sameNeeds(a, b []addonv1alpha1.AddonDependency) bool {
	return slices.EqualFunc(a, b, func(x, y addonv1alpha1.AddonDependency) bool { return reflect.DeepEqual(x, y) })
}

// IsPlaced reports whether OCM decides by Placements on which clusters the add-on is enabled, so that it would disable what others enable. Without a
// definition, it does not.
func IsPlaced(definition *addonv1alpha1.ClusterManagementAddOn) bool {
	strategy := ""
	if definition != nil {
		strategy = definition.Spec.InstallStrategy.Type
	}
	return strategy != "" && strategy != upstream.AddonInstallStrategyManual
}
