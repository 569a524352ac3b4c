package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/dependency"
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
	view, err := hubclient.GatherCluster(ctx, c, o.cluster)
	if err != nil {
		return hubclient.Advise(err, o.cluster)
	}
	for _, name := range o.addOns {
		if err := view.Lacks(name); err != nil {
			return err
		}
	}
	data := treeOf(view, o.addOns)
	return o.output.Print(o.Out, terminal.Shown{Text: data.text(), Data: data, Names: data.names(view)})
}

// treeData is the output of `tree`.
type treeData struct {
	Cluster string      `json:"cluster"`
	AddOns  []addOnNode `json:"addOns"`
	// Malformed lists the add-ons whose dependencies cannot be parsed, so that their last verdict is kept.
	Malformed []string `json:"malformed,omitempty"`
}

// addOnNode is an add-on, with the verdict on it as a dependency of its parent.
type addOnNode struct {
	AddOn string                       `json:"addOn"`
	Type  addonv1alpha1.DependencyType `json:"type,omitempty"`
	State string                       `json:"state"`
	// Cause states why the parent's dependency is not satisfied; empty if it is.
	Cause string `json:"cause,omitempty"`
	// Cycle is set if the add-on is its own ancestor; Repeated is set if its dependencies are shown elsewhere in the tree.
	Cycle     bool        `json:"cycle,omitempty"`
	Repeated  bool        `json:"repeated,omitempty"`
	DependsOn []addOnNode `json:"dependsOn,omitempty"`
}

// treeOf returns the trees of the given add-ons, or of all on the cluster.
func treeOf(view hubclient.Cluster, roots []string) treeData {
	if len(roots) == 0 {
		roots = treeRoots(view)
	}
	tree := addOnTree{view: view, shown: map[string]bool{}}
	data := treeData{Cluster: view.Name, AddOns: []addOnNode{}}
	for _, root := range roots {
		data.AddOns = append(data.AddOns, tree.node(dependency.Judgement{Name: root, Satisfied: true}, nil))
	}
	data.Malformed = tree.problems
	return data
}

// text returns the trees as a table.
func (d treeData) text() string {
	if len(d.AddOns) == 0 {
		return fmt.Sprintf("No add-ons are installed on cluster %s.\n", d.Cluster)
	}
	var lines strings.Builder
	lines.WriteString("ADD-ON\tTYPE\tSTATE\tCAUSE\n")
	for _, root := range d.AddOns {
		terminal.WriteTree(&lines, root.line())
	}
	text := terminal.Aligned(lines.String())
	for _, problem := range d.Malformed {
		text += fmt.Sprintf("\nThe last known state applies because the dependencies are malformed: %s\n", problem)
	}
	return text
}

func (n addOnNode) line() terminal.Node {
	name := terminal.Word(n.AddOn)
	switch {
	case n.Cycle:
		name += " (cycle)"
	case n.Repeated:
		name += " (shown above)"
	}
	line := terminal.Node{Text: strings.Join([]string{name, string(n.Type), n.State, n.Cause}, "\t")}
	for _, below := range n.DependsOn {
		line.Children = append(line.Children, below.line())
	}
	return line
}

// names returns the object names of the installed add-ons in the trees, each once.
func (d treeData) names(view hubclient.Cluster) []string {
	found := map[string]bool{}
	for _, root := range d.AddOns {
		root.visit(func(n addOnNode) {
			if view.AddOns[n.AddOn] != nil {
				found[terminal.ObjectName(addonv1alpha1.GroupVersion.Group, "ManagedClusterAddOn", n.AddOn)] = true
			}
		})
	}
	return slices.Sorted(maps.Keys(found))
}

func (n addOnNode) visit(each func(addOnNode)) {
	each(n)
	for _, below := range n.DependsOn {
		below.visit(each)
	}
}

// treeRoots returns a set of add-ons from which all add-ons of the cluster are reachable: the ones that no other installed add-on leads to,
// directly or through missing add-ons, and one of each cycle that no other add-on leads to.
func treeRoots(view hubclient.Cluster) []string {
	reach := map[string]map[string]bool{}
	for _, name := range view.Installed() {
		reach[name] = map[string]bool{}
		reachable(view, name, reach[name])
	}
	var roots []string
	reached := map[string]bool{}
	for _, name := range view.Installed() {
		below := slices.ContainsFunc(view.Installed(), func(other string) bool { return reach[other][name] && !reach[name][other] })
		if !below && !reached[name] {
			roots = append(roots, name)
			maps.Copy(reached, reach[name])
		}
	}
	return roots
}

// reachable adds an add-on and all its direct and indirect dependencies to reached.
func reachable(v hubclient.Cluster, name string, reached map[string]bool) {
	if reached[name] {
		return
	}
	reached[name] = true
	for _, need := range v.Needs(name) {
		reachable(v, need.Name, reached)
	}
}

// addOnTree builds the tree of add-ons.
type addOnTree struct {
	view hubclient.Cluster
	// shown holds the add-ons that are already in the tree with their dependencies.
	shown map[string]bool
	// problems lists the malformed declarations in the tree.
	problems []string
}

// node returns the node of a dependency, with its own dependencies as children. above lists its ancestors.
func (t *addOnTree) node(j dependency.Judgement, above []string) addOnNode {
	n := addOnNode{AddOn: j.Name, Type: j.Type, State: stateOf(t.view, j.Name), Cause: causeText(j)}
	if t.shown[j.Name] {
		n.Cycle = slices.Contains(above, j.Name)
		n.Repeated = !n.Cycle && len(t.view.Needs(j.Name)) > 0
		return n
	}
	t.shown[j.Name] = true
	if problem := t.view.Definitions[j.Name].Malformed; problem != nil {
		t.problems = append(t.problems, problem.Error())
	}
	above = append(slices.Clip(above), j.Name)
	for _, need := range t.view.Judge(j.Name) {
		n.DependsOn = append(n.DependsOn, t.node(need, above))
	}
	return n
}

// stateOf returns the state of an add-on on the cluster, in the terms of the causes.
func stateOf(v hubclient.Cluster, name string) string {
	seen := v.See(name)
	switch {
	case !seen.Installed && !seen.Defined:
		return "no such add-on"
	case !seen.Installed:
		return "not installed"
	case seen.Deleting:
		return "deleting"
	case seen.Available == "":
		return "not available (not reported yet)"
	case seen.Available == metav1.ConditionFalse:
		return fmt.Sprintf("not available (%s)", seen.Reason)
	case seen.Available == metav1.ConditionUnknown:
		return fmt.Sprintf("unknown (%s)", seen.Reason)
	case meta.IsStatusConditionTrue(v.AddOns[name].Status.Conditions, addonv1alpha1.ConditionDegraded):
		return "available, degraded"
	default:
		return "available"
	}
}

// causeText states why a dependency is not satisfied; empty if it is.
func causeText(j dependency.Judgement) string {
	switch {
	case j.Cause == dependency.Circular:
		return fmt.Sprintf("%s: %s", j.Cause, dependency.Way(j.Cycle))
	case j.Held && j.Satisfied:
		return "satisfied when last known"
	case j.Held:
		return fmt.Sprintf("%s, not satisfied when last known", j.Cause)
	default:
		return string(j.Cause)
	}
}
