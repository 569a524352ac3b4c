package stack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Marked are the objects on the hub that an earlier apply of a stack has made, and what decides whether they can be deleted.
type Marked struct {
	AddOns      []types.NamespacedName
	Definitions Definitions
	Configs     []types.NamespacedName
	// Values are ConfigMaps.
	Values   []types.NamespacedName
	Versions []types.NamespacedName
	// Enabled are the clusters on which an add-on is enabled, by its name, whether or not the stack has done that.
	Enabled map[string][]string
	// InUse are the OperatorVersions that an Instance, the config of an add-on, or a definition of others refers to.
	InUse map[types.NamespacedName]bool
}

// Action is what happens to an object that a stack no longer has.
type Action string

// The actions of a prune.
const (
	// Delete deletes the object.
	Delete Action = "delete"
	// Withdraw removes the placements of a ClusterManagementAddOn, so that OCM disables the add-on.
	Withdraw Action = "withdraw"
	// Keep does nothing, for now.
	Keep Action = "keep"
)

// Pruned is an object that a stack no longer has.
type Pruned struct {
	Kind string
	types.NamespacedName
	Action Action
	// Reason states why the object is kept.
	Reason string
}

// kindVersion is the kind of a package that a prune deletes.
const kindVersion = "OperatorVersion"

// Prune returns what happens to the marked objects that a stack no longer has: add-ons first, those that others depend on last. A definition stays until no
// cluster has the add-on, a config as long as its definition, and an OperatorVersion while it is in use. versions are those that the stack runs.
func Prune(marked Marked, wanted Objects, versions []types.NamespacedName) []Pruned {
	var all []Pruned
	order := dependentsFirst(marked.Definitions)
	addOns := slices.SortedStableFunc(slices.Values(marked.AddOns), func(a, b types.NamespacedName) int {
		return cmp.Compare(slices.Index(order, a.Name), slices.Index(order, b.Name))
	})
	for _, key := range addOns {
		if !slices.ContainsFunc(wanted.AddOns, func(a *addonv1alpha1.ManagedClusterAddOn) bool {
			return a.Namespace == key.Namespace && a.Name == key.Name
		}) {
			all = append(all, Pruned{Kind: kindAddOn, NamespacedName: key, Action: Delete})
		}
	}
	all = append(all, pruneDefinitions(marked, wanted)...)
	stay, inUse := map[string]bool{}, maps.Clone(marked.InUse)
	for _, p := range all {
		if p.Kind != kindDefinition || p.Action == Delete {
			continue
		}
		stay[ConfigName(p.Name)] = true
		for _, config := range install.References(marked.Definitions[p.Name], nil) {
			if inUse == nil {
				inUse = map[types.NamespacedName]bool{}
			}
			inUse[config.NamespacedName] = true
		}
	}
	var configs, values []types.NamespacedName
	for _, config := range wanted.Configs {
		configs = append(configs, types.NamespacedName{Namespace: config.Namespace, Name: config.Name})
	}
	for _, value := range wanted.Values {
		values = append(values, types.NamespacedName{Namespace: value.Namespace, Name: value.Name})
	}
	all = slices.Concat(all, pruneConfigs(kindConfig, marked.Configs, configs, stay), pruneConfigs(kindValues, marked.Values, values, stay))
	return append(all, pruneVersions(marked.Versions, inUse, versions)...)
}

// pruneConfigs decides on AddOnDeploymentConfigs and ConfigMaps. Those called stay belong to definitions that stay.
func pruneConfigs(kind string, marked, wanted []types.NamespacedName, stay map[string]bool) []Pruned {
	var all []Pruned
	for _, key := range marked {
		if slices.Contains(wanted, key) {
			continue
		}
		p := Pruned{Kind: kind, NamespacedName: key, Action: Delete}
		if stay[key.Name] {
			p.Action, p.Reason = Keep, "its ClusterManagementAddOn exists"
		}
		all = append(all, p)
	}
	return all
}

// pruneDefinitions decides on ClusterManagementAddOns, those that depend on others first.
func pruneDefinitions(marked Marked, wanted Objects) []Pruned {
	var all []Pruned
	for _, name := range dependentsFirst(marked.Definitions) {
		if slices.ContainsFunc(wanted.Definitions, func(d *addonv1alpha1.ClusterManagementAddOn) bool { return d.Name == name }) {
			continue
		}
		p := Pruned{Kind: kindDefinition, NamespacedName: types.NamespacedName{Name: name}, Action: Delete}
		enabled := marked.Enabled[name]
		switch {
		case marked.Definitions[name].Spec.InstallStrategy.Type == upstream.AddonInstallStrategyPlacements && len(enabled) > 0:
			p.Action, p.Reason = Withdraw, fmt.Sprintf("%s is enabled on %s", name, clusterList(enabled))
		case len(enabled) > 0:
			p.Action, p.Reason = Keep, fmt.Sprintf("%s is enabled on %s", name, clusterList(enabled))
		}
		all = append(all, p)
	}
	return all
}

func clusterList(names []string) string {
	const limit = 5
	return text.List(slices.Sorted(slices.Values(names)), limit)
}

// dependentsFirst returns the names of add-ons, those that depend on others before these.
func dependentsFirst(definitions Definitions) []string {
	var all []Resolved
	for name, definition := range definitions {
		a := Resolved{}
		a.Name.Value = name
		for _, need := range definition.Spec.Dependencies {
			a.Dependencies = append(a.Dependencies, Dependency{AddonDependency: need})
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b Resolved) int { return cmp.Compare(a.Name.Value, b.Name.Value) })
	var names []string
	for _, a := range inOrder(all) {
		names = append(names, a.Name.Value)
	}
	slices.Reverse(names)
	return names
}

// pruneVersions decides on OperatorVersions.
func pruneVersions(marked []types.NamespacedName, inUse map[types.NamespacedName]bool, wanted []types.NamespacedName) []Pruned {
	var all []Pruned
	for _, key := range marked {
		if slices.Contains(wanted, key) {
			continue
		}
		p := Pruned{Kind: kindVersion, NamespacedName: key, Action: Delete}
		if inUse[key] {
			p.Action, p.Reason = Keep, "it is in use"
		}
		all = append(all, p)
	}
	return all
}
