package ui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

const (
	// maxFound is the number of results of a kind that page Search shows.
	maxFound = 50
	// maxQuery is the maximum number of bytes of a query: that of a name.
	maxQuery = 253
)

// searchView is what page Search shows. Each list has the best results.
type searchView struct {
	Query string
	// Problem is why the query is refused.
	Problem   string
	AddOns    found[foundAddOn]
	Clusters  found[foundCluster]
	Instances found[instanceRow]
	Packages  found[packageRow]
}

// Total is the number of results, with those that are not shown.
func (v searchView) Total() int {
	return v.AddOns.total() + v.Clusters.total() + v.Instances.total() + v.Packages.total()
}

// found has the results of a kind; More is the number of those that are not shown.
type found[T any] struct {
	Shown []T
	More  int
}

func (f found[T]) total() int { return len(f.Shown) + f.More }

// foundAddOn is an add-on with the number of clusters that have it.
type foundAddOn struct {
	Name     string
	Clusters int
}

// foundCluster is a cluster with the number of its add-ons and independent Instances, and the worst state of them.
type foundCluster struct {
	Name  string
	Count int
	Worst fleet.State
}

// searched are the objects that the user may read.
type searched struct {
	glance      fleet.Glance
	definitions map[string]fleet.Definition
	instances   []kudo.Instance
	versions    []kudo.OperatorVersion
}

func searchPage(ctx context.Context, v visit) (frame, error) {
	view := searchView{Query: strings.TrimSpace(v.URL.Query().Get("q"))}
	page := frame{Title: "Search", Template: "search", Query: view.Query}
	if len(view.Query) > maxQuery {
		view = searchView{Problem: fmt.Sprintf("The query has %d bytes; names have at most %d.", len(view.Query), maxQuery)}
		page.Query, page.Status, page.View = "", http.StatusBadRequest, view
		return page, nil
	}
	if view.Query != "" {
		all, err := v.readSearched(ctx)
		if err != nil {
			return frame{}, err
		}
		view = all.search(view.Query)
	}
	page.View = view
	return page, nil
}

// readSearched reads what can be found. Kinds that the user may not list, or that the hub does not have, are omitted.
func (v visit) readSearched(ctx context.Context) (all searched, err error) {
	if all.glance, err = read.Glance(ctx, v.reader, labels.Everything()); isReadProblem(err) {
		return all, err
	}
	if all.definitions, err = read.Definitions(ctx, v.reader); isReadProblem(err) {
		return all, err
	}
	var instances kudo.InstanceList
	if err = v.List(ctx, &instances, client.UnsafeDisableDeepCopy); isReadProblem(err) {
		return all, err
	}
	all.instances = instances.Items
	if all.versions, err = read.StoredVersions(ctx, v.reader, ""); isReadProblem(err) {
		return all, err
	}
	return all, nil
}

// search returns what the page shows of the objects whose names contain the query.
func (all searched) search(query string) searchView {
	counts := map[string]int{}
	for name := range all.definitions {
		counts[name] = 0
	}
	for _, seen := range all.glance {
		for of := range seen {
			if !of.Instance {
				counts[of.Name]++
			}
		}
	}
	addOns, more := best(query, slices.Sorted(maps.Keys(counts)), func(name string) []string { return []string{name} })
	view := searchView{Query: query, AddOns: found[foundAddOn]{More: more}}
	for _, name := range addOns {
		view.AddOns.Shown = append(view.AddOns.Shown, foundAddOn{name, counts[name]})
	}
	clusters, more := best(query, slices.Sorted(maps.Keys(all.glance)), func(name string) []string { return []string{name} })
	view.Clusters.More = more
	for _, name := range clusters {
		view.Clusters.Shown = append(view.Clusters.Shown, foundClusterOf(name, all.glance[name]))
	}
	view.Instances, view.Packages = all.searchInstances(query), all.searchPackages(query)
	return view
}

func foundClusterOf(name string, seen map[fleet.Subject]fleet.Glimpse) foundCluster {
	row := foundCluster{Name: name, Count: len(seen), Worst: fleet.NotEnabled}
	for _, glimpse := range seen {
		if glimpse.State.Rank() < row.Worst.Rank() {
			row.Worst = glimpse.State
		}
	}
	return row
}

func (all searched) searchInstances(query string) found[instanceRow] {
	instances := make([]*kudo.Instance, len(all.instances))
	for i := range all.instances {
		instances[i] = &all.instances[i]
	}
	slices.SortFunc(instances, func(a, b *kudo.Instance) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	matches, more := best(query, instances, func(i *kudo.Instance) []string { return []string{i.Name} })
	results := found[instanceRow]{More: more}
	for _, instance := range matches {
		results.Shown = append(results.Shown, instanceRowOf(instance))
	}
	return results
}

func (all searched) searchPackages(query string) found[packageRow] {
	rows := make([]packageRow, len(all.versions))
	for i := range all.versions {
		rows[i] = packageRowOf(&all.versions[i])
	}
	slices.SortFunc(rows, packageRow.compare)
	matches, more := best(query, rows, func(row packageRow) []string { return []string{row.Name, row.Operator} })
	return found[packageRow]{matches, more}
}

// best returns the best matches, and the number of the others.
func best[T any](query string, items []T, namesOf func(T) []string) (shown []T, more int) {
	matches := fleet.Search(query, items, namesOf)
	shown = matches[:min(len(matches), maxFound)]
	return shown, len(matches) - len(shown)
}
