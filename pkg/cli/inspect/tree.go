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
	cluster string
	addOns  []string
	output  *terminal.Output
}

// NewCmdTree returns the command. If runF is set, it replaces runTree.
func NewCmdTree(f *hubclient.Factory, runF func(context.Context, *TreeOptions) error) *cobra.Command {
	o := &TreeOptions{Factory: f, output: terminal.NewOutput(terminal.FormatName)}
	if runF == nil {
		runF = runTree
	}
	cmd := &cobra.Command{
		Use:   "tree [ADDON] --cluster CLUSTER",
		Short: "Show the dependencies of add-ons and their status on a cluster",
		Long: "Show an add-on with its direct and indirect dependencies and their status on a managed cluster. Without ADDON, show all\n" +
			"add-ons of the cluster, starting with those that no other add-on there depends on.\n\n" +
			"An add-on that occurs more than once is expanded only at its first occurrence, and a cycle is followed once. CAUSE is\n" +
			"the reason why a dependency is not satisfied, as evaluated by addon-manager. The command contacts only the hub.",
		Example: "  kubectl addon tree --cluster cluster1\n" +
			"  kubectl addon tree kafka --cluster cluster1",
		Args: terminal.AtMost("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.addOns = args
			return runF(cmd.Context(), o)
		},
	}
	hubclient.ClusterFlag(cmd, &o.cluster, "the add-ons are on")
	o.output.AddFlag(cmd)
	return cmd
}

func runTree(ctx context.Context, o *TreeOptions) error {
	c, err := o.Hub()
	if err != nil {
		return err
	}
	view, err := read.Cluster(ctx, c, o.cluster)
	if err != nil {
		return hubclient.Advise(err, o.cluster)
	}
	for _, name := range o.addOns {
		if err := view.CheckAddOn(name); err != nil {
			return err
		}
	}
	data := fleet.TreeOf(view, o.addOns)
	return o.output.Print(o.Out, terminal.Shown{Text: treeText(data), Data: data, Names: treeNames(data, view)})
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

// maxShownAlternatives is the number of alternatives that a line shows.
const maxShownAlternatives = 3

func line(n fleet.TreeNode) terminal.Node {
	name := text.Word(n.AddOn)
	switch {
	case n.Cycle:
		name += " (cycle)"
	case n.Repeated:
		name += " (shown above)"
	}
	switch {
	case n.InsteadOf != "":
		name += fmt.Sprintf(" (instead of %s)", text.Word(n.InsteadOf))
	case len(n.Alternatives) > 0:
		name += fmt.Sprintf(" (or %s)", text.List(n.Alternatives, maxShownAlternatives))
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
