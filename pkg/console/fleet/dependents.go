package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/selector"
)

// Dependents is the output of `dependents`.
type Dependents struct {
	AddOn      string         `json:"addOn"`
	Dependents []DependentRow `json:"dependents"`
	// MissingOn lists the clusters that have dependents of the add-on, but not the add-on itself.
	MissingOn []string `json:"missingOn,omitempty"`
	// Malformed lists the add-ons whose dependencies cannot be parsed and are ignored.
	Malformed []string `json:"malformed,omitempty"`
}

// DependentRow is an add-on with one kind of impact, and the clusters with that impact.
type DependentRow struct {
	AddOn string                       `json:"addOn"`
	Type  addonv1alpha1.DependencyType `json:"type"`
	// Through lists the intermediate add-ons of an indirect dependency.
	Through  []string `json:"via,omitempty"`
	Clusters []string `json:"clusters"`
}

func DependentsOf(view DependentsView) Dependents {
	data := Dependents{AddOn: view.AddOn, Dependents: dependentRows(view)}
	data.MissingOn = lackingClusters(view, data.Dependents)
	for _, problem := range view.Malformed {
		data.Malformed = append(data.Malformed, problem.Error())
	}
	return data
}

// dependentRows evaluates each cluster separately, because indirect dependencies depend on the installed add-ons. An add-on with the same
// impact on several clusters is one row, and one that is not installed is a row without clusters. The worst and most direct impact is
// first.
func dependentRows(view DependentsView) []DependentRow {
	rows := map[string]*DependentRow{}
	add := func(found []dependency.Dependent, clusters ...string) {
		for _, d := range found {
			key := fmt.Sprintf("%s %s %q", d.Name, d.Type, d.Through)
			if rows[key] == nil {
				rows[key] = &DependentRow{AddOn: d.Name, Type: d.Type, Through: d.Through, Clusters: []string{}}
			}
			rows[key].Clusters = append(rows[key].Clusters, clusters...)
		}
	}
	somewhere := map[string]bool{}
	for _, cluster := range slices.Sorted(maps.Keys(view.There)) {
		there := view.There[cluster]
		exists := func(name string) bool { return there[name] }
		found := dependency.Dependents(view.AddOn, view.directOn(cluster), exists, func(_, _, other string) bool { return exists(other) })
		maps.Copy(somewhere, there)
		add(found, cluster)
	}
	everywhere := dependency.Dependents(view.AddOn, view.Direct, nil, nil)
	add(slices.DeleteFunc(everywhere, func(d dependency.Dependent) bool { return somewhere[d.Name] }))
	sorted := make([]DependentRow, 0, len(rows))
	for _, row := range rows {
		sorted = append(sorted, *row)
	}
	slices.SortFunc(sorted, func(a, b DependentRow) int {
		return cmp.Or(
			-cmp.Compare(a.Type, b.Type), // Required before Optional
			cmp.Compare(len(a.Through), len(b.Through)),
			cmp.Compare(a.AddOn, b.AddOn),
			slices.Compare(a.Through, b.Through),
		)
	})
	return sorted
}

// lackingClusters returns the clusters that have dependents of the add-on, but not the add-on itself. Each indirect dependent is on a
// cluster with a direct one.
func lackingClusters(view DependentsView, rows []DependentRow) []string {
	lacking := map[string]bool{}
	for _, row := range rows {
		for _, cluster := range row.Clusters {
			if !view.There[cluster][view.AddOn] {
				lacking[cluster] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(lacking))
}

// DependentsView holds the add-ons that depend on an add-on.
type DependentsView struct {
	AddOn string
	// Needs are the dependencies of each add-on. Direct lists the direct dependents of each add-on on a cluster that has all dependencies.
	Needs  map[string][]addonv1alpha1.AddonDependency
	Direct map[string][]dependency.Dependent
	// Selected is what selectors of dependencies read of each cluster; nil if there are none, or it was not read: then every dependency counts.
	Selected map[string]selector.Cluster
	// Malformed lists the errors of declarations that cannot be parsed.
	Malformed []error
	// There lists the installed add-ons by cluster.
	There map[string]map[string]bool
}

// directOn returns the direct dependents of each add-on on a cluster.
func (v DependentsView) directOn(cluster string) map[string][]dependency.Dependent {
	selected, known := v.Selected[cluster]
	if !known {
		return v.Direct
	}
	needs := make(map[string][]addonv1alpha1.AddonDependency, len(v.Needs))
	for name, declared := range v.Needs {
		needs[name] = dependency.On(declared, selected)
	}
	return dependency.Direct(needs)
}

// ThroughText returns the path of an indirect dependency, or "-" for a direct one.
func ThroughText(through []string) string {
	if len(through) == 0 {
		return "-"
	}
	return dependency.Way(through)
}

// EffectText returns the effect on a dependent when a dependency of that type is removed.
func EffectText(t addonv1alpha1.DependencyType) string {
	if t == addonv1alpha1.DependencyTypeOptional {
		return "becomes degraded"
	}
	return "becomes unavailable"
}
