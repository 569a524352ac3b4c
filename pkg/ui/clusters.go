package ui

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

const (
	// clustersShown is the number of clusters on a page.
	clustersShown = 100
	// maxLabels is the number of labels that a form suggests.
	maxLabels = 50
)

// clustersView is what page Clusters shows.
type clustersView struct {
	Filter filter
	Total  int
	// Rows are the clusters on the page, or Labels the groups if they are grouped by a label.
	Rows   []managedRow
	States []fleet.State
	Pages  []int
	Labels labelTable
	// Unread is set if the user may not list ManagedClusters: only clusters with add-ons are shown.
	Unread bool
	// Suggested are labels to group by.
	Suggested []string
	Command   string
}

// managedRow is a cluster with the numbers of add-ons in the states of the table.
type managedRow struct {
	Name string
	fleet.Managed
	Counts []int
}

// AvailableState returns the state in which the cluster is shown.
func (r managedRow) AvailableState() fleet.State {
	switch r.Available {
	case "True":
		return fleet.Available
	case "False":
		return fleet.NotAvailable
	default:
		return fleet.Unknown
	}
}

func clustersPage(ctx context.Context, v visit) (frame, error) {
	f := filterOf("/clusters", v.URL.Query())
	managed, err := read.ManagedByName(ctx, v.reader)
	if err != nil {
		return frame{}, err
	}
	page := frame{Title: "Clusters", Template: "clusters"}
	all := fleet.Glance{}
	if f.Problem != "" || f.GroupProblem != "" {
		page.Status = http.StatusBadRequest
	} else if all, err = read.Glance(ctx, v.reader, f.selector); err != nil {
		return frame{}, err
	}
	page.View = clustersOf(f.of(all), f, managed)
	return page, nil
}

// clustersOf returns what the page shows of a part of the fleet.
func clustersOf(part fleet.Glance, f filter, managed map[string]fleet.Managed) clustersView {
	view := clustersView{Filter: f, Total: len(part), Unread: managed == nil, Suggested: labelsIn(managed), Command: fleetCommand(f)}
	if f.Group != "" {
		view.Labels = labelTableOf(part, f, managed)
		return view
	}
	names := slices.Sorted(maps.Keys(part))
	view.Pages = pagesOf(len(names), clustersShown)
	sum := map[fleet.State]int{}
	names = pageOf(names, clustersShown, f.Page)
	for _, name := range names {
		add(sum, part.StatesOf(name))
	}
	view.States = statesIn(sum)
	for _, name := range names {
		view.Rows = append(view.Rows, managedRow{name, managed[name], countsOf(view.States, part.StatesOf(name))})
	}
	return view
}

// labelsIn returns labels of the clusters, the first by name.
func labelsIn(managed map[string]fleet.Managed) []string {
	found := map[string]bool{}
	for _, cluster := range managed {
		for label := range cluster.Labels {
			found[label] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(found))
	return sorted[:min(len(sorted), maxLabels)]
}
