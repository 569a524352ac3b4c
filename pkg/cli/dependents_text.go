package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

// dependentRow is one line of `dependents`: an add-on that suffers in one way, and the clusters where it does.
type dependentRow struct {
	dependency.Dependant
	clusters []string
}

// dependentsText is what `dependents` prints; wide names all clusters.
func dependentsText(view dependentsView, wide bool) string {
	rows := dependentRows(view)
	text := fmt.Sprintf("No add-on depends on %s.\n", word(view.addOn))
	if len(rows) > 0 {
		var lines strings.Builder
		lines.WriteString("ADD-ON\tTYPE\tTHROUGH\tEFFECT\tCLUSTERS\n")
		for _, row := range rows {
			lines.WriteString(strings.Join([]string{
				row.Name, string(row.Type), throughText(row.Through), effectText(row.Type), clustersText(row.clusters, wide),
			}, "\t") + "\n")
		}
		text = aligned(lines.String())
	}
	if lacking := lackingClusters(view, rows); len(lacking) > 0 {
		text += fmt.Sprintf("\n%s is not installed on clusters where others depend on it: %s\n", word(view.addOn), clustersText(lacking, wide))
	}
	for _, fault := range view.malformed {
		text += fmt.Sprintf("\nNot considered, for the dependencies are malformed: %v\n", fault)
	}
	return text
}

// dependentRows judges each cluster by itself, for who depends by way of whom is a matter of what is there. What suffers in the
// same way on several clusters is one row, and what is on no cluster is one without any: the worst and the nearest first.
func dependentRows(view dependentsView) []*dependentRow {
	rows := map[string]*dependentRow{}
	add := func(found []dependency.Dependant, clusters ...string) {
		for _, d := range found {
			key := fmt.Sprintf("%s %s %q", d.Name, d.Type, d.Through)
			if rows[key] == nil {
				rows[key] = &dependentRow{Dependant: d}
			}
			rows[key].clusters = append(rows[key].clusters, clusters...)
		}
	}
	somewhere := map[string]bool{}
	for _, cluster := range slices.Sorted(maps.Keys(view.there)) {
		there := view.there[cluster]
		found := dependency.Dependants(view.addOn, view.direct, func(name string) bool { return there[name] })
		for _, d := range found {
			somewhere[d.Name] = true
		}
		add(found, cluster)
	}
	everywhere := dependency.Dependants(view.addOn, view.direct, func(string) bool { return true })
	add(slices.DeleteFunc(everywhere, func(d dependency.Dependant) bool { return somewhere[d.Name] }))
	return slices.SortedFunc(maps.Values(rows), func(a, b *dependentRow) int {
		return cmp.Or(
			-cmp.Compare(a.Type, b.Type), // Required before Optional
			cmp.Compare(len(a.Through), len(b.Through)),
			cmp.Compare(a.Name, b.Name),
			slices.Compare(a.Through, b.Through),
		)
	})
}

// lackingClusters are the clusters where others depend on the add-on, and it is not there. Whoever does by way of others is there with
// one that does itself.
func lackingClusters(view dependentsView, rows []*dependentRow) []string {
	lacking := map[string]bool{}
	for _, row := range rows {
		for _, cluster := range row.clusters {
			if !view.there[cluster][view.addOn] {
				lacking[cluster] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(lacking))
}

func throughText(through []string) string {
	if len(through) == 0 {
		return "-"
	}
	return dependency.Way(through)
}

func effectText(t addon.DependencyType) string {
	if t == addon.DependencyTypeOptional {
		return "is degraded"
	}
	return "stops being available"
}

// clustersShown is how many clusters are named where not all are.
const clustersShown = 3

// clustersText is how many clusters there are, and which: all of them if wide, else the first ones.
func clustersText(clusters []string, wide bool) string {
	if len(clusters) == 0 {
		return "0"
	}
	shown, rest := clusters, ""
	if !wide && len(clusters) > clustersShown {
		shown, rest = clusters[:clustersShown], ", …"
	}
	return fmt.Sprintf("%d (%s%s)", len(clusters), strings.Join(shown, ", "), rest)
}
