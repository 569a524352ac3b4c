package ui

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
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
	Notices   noticeList
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
	cluster = cluster.Current()
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
	view.Notices = noticesOf(maps.Values(cluster.Instances), everyNotice)
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

// clusterRow is the state of the add-on on a cluster.
type clusterRow struct {
	Cluster string
	fleet.Glimpse
}
