package ui

import (
	"cmp"
	"context"
	"errors"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/kube/content"
	"github.com/tandem-addons/tandem/pkg/text"
)

// The changes that page What if shows.
const (
	ifDisabled = "disable"
	ifUpgraded = "upgrade"
)

// maxForecasts is the number of clusters that page What if shows a change on, because each is simulated.
const maxForecasts = 50

// whatIfView is what page What if shows: a change that is not made.
type whatIfView struct {
	// Name is the add-on or Instance, Cluster the only cluster, empty for all clusters.
	Name, Cluster string
	// Back is the path of the page about it.
	Back string
	// Change and Version are what is chosen, and Versions the OperatorVersions to choose from.
	Change, Version string
	Versions        []string
	// Clusters is the number of clusters that have it, More the number of those that are not shown.
	Clusters, More int
	change.DryRun
	Commands []string
}

// foresees reports whether the user may see page What if, which needs the definitions of add-ons.
func (v visit) foresees(ctx context.Context) bool {
	may, err := v.rights.May(ctx, authorizationv1.ResourceAttributes{
		Verb: "list", Group: addonv1alpha1.GroupVersion.Group, Resource: "clustermanagementaddons",
	})
	return err == nil && may
}

func whatIfAddOnPage(ctx context.Context, v visit) (frame, error) {
	name := v.PathValue("addon")
	glance, err := read.Glance(ctx, v.reader, labels.Everything())
	if err != nil {
		return frame{}, err
	}
	var clusters []string
	for cluster, seen := range glance {
		if _, enabled := seen[fleet.Subject{Name: name}]; enabled {
			clusters = append(clusters, cluster)
		}
	}
	slices.Sort(clusters)
	return v.whatIf(ctx, whatIfView{Name: name, Back: addOnPath(name)}, clusters)
}

func whatIfInstancePage(ctx context.Context, v visit) (frame, error) {
	cluster, name := v.PathValue("cluster"), v.PathValue("instance")
	return v.whatIf(ctx, whatIfView{Name: name, Cluster: cluster, Back: instancePath(cluster, name)}, []string{cluster})
}

// whatIf returns the page about a change of an add-on or Instance on clusters.
func (v visit) whatIf(ctx context.Context, view whatIfView, clusters []string) (frame, error) {
	if len(clusters) == 0 {
		return frame{}, errAbsent
	}
	view.Clusters, view.More = len(clusters), max(0, len(clusters)-maxForecasts)
	clusters = clusters[:len(clusters)-view.More]
	state, err := change.GatherCached(ctx, read.NewCachingReader(content.NewFillingReader(complete{v.reader})), clusters)
	if err != nil {
		return frame{}, err
	}
	if view.Versions, err = v.versionsFor(ctx, state, view.Name, clusters); err != nil {
		return frame{}, err
	}
	query := v.URL.Query()
	view.Change, view.Version = ifDisabled, query.Get("version")
	if query.Get("change") == ifUpgraded {
		view.Change = ifUpgraded
	}
	var changes []change.Change
	refused := change.Refusals{}
	decides := false // a Placement, so that the command that makes the change refuses it
	for _, cluster := range clusters {
		key := client.ObjectKey{Namespace: cluster, Name: view.Name}
		decides = decides || view.isPlaced(state, key)
		edited, err := view.on(ctx, state, key)
		switch {
		case errors.Is(err, change.ErrAbsent):
		case err != nil:
			refused[cluster] = err
		default:
			changes = append(changes, edited)
		}
	}
	if len(changes)+len(refused) == 0 {
		return frame{}, errAbsent
	}
	view.DryRun = change.DryRunOf(changes, refused)
	view.Commands = []string{view.command(decides)}
	return frame{Title: "What if: " + view.Name, Template: "whatif", View: view}, nil
}

// isPlaced reports whether a Placement decides on what the change is about: whether the add-on is enabled, or its version.
func (w whatIfView) isPlaced(state *change.State, key client.ObjectKey) bool {
	if w.Change == ifUpgraded {
		return state.IsRolledOut(key)
	}
	return state.IsPlaced(key)
}

// on returns the change on a cluster.
func (w whatIfView) on(ctx context.Context, state *change.State, key client.ObjectKey) (change.Change, error) {
	if w.Change == ifUpgraded {
		return state.Edit(ctx, change.Edit{ObjectKey: key, Upgrade: true, Choice: change.Choice{Version: w.Version}, WhatIf: true})
	}
	removal, err := state.Removal(key)
	if err != nil {
		return change.Change{}, err
	}
	return state.Remove(ctx, removal)
}

// command returns the command that shows the same. 'kubectl addon upgrade' and 'uninstall' refuse an add-on if a Placement decides on its version, or enables it, and
// what-if upgrade needs a version: without a choice, it is the one that is shown.
func (w whatIfView) command(placed bool) string {
	where := " --all-clusters"
	if w.Cluster != "" {
		where = " --cluster " + text.ShellWord(w.Cluster)
	}
	switch {
	case w.Change != ifUpgraded && placed:
		return command("what-if disable %s", w.Name) + where
	case w.Change != ifUpgraded:
		return command("uninstall %s", w.Name) + where + " --dry-run"
	}
	version := w.Version
	if at := slices.IndexFunc(w.Changes, func(c change.ChangeData) bool { return c.To != "" }); placed && version == "" && at >= 0 {
		version = w.Changes[at].To
	}
	switch {
	case placed:
		return command("what-if upgrade %s %s", w.Name, cmp.Or(version, "VERSION")) + where
	case version != "":
		where += " --version " + text.ShellWord(version)
	}
	return command("upgrade %s", w.Name) + where + " --dry-run"
}

// versionsFor returns the OperatorVersions of the operators that the Instances of the name run.
func (v visit) versionsFor(ctx context.Context, state *change.State, name string, clusters []string) ([]string, error) {
	var runs []client.ObjectKey
	for _, cluster := range clusters {
		if instance := state.FindInstance(client.ObjectKey{Namespace: cluster, Name: name}); instance != nil && !slices.Contains(runs, install.VersionOf(instance)) {
			runs = append(runs, install.VersionOf(instance))
		}
	}
	return v.versionsLike(ctx, runs)
}
