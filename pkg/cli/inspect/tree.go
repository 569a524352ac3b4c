package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// TreeOptions holds the arguments and flags of the command. Without add-ons, all are shown.
type TreeOptions struct {
	*hubclient.Factory
	where  hubclient.Selection
	addOns []string
	output *terminal.Output
}

// NewCmdTree returns the command. If runF is set, it replaces runTree.
func NewCmdTree(f *hubclient.Factory, runF func(context.Context, *TreeOptions) error) *cobra.Command {
	o := &TreeOptions{Factory: f, output: terminal.NewOutput(terminal.FormatName)}
	if runF == nil {
		runF = runTree
	}
	const of = "the add-ons are on"
	cmd := &cobra.Command{
		Use:   "tree [ADDON] --cluster CLUSTER[,CLUSTER]",
		Short: "Show the dependencies of add-ons and their status",
		Long: "Show an add-on with its direct and indirect dependencies and their status on a managed cluster. Without ADDON, show all\n" +
			"add-ons of the cluster, starting with those that no other add-on there depends on.\n\n" +
			"An add-on that occurs more than once is expanded only at its first occurrence, and a cycle is followed once. CAUSE is\n" +
			"the reason why a dependency is not satisfied, as evaluated by addon-manager.\n\n" +
			"For several clusters (--cluster, --selector, --placement or --all-clusters), clusters with the same tree share it, and those\n" +
			"that do not have ADDON are omitted. The command contacts only the hub.",
		Example: "  kubectl addon tree --cluster cluster1\n" +
			"  kubectl addon tree kafka --cluster cluster1\n" +
			"  kubectl addon tree kafka --selector region=eu",
		Args: terminal.AtMost("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.where.RequireClusters(cmd, of); err != nil {
				return err
			}
			o.addOns = args
			return runF(cmd.Context(), o)
		},
	}
	o.where.AddFlags(cmd, of)
	o.output.AddFlag(cmd)
	return cmd
}

func runTree(ctx context.Context, o *TreeOptions) error {
	c, err := o.Hub()
	if err != nil {
		return err
	}
	show := treesOf
	if o.where.Single() != "" {
		show = treeOf
	}
	shown, err := show(ctx, c, o)
	if err != nil {
		return hubclient.Advise(err, strings.Join(o.where.Names, ","))
	}
	return o.output.Print(o.Out, shown)
}

// treeOf shows the add-ons of a single cluster.
func treeOf(ctx context.Context, c hubclient.Hub, o *TreeOptions) (terminal.Shown, error) {
	view, err := read.Cluster(ctx, c, o.where.Single())
	if err != nil {
		return terminal.Shown{}, err
	}
	for _, name := range o.addOns {
		if err := view.CheckAddOn(name); err != nil {
			return terminal.Shown{}, err
		}
	}
	data := fleet.TreeOf(view, o.addOns)
	return terminal.Shown{Text: treeText(data), Data: data, Names: treeNames(data, view)}, nil
}

// treeList is the output of `tree` for several clusters, for programs.
type treeList struct {
	Trees []fleet.Tree `json:"trees"`
}

// treesOf shows the add-ons of several clusters.
func treesOf(ctx context.Context, c hubclient.Hub, o *TreeOptions) (terminal.Shown, error) {
	views, err := viewsWith(ctx, c, o.where, strings.Join(o.addOns, ""))
	if err != nil {
		return terminal.Shown{}, err
	}
	return showTrees(views, o.addOns), nil
}

// showTrees shows the trees of several clusters; those with the same one share it.
func showTrees(views map[string]fleet.Cluster, addOns []string) terminal.Shown {
	list, names, clusters := treeList{Trees: []fleet.Tree{}}, map[string]bool{}, map[string][]string{}
	var order []string
	for _, cluster := range slices.Sorted(maps.Keys(views)) {
		data := fleet.TreeOf(views[cluster], addOns)
		list.Trees = append(list.Trees, data)
		for _, name := range treeNames(data, views[cluster]) {
			names[name] = true
		}
		shown := treeText(data)
		if len(data.AddOns) == 0 {
			shown = "No add-ons are installed.\n"
		}
		if clusters[shown] == nil {
			order = append(order, shown)
		}
		clusters[shown] = append(clusters[shown], cluster)
	}
	var texts []string
	for _, shown := range order {
		texts = append(texts, terminal.ClustersTitle(clusters[shown], false)+":\n"+shown)
	}
	return terminal.Shown{Text: strings.Join(texts, "\n"), Data: list, Names: slices.Sorted(maps.Keys(names))}
}

// treeText returns the trees as a table.
func treeText(d fleet.Tree) string {
	if len(d.AddOns) == 0 {
		return fmt.Sprintf("No add-ons are installed on cluster %s.\n", d.Cluster)
	}
	var lines strings.Builder
	lines.WriteString("ADD-ON\tTYPE\tSTATE\tCAUSE\n")
	for _, root := range d.AddOns {
		terminal.WriteTree(&lines, line(root))
	}
	shown := terminal.Align(lines.String())
	for _, problem := range d.Malformed {
		shown += fmt.Sprintf("\nThe last known state applies because the dependencies are malformed: %s\n", problem)
	}
	return shown
}

func line(n fleet.TreeNode) terminal.Node {
	name := text.Word(n.AddOn)
	switch {
	case n.Cycle:
		name += " (cycle)"
	case n.Repeated:
		name += " (shown above)"
	}
	if candidate := fleet.CandidateText(n.InsteadOf, n.Alternatives); candidate != "" {
		name += " (" + candidate + ")"
	}
	cause := n.Cause
	if n.Elsewhere {
		cause = n.Clusters
	}
	shown := terminal.Node{Text: strings.Join([]string{name, string(n.Type), n.State, cause}, "\t")}
	for _, below := range n.DependsOn {
		shown.Children = append(shown.Children, line(below))
	}
	return shown
}

// treeNames returns the object names of the installed add-ons in the trees, each once.
func treeNames(d fleet.Tree, view fleet.Cluster) []string {
	found := map[string]bool{}
	for _, root := range d.AddOns {
		root.Visit(func(n fleet.TreeNode) {
			if view.AddOns[n.AddOn] != nil {
				found[text.ObjectName(addonv1alpha1.GroupVersion.Group, "ManagedClusterAddOn", n.AddOn)] = true
			}
		})
	}
	return slices.Sorted(maps.Keys(found))
}
