package ui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/notice"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Sizes of the page: groups of clusters on a page, names of a group, reasons, and clusters on a page of a single group.
const (
	groupsShown  = 40
	namesShown   = 4
	reasonsShown = 15
	alikeShown   = 200
	// maxProblem is the number of characters that a page shows of what is wrong with a filter, which quotes the filter.
	maxProblem = 400
)

// filter selects a part of the fleet. It is in the query of the page's URL.
type filter struct {
	// Name is a part of the names of clusters, Selector selects labels of clusters.
	Name, Selector string
	// AddOn and Reason are a single add-on and reason, and State is a state that the clusters have.
	AddOn, Reason string
	State         fleet.State
	// Alike is a cluster whose group is shown.
	Alike string
	// Group is the label by whose values clusters are grouped; empty for none.
	Group string
	Page  int
	// Problem is the reason of an invalid selector, GroupProblem that of an invalid label.
	Problem, GroupProblem string
	// Path is the path of the page.
	Path     string
	selector labels.Selector
}

// filterOf returns the filter in the query of a page.
func filterOf(path string, query url.Values) filter {
	f := filter{
		Name: query.Get("cluster"), Selector: cmp.Or(query.Get("selector"), query.Get("l")), AddOn: query.Get("addon"), Reason: query.Get("reason"),
		State: fleet.State(query.Get("state")), Alike: query.Get("alike"), Group: strings.TrimSpace(query.Get("group")), Path: path,
		selector: labels.Everything(),
	}
	f.Page, _ = strconv.Atoi(query.Get("page")) // anything else is the first page
	f.Page = max(f.Page, 1)
	if selector, err := labels.Parse(f.Selector); err != nil {
		f.Problem = text.Head(err.Error(), maxProblem)
	} else {
		f.selector = selector
	}
	if f.Group != "" {
		f.GroupProblem = text.Head(strings.Join(validation.IsQualifiedName(f.Group), "; "), maxProblem)
	}
	return f
}

// Active reports whether the filter omits anything.
func (f filter) Active() bool {
	return f.Name != "" || f.Selector != "" || f.AddOn != "" || f.Reason != "" || f.State != "" || f.Alike != "" || f.Group != ""
}

// With returns the URL of the page with one value of the filter changed; it leads to the first page.
func (f filter) With(name, value string) string {
	query := url.Values{}
	for key, set := range map[string]string{
		"cluster": f.Name, "selector": f.Selector, "addon": f.AddOn, "reason": f.Reason, "state": string(f.State), "alike": f.Alike, "group": f.Group, name: value,
	} {
		if set != "" {
			query.Set(key, set)
		}
	}
	if len(query) == 0 {
		return f.Path
	}
	return f.Path + "?" + query.Encode()
}

// PagePath returns the URL of a page with the same filter.
func (f filter) PagePath(page int) string {
	path := f.With("", "")
	if page == 1 {
		return path
	}
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	return fmt.Sprintf("%s%spage=%d", path, separator, page)
}

// In returns the URL of the page with the clusters of a group only, not grouped any longer.
func (f filter) In(group fleet.LabelGroup) string {
	f.Group, f.Selector = "", strings.Trim(f.Selector+","+group.Selector, ",")
	return f.With("", "")
}

// of returns the part of a fleet that the filter selects.
func (f filter) of(all fleet.Glance) fleet.Glance {
	part := fleet.Glance{}
	for cluster, seen := range all {
		if !strings.Contains(cluster, f.Name) {
			continue
		}
		kept := map[fleet.Subject]fleet.Glimpse{}
		for of, glimpse := range seen {
			if f.AddOn == "" || of.String() == f.AddOn {
				kept[of] = glimpse
			}
		}
		if f.selects(kept) {
			part[cluster] = kept
		}
	}
	return part
}

// selects reports whether a cluster has an add-on in the state and with the reason of the filter.
func (f filter) selects(seen map[fleet.Subject]fleet.Glimpse) bool {
	if f.AddOn != "" && len(seen) == 0 {
		return f.State == fleet.NotEnabled
	}
	if f.State == "" && f.Reason == "" {
		return true
	}
	for _, glimpse := range seen {
		if (f.State == "" || glimpse.State == f.State) && (f.Reason == "" || glimpse.Reason == f.Reason || glimpse.Blocked == f.Reason) {
			return true
		}
	}
	return false
}

// fleetView is what page Fleet shows.
type fleetView struct {
	Filter   filter
	Summary  fleet.Summary
	Total    int
	Counts   []stateCount
	Subjects []fleet.Subject
	States   []fleet.State
	Reasons  []reasonRow
	// More is the number of reasons that are not shown.
	More   int
	Groups []groupRow
	Pages  []int
	// Labels has the groups of clusters by a label, if they are grouped by one.
	Labels labelTable
	// Alike lists the clusters of a single group, if one is shown.
	Alike   []string
	Command string
	// Suspensions lists what is suspended on the whole hub; Notices has all others about the clusters of the filter.
	Suspensions suspensionList
	Notices     noticeList
}

// stateCount is the number of add-ons in a state.
type stateCount struct {
	State fleet.State
	Count int
	// Permille is the part of all add-ons.
	Permille int
}

// reasonRow is a reason with the pages that explain it.
type reasonRow struct {
	fleet.ReasonSum
	// Names are the first add-ons and Instances, More the number of the others.
	Names []reasonName
	More  int
	// Path explains it on one cluster, Filtered is the fleet with this reason.
	Path, Filtered string
}

// reasonName is an add-on, or the Instances of a name, with its page.
type reasonName struct{ Name, Path string }

// groupRow is a group of clusters with the same states.
type groupRow struct {
	fleet.Group
	Cells []cell
	Shown []string
	More  int
}

// cell is the state of an add-on or Instance on the clusters of a group; Path explains it on Cluster, the first one. It is empty where it is not enabled.
type cell struct {
	State         fleet.State
	Cluster, Path string
}

func fleetPage(ctx context.Context, v visit) (frame, error) {
	f := filterOf("/", v.URL.Query())
	all, err := read.Glance(ctx, v.reader, f.selector)
	if err != nil {
		return frame{}, err
	}
	part := f.of(all)
	view := fleetOf(part, f)
	if f.Group != "" {
		managed, err := read.ManagedByName(ctx, v.reader)
		if err != nil {
			return frame{}, err
		}
		view.Labels = labelTableOf(part, f, managed)
	}
	view.Suspensions, view.Notices, err = v.fleetNotices(ctx, part, f)
	return frame{Title: "Fleet", Template: "fleet", View: view}, err
}

// fleetNotices returns what is suspended, and the other notices about a part of the fleet, as far as the user may read them.
func (v visit) fleetNotices(ctx context.Context, part fleet.Glance, f filter) (suspensionList, noticeList, error) {
	var instances kudo.InstanceList
	var clusters clusterv1.ManagedClusterList
	var definitions addonv1alpha1.ClusterManagementAddOnList
	for _, list := range []client.ObjectList{&instances, &clusters, &definitions} {
		if err := v.List(ctx, list, client.UnsafeDisableDeepCopy); isReadProblem(err) {
			return suspensionList{}, noticeList{}, err
		}
	}
	return suspensionsOf(instances.Items, clusters.Items, definitions.Items), noticesOf(pointers(instances.Items), isOnFleet(part, f)), nil
}

// isOnFleet means the notices about a part of the fleet. Suspensions have a table of their own.
func isOnFleet(part fleet.Glance, f filter) func(*kudo.Instance, notice.Kind) bool {
	return func(i *kudo.Instance, kind notice.Kind) bool {
		return kind != notice.Suspended && part[i.Namespace] != nil && (f.AddOn == "" || f.AddOn == subjectOf(i).String())
	}
}

// subjectOf returns what an Instance is in the matrix; a child is no row of it.
func subjectOf(instance *kudo.Instance) fleet.Subject {
	return fleet.Subject{Instance: !fleet.IsOfAddOn(instance), Name: instance.Name}
}

// fleetOf returns what the page shows of a fleet.
func fleetOf(part fleet.Glance, f filter) fleetView {
	sum := part.Sum()
	view := fleetView{Filter: f, Summary: sum, Command: fleetCommand(f), States: fleet.States}
	counts := map[fleet.State]int{}
	for _, of := range sum.AddOns {
		view.Subjects = append(view.Subjects, fleet.Subject{Name: of.AddOn})
		view.Total += of.Clusters
		add(counts, of.States)
	}
	for _, of := range sum.Instances {
		view.Subjects = append(view.Subjects, fleet.Subject{Instance: true, Name: of.Instance})
		view.Total += of.Clusters
		add(counts, of.States)
	}
	for _, state := range slices.Backward(fleet.States) {
		if counts[state] > 0 {
			view.Counts = append(view.Counts, stateCount{State: state, Count: counts[state], Permille: counts[state] * 1000 / view.Total})
		}
	}
	for _, reason := range sum.Reasons[:min(len(sum.Reasons), reasonsShown)] {
		view.Reasons = append(view.Reasons, reasonRowOf(reason, f))
	}
	view.More = len(sum.Reasons) - len(view.Reasons)
	view.group()
	return view
}

func add(counts, more map[fleet.State]int) {
	for state, count := range maps.All(more) {
		counts[state] += count
	}
}

func reasonRowOf(reason fleet.ReasonSum, f filter) reasonRow {
	row := reasonRow{
		ReasonSum: reason, Path: whyPath(reason.Clusters[0], reason.Example.Name), Filtered: f.With("reason", cmp.Or(reason.Reason, reason.Blocked)),
	}
	for _, name := range reason.AddOns {
		row.Names = append(row.Names, reasonName{name, addOnPath(name)})
	}
	for _, name := range reason.Instances {
		of := fleet.Subject{Instance: true, Name: name}.String()
		row.Names = append(row.Names, reasonName{of, f.With("addon", of)})
	}
	row.More = max(0, len(row.Names)-namesShown)
	row.Names = row.Names[:len(row.Names)-row.More]
	if reason.Example.Instance {
		row.Path = instancePath(reason.Clusters[0], reason.Example.Name)
	}
	return row
}

// group selects the groups on the page, or the clusters of one group.
func (v *fleetView) group() {
	groups := v.Summary.Groups
	if v.Filter.Alike != "" {
		groups = slices.DeleteFunc(slices.Clone(groups), func(g fleet.Group) bool { return !slices.Contains(g.Clusters, v.Filter.Alike) })
		if len(groups) == 1 {
			v.Alike = pageOf(groups[0].Clusters, alikeShown, v.Filter.Page)
			v.Pages = pagesOf(len(groups[0].Clusters), alikeShown)
		}
	} else {
		v.Pages = pagesOf(len(groups), groupsShown)
		groups = pageOf(groups, groupsShown, v.Filter.Page)
	}
	for _, group := range groups {
		row := groupRow{Group: group, Shown: group.Clusters[:min(len(group.Clusters), namesShown)]}
		row.More = len(group.Clusters) - len(row.Shown)
		for i, state := range group.States {
			row.Cells = append(row.Cells, cellOf(state, v.Subjects[i], group.Clusters[0]))
		}
		v.Groups = append(v.Groups, row)
	}
}

func cellOf(state fleet.State, of fleet.Subject, cluster string) cell {
	switch {
	case state == fleet.NotEnabled:
		return cell{State: state}
	case of.Instance:
		return cell{state, cluster, instancePath(cluster, of.Name)}
	default:
		return cell{state, cluster, whyPath(cluster, of.Name)}
	}
}

// pageOf returns the items on a page of the given size; pages count from 1.
func pageOf[T any](items []T, size, page int) []T {
	page = min(max(page, 1), len(items)/size+1)
	first := min((page-1)*size, len(items))
	return items[first:min(first+size, len(items))]
}

// pagesOf returns the numbers of the pages; none if there is only one.
func pagesOf(count, size int) []int {
	if count <= size {
		return nil
	}
	pages := make([]int, (count+size-1)/size)
	for i := range pages {
		pages[i] = i + 1
	}
	return pages
}

// fleetCommand returns the command that shows the same, as far as it has the filters.
func fleetCommand(f filter) string {
	line := command("fleet")
	switch {
	case f.AddOn != "" && !strings.HasPrefix(f.AddOn, "instance/"):
		line = command("get %s", f.AddOn)
	case f.AddOn != "":
		line = command("get %s", strings.TrimPrefix(f.AddOn, "instance/"))
	}
	if f.Selector != "" && f.Problem == "" {
		line += " --selector " + text.ShellWord(f.Selector)
	}
	return line + cmp.Or(map[bool]string{true: " -o wide"}[f.Alike != "" || f.Page > 1])
}

// bar is a part of a bar that shows states, in permille of its width.
type bar struct {
	State          fleet.State
	From, Permille int
}

// bars returns the bar of the states.
func bars(counts []stateCount) []bar {
	parts, from := make([]bar, len(counts)), 0
	for i, count := range counts {
		parts[i] = bar{State: count.State, From: from, Permille: max(count.Permille, 4)}
		from += parts[i].Permille
	}
	return parts
}

// Bars returns the bar of the page.
func (v fleetView) Bars() []bar { return bars(v.Counts) }

// labelGroupsShown is the number of groups by a label on a page.
const labelGroupsShown = 100

// labelTable has groups of clusters by the values of a label.
type labelTable struct {
	Label  string
	Groups []labelRow
	// States are the states that occur, the worst first.
	States []fleet.State
	Pages  []int
	// Unread is set if the user may not list ManagedClusters, which have the labels; Unknown is the number of clusters whose labels are unknown.
	Unread  bool
	Unknown int
	Filter  filter
}

// labelRow is a group of clusters with the numbers of add-ons in the states of the table, and the page with its clusters.
type labelRow struct {
	fleet.LabelGroup
	Path   string
	Counts []int
}

// labelTableOf returns the groups of a part of the fleet by the label of the filter.
func labelTableOf(part fleet.Glance, f filter, managed map[string]fleet.Managed) labelTable {
	if f.GroupProblem != "" {
		return labelTable{}
	}
	table := labelTable{Label: f.Group, Filter: f, Unread: managed == nil}
	if table.Unread {
		return table
	}
	groups := part.GroupByLabel(f.Group, managed)
	table.Unknown = len(part)
	sum := map[fleet.State]int{}
	for _, group := range groups {
		table.Unknown -= group.Clusters
		add(sum, group.States)
	}
	table.States, table.Pages = statesIn(sum), pagesOf(len(groups), labelGroupsShown)
	for _, group := range pageOf(groups, labelGroupsShown, f.Page) {
		table.Groups = append(table.Groups, labelRow{group, f.In(group), countsOf(table.States, group.States)})
	}
	return table
}

// statesIn returns the states that are counted at least once, the worst first.
func statesIn(counts map[fleet.State]int) []fleet.State {
	return slices.DeleteFunc(slices.Clone(fleet.States), func(state fleet.State) bool { return counts[state] == 0 })
}

// countsOf returns the numbers of the states.
func countsOf(states []fleet.State, counts map[fleet.State]int) []int {
	row := make([]int, len(states))
	for i, state := range states {
		row[i] = counts[state]
	}
	return row
}
