package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

// dependentsData is the output of `dependents`.
type dependentsData struct {
	AddOn      string         `json:"addOn"`
	Dependents []dependentRow `json:"dependents"`
	// MissingOn lists the clusters that have dependents of the add-on, but not the add-on itself.
	MissingOn []string `json:"missingOn,omitempty"`
	// Malformed lists the add-ons whose dependencies cannot be parsed and are ignored.
	Malformed []string `json:"malformed,omitempty"`
}

// dependentRow is an add-on with one kind of impact, and the clusters with that impact.
type dependentRow struct {
	AddOn string                       `json:"addOn"`
	Type  addonv1alpha1.DependencyType `json:"type"`
	// Through lists the intermediate add-ons of an indirect dependency.
	Through  []string `json:"via,omitempty"`
	Clusters []string `json:"clusters"`
}

func dependentsOf(view dependentsView) dependentsData {
	data := dependentsData{AddOn: view.addOn, Dependents: dependentRows(view)}
	data.MissingOn = lackingClusters(view, data.Dependents)
	for _, problem := range view.malformed {
		data.Malformed = append(data.Malformed, problem.Error())
	}
	return data
}

// text returns a table; wide lists all clusters.
func (d dependentsData) text(wide bool) string {
	text := fmt.Sprintf("No add-on depends on %s.\n", terminal.Word(d.AddOn))
	if len(d.Dependents) > 0 {
		rows := make([][]string, len(d.Dependents))
		for i, row := range d.Dependents {
			rows[i] = []string{row.AddOn, string(row.Type), terminal.ThroughText(row.Through), terminal.EffectText(row.Type), terminal.ClustersText(row.Clusters, wide)}
		}
		text = terminal.Table([]string{"ADD-ON", "TYPE", "THROUGH", "EFFECT", "CLUSTERS"}, rows)
	}
	if len(d.MissingOn) > 0 {
		text += fmt.Sprintf("\n%s is not installed on clusters where other add-ons depend on it: %s\n",
			terminal.Word(d.AddOn), terminal.ClustersText(d.MissingOn, wide))
	}
	for _, problem := range d.Malformed {
		text += fmt.Sprintf("\nIgnored because the dependencies are malformed: %s\n", problem)
	}
	return text
}

// names returns the object names of the definitions, each once.
func (d dependentsData) names() []string {
	var names []string
	for _, row := range d.Dependents {
		if name := terminal.ObjectName(addonv1alpha1.GroupVersion.Group, "ClusterManagementAddOn", row.AddOn); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// dependentRows evaluates each cluster separately, because indirect dependencies depend on the installed add-ons. An add-on with the same
// impact on several clusters is one row, and one that is not installed is a row without clusters. The worst and most direct impact is
// first.
func dependentRows(view dependentsView) []dependentRow {
	rows := map[string]*dependentRow{}
	add := func(found []dependency.Dependent, clusters ...string) {
		for _, d := range found {
			key := fmt.Sprintf("%s %s %q", d.Name, d.Type, d.Through)
			if rows[key] == nil {
				rows[key] = &dependentRow{AddOn: d.Name, Type: d.Type, Through: d.Through, Clusters: []string{}}
			}
			rows[key].Clusters = append(rows[key].Clusters, clusters...)
		}
	}
	somewhere := map[string]bool{}
	for _, cluster := range slices.Sorted(maps.Keys(view.there)) {
		there := view.there[cluster]
		found := dependency.Dependents(view.addOn, view.direct, func(name string) bool { return there[name] })
		for _, d := range found {
			somewhere[d.Name] = true
		}
		add(found, cluster)
	}
	everywhere := dependency.Dependents(view.addOn, view.direct, func(string) bool { return true })
	add(slices.DeleteFunc(everywhere, func(d dependency.Dependent) bool { return somewhere[d.Name] }))
	sorted := make([]dependentRow, 0, len(rows))
	for _, row := range rows {
		sorted = append(sorted, *row)
	}
	slices.SortFunc(sorted, func(a, b dependentRow) int {
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
func lackingClusters(view dependentsView, rows []dependentRow) []string {
	lacking := map[string]bool{}
	for _, row := range rows {
		for _, cluster := range row.Clusters {
			if !view.there[cluster][view.addOn] {
				lacking[cluster] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(lacking))
}

// dependentsView holds the add-ons that depend on an add-on.
type dependentsView struct {
	addOn string
	// direct lists the direct dependents of each add-on.
	direct map[string][]dependency.Dependent
	// malformed lists the errors of declarations that cannot be parsed.
	malformed []error
	// there lists the installed add-ons by cluster.
	there map[string]map[string]bool
}
