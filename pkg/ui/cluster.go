package ui

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/console/why"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/ui/graph"
)

// clusterView is what page Cluster shows.
type clusterView struct {
	Cluster string
	AddOns  []addOnRow
	// Instances lists the Instances that belong to no add-on.
	Instances []instanceRow
	Graph     dependencyGraph
	Malformed []string
	Agent     agentView
	Commands  []string
	Enable    enableForm
}

// addOnRow is an add-on on a cluster.
type addOnRow struct {
	Cluster, Name string
	fleet.Glimpse
	// Version is the OperatorVersion, Plan the plan that runs.
	Version, Plan string
	// Planned is set if the add-on has an Instance.
	Planned bool
	Lacks   []string
}

// instanceRow is an Instance on a cluster.
type instanceRow struct {
	Cluster, Name string
	fleet.Glimpse
	Version, Plan string
}

// agentView is what the hub knows about the agent of a cluster.
type agentView struct {
	Version string
	Renewed moment
	// Late is set if the lease has ended.
	Late bool
}

func clusterPage(ctx context.Context, v visit) (frame, error) {
	name := v.PathValue("cluster")
	cluster, err := v.cluster(ctx, name)
	if err != nil {
		return frame{}, err
	}
	view := clusterOf(cluster)
	view.Enable = v.enableForm(ctx, enableForm{Cluster: name, AddOns: missingOn(cluster)})
	view.Agent, err = v.agent(ctx, name)
	return frame{Title: "Cluster " + name, Template: "cluster", View: view}, err
}

// cluster reads a cluster with its Instances. A cluster without add-ons has to be known as a ManagedCluster that the user may read. Without
// permission to list definitions, it has none.
func (v visit) cluster(ctx context.Context, name string) (fleet.Cluster, error) {
	definitions, err := read.Definitions(ctx, v.reader)
	if err != nil && !isHidden(err) {
		return fleet.Cluster{}, err
	}
	cluster, err := read.AddOns(ctx, v.reader, name, definitions)
	if missing := (*read.MissingError)(nil); errors.As(err, &missing) {
		return cluster, errAbsent
	}
	if err != nil {
		return cluster, err
	}
	cluster.Instances, err = read.Instances(ctx, v.reader, name)
	if err == nil && len(cluster.AddOns)+len(cluster.Instances) == 0 {
		var known read.ManagedClusters
		known, err = read.Clusters(ctx, v.reader, name, labels.Everything())
		if err == nil && !slices.Contains(known.Names, name) {
			err = errAbsent
		}
	}
	return cluster, err
}

// clusterOf returns what the page shows of a cluster.
func clusterOf(cluster fleet.Cluster) clusterView {
	view := clusterView{Cluster: cluster.Name, Commands: []string{
		command("get --cluster %s", cluster.Name), command("tree --cluster %s", cluster.Name),
	}}
	nodes, needs := map[string]node{}, []need(nil)
	for _, name := range cluster.AddOnNames() {
		row := addOnRowOf(cluster, name)
		view.AddOns = append(view.AddOns, row)
		nodes[name] = node{state: row.State, note: row.ReasonText(), path: whyPath(cluster.Name, name)}
	}
	for _, name := range cluster.AddOnNames() {
		for _, edge := range cluster.Edges(name) {
			if _, drawn := nodes[edge.By]; !drawn {
				nodes[edge.By] = node{state: fleet.NotEnabled, note: "not enabled", path: whyPath(cluster.Name, edge.By)}
			}
			needs = append(needs, need{
				Edge: graph.Edge{From: name, To: edge.By}, optional: edge.Type == addonv1alpha1.DependencyTypeOptional, elsewhere: edge.Elsewhere,
				labels: edge.Labels(), text: edge.Text(),
			})
		}
	}
	view.Graph = graphOf("Dependencies of the add-ons on cluster "+cluster.Name, nodes, needs)
	view.Malformed = fleet.TreeOf(cluster, nil).Malformed
	for _, name := range slices.Sorted(maps.Keys(cluster.Instances)) {
		if instance := cluster.Instances[name]; fleet.Independent(instance) {
			view.Instances = append(view.Instances, instanceRowOf(instance))
		}
	}
	slices.SortStableFunc(view.AddOns, func(a, b addOnRow) int { return a.State.Rank() - b.State.Rank() })
	slices.SortStableFunc(view.Instances, func(a, b instanceRow) int { return a.State.Rank() - b.State.Rank() })
	return view
}

func addOnRowOf(cluster fleet.Cluster, name string) addOnRow {
	row := addOnRow{Cluster: cluster.Name, Name: name, Glimpse: fleet.GlimpseOf(cluster.AddOns[name])}
	if definition := cluster.Definitions[name]; definition.PlanManaged {
		row.Version = install.VersionInUse(definition.Object, cluster.AddOns[name]).Name
	}
	if instance := cluster.Instances[name]; instance != nil {
		row.Planned, row.Plan = true, progress.RunningPlan(instance)
	}
	for _, judged := range cluster.Judge(name) {
		if !judged.Satisfied {
			row.Lacks = append(row.Lacks, judged.Name)
		}
	}
	return row
}

func instanceRowOf(instance *kudo.Instance) instanceRow {
	return instanceRow{
		Cluster: instance.Namespace, Name: instance.Name, Glimpse: fleet.GlimpseOfInstance(instance),
		Version: instance.Spec.OperatorVersion.Name, Plan: progress.RunningPlan(instance),
	}
}

// agent reads the lease of a cluster's agent; what the user may not read, or does not exist, is empty.
func (v visit) agent(ctx context.Context, cluster string) (agentView, error) {
	lease := &coordinationv1.Lease{}
	err := v.Get(ctx, client.ObjectKey{Namespace: cluster, Name: addonv1alpha1.AgentLease}, lease)
	if isHidden(err) {
		return agentView{}, nil
	}
	if err != nil {
		return agentView{}, err
	}
	view := agentView{Version: lease.Labels[addonv1alpha1.LabelVersion]}
	if renewed := lease.Spec.RenewTime; renewed != nil {
		view.Renewed = moment{renewed.Time, v.now}
		if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil {
			view.Late = v.now.After(renewed.Add(time.Duration(*seconds) * time.Second))
		}
	}
	return view, nil
}

// explanationOf explains the state of an add-on, as far as the user may read the definitions.
func explanationOf(cluster fleet.Cluster, name string, now time.Time) why.Data {
	if cluster.Definitions == nil {
		return why.Data{AddOn: name, Cluster: cluster.Name,
			Explanation: "Its dependencies are unknown, because you are not allowed to list ClusterManagementAddOns. The conditions below are what it reports."}
	}
	return why.Of(cluster, name, now).Data(name)
}

// whyView is what page Why shows.
type whyView struct {
	why.Data
	fleet.Glimpse
	Installed  bool
	Planned    bool
	Conditions []conditionRow
	Dependents []string
	Command    string
	// Fixes are the commands that fix the causes.
	Fixes []fixRow
	// Stuck are rollouts that wait for each other.
	Stuck []rolloutRow
	// Disable is the path that disables the add-on, empty if the user may not; Token is the value that its form has to contain.
	Disable, Token string
	Enable         enableForm
}

// fixRow is a command that fixes a cause.
type fixRow struct {
	Command string
	// Path is the page with the action that does the same, and Label its text; empty if there is none.
	Path, Label string
}

// actionOf matches a command that an action of the dashboard replaces. Commands with other names are not linked.
var actionOf = regexp.MustCompile(`^kubectl addon (plan run|plan cancel|update|enable) ([a-z0-9.-]+) `)

// fixRows returns commands with the pages of their actions on a cluster. Without permission to act, there are none.
func fixRows(cluster string, commands []string, acts bool) []fixRow {
	rows := make([]fixRow, len(commands))
	for i, line := range commands {
		rows[i].Command = line
		found := actionOf.FindStringSubmatch(line)
		if !acts || found == nil || !strings.Contains(line+" ", " --cluster "+cluster+" ") {
			continue
		}
		switch name := found[2]; found[1] {
		case "update":
			rows[i].Path, rows[i].Label = instancePath(cluster, name)+"#parameters", "Change parameters of "+name
		case "enable":
			rows[i].Path, rows[i].Label = whyPath(cluster, name), "Enable "+name
		default:
			rows[i].Path, rows[i].Label = instancePath(cluster, name)+"#actions", "Plans of "+name
		}
	}
	return rows
}

// maxSlots is the number of clusters that page Why names for a rollout.
const maxSlots = 10

// rolloutRow is a rollout that waits for others, with clusters that occupy its slots; More is the number of those that are not shown.
type rolloutRow struct {
	AddOn string
	Slots []dependency.Slot
	More  int
}

func rolloutRows(deadlocks []dependency.SlotDeadlock) []rolloutRow {
	var rows []rolloutRow
	for _, deadlock := range deadlocks {
		for _, rollout := range deadlock.Rollouts {
			shown := min(len(rollout.Slots), maxSlots)
			rows = append(rows, rolloutRow{AddOn: rollout.AddOn, Slots: rollout.Slots[:shown], More: len(rollout.Slots) - shown})
		}
	}
	return rows
}

// rollouts reads what explains why rollouts have not reached the cluster. A user who may not read all clusters gets no rollouts that wait for each other: any of
// the others may release a slot.
func (v visit) rollouts(ctx context.Context, cluster fleet.Cluster) (fleet.Rollouts, error) {
	rollouts, err := read.Rollouts(ctx, v.reader, v.now, cluster)
	if err != nil || len(rollouts.Deadlocks) == 0 {
		return rollouts, err
	}
	readsAll, err := v.rights.May(ctx, authorizationv1.ResourceAttributes{
		Verb: "list", Group: addonv1alpha1.GroupVersion.Group, Resource: "managedclusteraddons",
	})
	if !readsAll {
		rollouts.Deadlocks = nil
	}
	return rollouts, err
}

func whyPage(ctx context.Context, v visit) (frame, error) {
	cluster, err := v.cluster(ctx, v.PathValue("cluster"))
	if err != nil {
		return frame{}, err
	}
	name := v.PathValue("addon")
	if cluster.CheckAddOn(name) != nil {
		return frame{}, errAbsent
	}
	if cluster.Rollouts, err = v.rollouts(ctx, cluster); err != nil {
		return frame{}, err
	}
	view := whyView{
		Data: explanationOf(cluster, name, v.now), Glimpse: fleet.Glimpse{State: fleet.NotEnabled, Reason: "not enabled"},
		Planned: cluster.Instances[name] != nil, Command: command("why %s --cluster %s", name, cluster.Name),
	}
	view.Fixes, view.Stuck = fixRows(cluster.Name, view.Commands, v.acts != nil), rolloutRows(view.Deadlocks)
	if addOn := cluster.AddOns[name]; addOn != nil {
		view.Installed, view.Glimpse, view.Conditions = true, fleet.GlimpseOf(addOn), conditionRows(addOn.Status.Conditions, v.now)
		if addOn.DeletionTimestamp.IsZero() && v.may(ctx, deleteAddOn(cluster.Name, name)) {
			view.Disable, view.Token = whyPath(cluster.Name, name)+"/disable", v.token
		}
	}
	if !view.Installed {
		view.Enable = v.enableForm(ctx, enableForm{Cluster: cluster.Name, AddOns: []string{name}})
	}
	for _, dependent := range cluster.Dependents(name) {
		view.Dependents = append(view.Dependents, dependent.Name)
	}
	return frame{Title: name + " on " + cluster.Name, Template: "why", View: view}, nil
}
