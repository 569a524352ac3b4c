package ui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/notice"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/selector"
	"github.com/tandem-addons/tandem/pkg/text"
	"github.com/tandem-addons/tandem/pkg/ui/graph"
)

// addOnView is what page Add-on shows.
type addOnView struct {
	Name    string
	Defined bool
	Counts  []stateCount
	Total   int
	Reasons []reasonRow
	// Clusters lists the clusters that have the add-on, the worst first; MoreClusters is the number of the others.
	Clusters     []clusterRow
	MoreClusters int
	Graph        dependencyGraph
	// Versions lists the OperatorVersions that Instances of the add-on run, with their numbers.
	Versions []versionCount
	// Dependents lists the add-ons that depend on it, with their clusters.
	Dependents fleet.Dependents
	Malformed  string
	// Placed states which Placements decide on the version, and Edit is the command that changes that; both are empty if none does.
	Placed, Edit string
	Commands     []string
	Enable       enableForm
	Upgrade      upgradeForm
	// WhatIf is the path of page What if, empty if the user may not see it.
	WhatIf string
	// Notices are those about the Instances of the add-on, without their children.
	Notices noticeList
}

// versionCount is the number of clusters that run or install a version.
type versionCount struct {
	Version            string
	Clusters, Changing int
	Permille           int
}

func addOnPage(ctx context.Context, v visit) (frame, error) {
	name := v.PathValue("addon")
	glance, err := read.Glance(ctx, v.reader, labels.Everything())
	if err != nil {
		return frame{}, err
	}
	definitions, err := read.Definitions(ctx, v.reader)
	if err != nil && !isHidden(err) {
		return frame{}, err
	}
	view := addOnOf(name, glance, definitions)
	if !view.Defined && view.Total == 0 {
		return frame{}, errAbsent
	}
	view.Dependents = v.dependents(ctx, name)
	if view.Total > 0 && v.foresees(ctx) {
		view.WhatIf = addOnPath(name) + "/what-if"
	}
	if view.Defined {
		view.Enable = v.enableForm(ctx, enableForm{AddOn: name, Clusters: without(name, glance)})
	}
	if !isVersionPlaced(definitions[name].Object) {
		if view.Upgrade, err = v.addOnUpgradeForm(ctx, name, view.Clusters); err != nil {
			return frame{}, err
		}
	}
	view.Versions, view.Notices, err = v.versions(ctx, name)
	return frame{Title: "Add-on " + name, Template: "addon", View: view}, err
}

// dependents returns the add-ons that depend on an add-on; none if the user may not read the definitions.
func (v visit) dependents(ctx context.Context, name string) fleet.Dependents {
	found, err := read.Dependents(ctx, v.reader, name)
	if err != nil {
		return fleet.Dependents{}
	}
	return fleet.DependentsOf(found)
}

// executionsShown is the number of executions on a page of an add-on's history.
const executionsShown = 100

// addOnHistoryView is what the page with the history of an add-on shows: the last execution on each cluster, the latest first.
type addOnHistoryView struct {
	Name       string
	Executions []executionRow
	// Total is the number of clusters with an execution, Unrecorded that of clusters whose agent has not recorded any.
	Total, Unrecorded int
	Pages             []int
	Filter            filter
	Command           string
}

// executionRow is the last execution on a cluster.
type executionRow struct {
	Cluster, Name string
	revisionRow
}

func addOnHistoryPage(ctx context.Context, v visit) (frame, error) {
	name := v.PathValue("addon")
	definitions, err := read.Definitions(ctx, v.reader)
	if isReadProblem(err) {
		return frame{}, err
	}
	var instances kudo.InstanceList
	if err := v.List(ctx, &instances, client.UnsafeDisableDeepCopy); isReadProblem(err) {
		return frame{}, err
	}
	view := addOnHistoryOf(name, instances.Items, filterOf(addOnPath(name)+"/history", v.URL.Query()), v.now)
	if _, defined := definitions[name]; !defined && view.Total+view.Unrecorded == 0 {
		return frame{}, errAbsent
	}
	return frame{Title: "History of " + name, Template: "history", View: view}, nil
}

// addOnHistoryOf returns what the page shows of the Instances of an add-on, whose histories have the last execution only.
func addOnHistoryOf(name string, instances []kudo.Instance, f filter, now time.Time) addOnHistoryView {
	view := addOnHistoryView{Name: name, Filter: filter{Page: f.Page, Path: f.Path}, Command: command("history %s", name)}
	var rows []executionRow
	for i := range instances {
		instance := &instances[i]
		if instance.Name != name || !ownedByAddOn(instance) {
			continue
		}
		if last := revisionRows(instance.Status.History, now); len(last) > 0 {
			rows = append(rows, executionRow{instance.Namespace, name, last[0]})
		} else {
			view.Unrecorded++
		}
	}
	slices.SortFunc(rows, func(a, b executionRow) int {
		return cmp.Or(b.Started.at.Compare(a.Started.at), cmp.Compare(a.Cluster, b.Cluster))
	})
	view.Total, view.Pages = len(rows), pagesOf(len(rows), executionsShown)
	view.Executions = pageOf(rows, executionsShown, f.Page)
	return view
}

// addOnOf returns what the page shows of an add-on.
func addOnOf(name string, all fleet.Glance, definitions map[string]fleet.Definition) addOnView {
	alone := filter{AddOn: name, Page: 1, Path: "/"}
	only := fleetOf(alone.of(all), alone)
	definition, defined := definitions[name]
	view := addOnView{
		Name: name, Defined: defined, Counts: only.Counts, Total: only.Total, Reasons: only.Reasons,
		Commands: []string{command("get %s", name), command("dependents %s", name)},
	}
	if definition.Malformed != nil {
		view.Malformed = definition.Malformed.Error()
	}
	if view.Placed = placedText(definition.Object); view.Placed != "" {
		view.Edit = text.Command("kubectl edit clustermanagementaddon %s", name)
	}
	view.Clusters = clusterRowsOf(name, all)
	view.MoreClusters = max(0, len(view.Clusters)-alikeShown)
	view.Clusters = view.Clusters[:len(view.Clusters)-view.MoreClusters]
	worst := map[string]fleet.State{}
	for _, seen := range all {
		for of, glimpse := range seen {
			if known, ok := worst[of.Name]; !of.Instance && (!ok || glimpse.State.Rank() < known.Rank()) {
				worst[of.Name] = glimpse.State
			}
		}
	}
	view.Graph = definitionGraph(name, definitions, worst)
	return view
}

// maxPlacements is the number of Placements that page Add-on names.
const maxPlacements = 3

// placedText states which Placements decide on the version of an add-on; empty if none does. The definition may be nil.
func placedText(definition *addonv1alpha1.ClusterManagementAddOn) string {
	var versions []string
	for _, p := range install.PlacedVersions(definition) {
		if p.Version.Name != "" {
			versions = append(versions, fmt.Sprintf("OperatorVersion %s/%s to all clusters that Placement %s selects", p.Version.Namespace, p.Version.Name, p.Placement))
		}
	}
	if len(versions) == 0 {
		return ""
	}
	return "OCM applies " + strings.Join(text.Limit(versions, maxPlacements, "more"), "; ") + ". Change the version in spec.installStrategy."
}

// isVersionPlaced reports whether Placements decide on the version of an add-on on every cluster. The definition may be nil.
func isVersionPlaced(definition *addonv1alpha1.ClusterManagementAddOn) bool {
	placed := install.PlacedVersions(definition)
	return len(placed) > 0 && !slices.ContainsFunc(placed, func(p install.PlacedVersion) bool { return p.Version.Name == "" })
}

// clusterRowsOf returns the clusters that have the add-on, the worst first.
func clusterRowsOf(name string, all fleet.Glance) []clusterRow {
	var rows []clusterRow
	for cluster, seen := range all {
		if glimpse, enabled := seen[fleet.Subject{Name: name}]; enabled {
			rows = append(rows, clusterRow{cluster, glimpse})
		}
	}
	slices.SortFunc(rows, func(a, b clusterRow) int {
		return cmp.Or(a.State.Rank()-b.State.Rank(), cmp.Compare(a.Cluster, b.Cluster))
	})
	return rows
}

// definitionGraph draws an add-on with all that it depends on and all that depends on it, each in the worst state on any cluster.
func definitionGraph(name string, definitions map[string]fleet.Definition, worst map[string]fleet.State) dependencyGraph {
	below, above := map[string][]string{}, map[string][]string{}
	var needs []need
	for _, from := range slices.Sorted(maps.Keys(definitions)) {
		for _, declared := range definitions[from].Needs {
			for _, to := range dependency.Candidates(declared) {
				below[from], above[to] = append(below[from], to), append(above[to], from)
				needs = append(needs, declaredNeed(from, to, declared))
			}
		}
	}
	drawn := map[string]bool{}
	reach(name, below, drawn)
	delete(drawn, name)
	reach(name, above, drawn)
	nodes := map[string]node{}
	for other := range drawn {
		state, enabled := worst[other]
		if !enabled {
			state = fleet.NotEnabled
		}
		_, defined := definitions[other]
		nodes[other] = node{state: state, note: noteOf(state, defined), path: addOnPath(other), current: other == name}
	}
	return graphOf("Dependencies of add-on "+name, nodes, needs)
}

// declaredNeed returns a dependency on one of its candidates as it is declared, for all clusters.
func declaredNeed(from, to string, declared addonv1alpha1.AddonDependency) need {
	n := need{Edge: graph.Edge{From: from, To: to}, optional: declared.Type == addonv1alpha1.DependencyTypeOptional}
	if declared.Version != "" {
		n.labels = append(n.labels, "requires "+declared.Version)
	}
	if to != declared.Name {
		n.labels = append(n.labels, fleet.CandidateText(declared.Name, nil))
	}
	if clusters := selector.Text(declared.Clusters); clusters != "" {
		n.labels = append(n.labels, "only on "+clusters)
	}
	n.text = to
	if len(n.labels) > 0 {
		n.text += " (" + strings.Join(n.labels, ", ") + ")"
	}
	return n
}

func noteOf(worst fleet.State, defined bool) string {
	switch {
	case !defined:
		return "no such add-on"
	case worst == fleet.NotEnabled, worst == fleet.Available:
		return worst.Text()
	default:
		return "worst: " + worst.Text()
	}
}

func reach(name string, next map[string][]string, reached map[string]bool) {
	if reached[name] {
		return
	}
	reached[name] = true
	for _, other := range next[name] {
		reach(other, next, reached)
	}
}

// versions counts the versions that the Instances of an add-on run, and returns the notices about them.
func (v visit) versions(ctx context.Context, name string) ([]versionCount, noticeList, error) {
	var instances kudo.InstanceList
	if err := v.List(ctx, &instances, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsForbidden(err) || isMissingKind(err) {
			return nil, noticeList{}, nil
		}
		return nil, noticeList{}, err
	}
	notices := noticesOf(pointers(instances.Items), func(i *kudo.Instance, _ notice.Kind) bool { return i.Name == name && fleet.IsOfAddOn(i) })
	return versionsOf(name, instances.Items), notices, nil
}

// versionsOf counts the versions that the Instances of the name run. An Instance that last started another version, or whose plan runs,
// is changing.
func versionsOf(name string, instances []kudo.Instance) []versionCount {
	counts, total := map[string]*versionCount{}, 0
	for i := range instances {
		instance := &instances[i]
		if instance.Name != name {
			continue
		}
		version := instance.Spec.OperatorVersion.Name
		if counts[version] == nil {
			counts[version] = &versionCount{Version: version}
		}
		total++
		counts[version].Clusters++
		last := instance.Status.Execution
		if last == nil || last.OperatorVersion.Name != version || !instance.Status.PlanStatus[last.Plan].Status.IsTerminal() {
			counts[version].Changing++
		}
	}
	rows := make([]versionCount, 0, len(counts))
	for _, version := range slices.Sorted(maps.Keys(counts)) {
		count := counts[version]
		count.Permille = (count.Clusters - count.Changing) * 1000 / total
		rows = append(rows, *count)
	}
	return rows
}

// Bars returns the bar of the page.
func (v addOnView) Bars() []bar { return bars(v.Counts) }

// SettledClusters is the number of clusters where no plan is due.
func (v versionCount) SettledClusters() int { return v.Clusters - v.Changing }
