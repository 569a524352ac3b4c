package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

func treeCommand(streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags) *cobra.Command {
	const of = "the add-ons are on"
	var cluster string
	cmd := &cobra.Command{
		Use:   "tree [ADDON] --cluster CLUSTER",
		Short: "Show what add-ons depend on, and how that is on a cluster",
		Long: "Tree shows an add-on with everything that it depends on, and how that is on a managed cluster; without ADDON, all add-ons\n" +
			"of the cluster, beginning with those that no other one there depends on. What stands in the tree more than once is\n" +
			"followed where it stands first, and a circle of dependencies once around. CAUSE says why a dependency is not\n" +
			"satisfied, as addon-manager judges it. It reads the hub only.",
		Args: atMost("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCluster(cmd, cluster, of); err != nil {
				return err
			}
			c, err := hubClient(flags)
			if err != nil {
				return err
			}
			view, err := gatherCluster(cmd.Context(), c, cluster)
			if err != nil {
				return explain(err, cluster)
			}
			for _, name := range args {
				if err := view.lacks(name); err != nil {
					return err
				}
			}
			return printers.WriteEscaped(streams.Out, treeText(view, args))
		},
	}
	clusterFlag(cmd, &cluster, of)
	return cmd
}

// treeText is what `tree` prints: the trees of the given add-ons, or of all on the cluster.
func treeText(view clusterView, roots []string) string {
	if len(roots) == 0 {
		roots = treeRoots(view)
	}
	if len(roots) == 0 {
		return fmt.Sprintf("No add-on is installed on cluster %s.\n", view.cluster)
	}
	tree := addOnTree{view: view, shown: map[string]bool{}}
	var lines strings.Builder
	lines.WriteString("ADD-ON\tTYPE\tSTATE\tCAUSE\n")
	for _, root := range roots {
		writeTree(&lines, tree.node(dependency.Judgement{Name: root, Satisfied: true}, nil))
	}
	text := aligned(lines.String())
	for _, fault := range tree.faults {
		text += fmt.Sprintf("\nThe last verdict stays, for the dependencies are malformed: %v\n", fault)
	}
	return text
}

// aligned puts cells that tabs part into columns.
func aligned(lines string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	_, _ = w.Write([]byte(lines)) // a strings.Builder takes everything
	_ = w.Flush()
	rows := strings.Split(b.String(), "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " ")
	}
	return strings.Join(rows, "\n")
}

// treeRoots are the add-ons of the cluster from which all of them can be reached: those that no other one there leads to, be it by
// way of others that are not there, and one of each circle of which that is true.
func treeRoots(view clusterView) []string {
	reach := map[string]map[string]bool{}
	for _, name := range view.installed() {
		reach[name] = map[string]bool{}
		view.reach(name, reach[name])
	}
	var roots []string
	reached := map[string]bool{}
	for _, name := range view.installed() {
		below := slices.ContainsFunc(view.installed(), func(other string) bool { return reach[other][name] && !reach[name][other] })
		if !below && !reached[name] {
			roots = append(roots, name)
			maps.Copy(reached, reach[name])
		}
	}
	return roots
}

// reach adds an add-on, and all that it depends on over whatever others, to reached.
func (v clusterView) reach(name string, reached map[string]bool) {
	if reached[name] {
		return
	}
	reached[name] = true
	for _, need := range v.needs(name) {
		v.reach(need.Name, reached)
	}
}

// addOnTree builds the tree of add-ons.
type addOnTree struct {
	view clusterView
	// shown are the add-ons that stand in the tree already, with what they depend on.
	shown map[string]bool
	// faults are the malformed declarations on the way.
	faults []error
}

// node is the line about an add-on, by the verdict of the one above over it, with what it depends on below. above are the add-ons
// on the way to it.
func (t *addOnTree) node(j dependency.Judgement, above []string) node {
	name, again := word(j.Name), t.shown[j.Name]
	switch {
	case slices.Contains(above, j.Name):
		name += " (circle)"
	case again && len(t.view.needs(j.Name)) > 0:
		name += " (shown above)"
	}
	n := node{text: strings.Join([]string{name, string(j.Type), t.view.state(j.Name), causeText(j)}, "\t")}
	if again {
		return n
	}
	t.shown[j.Name] = true
	if fault := t.view.definitions[j.Name].malformed; fault != nil {
		t.faults = append(t.faults, fault)
	}
	above = append(slices.Clip(above), j.Name)
	for _, need := range t.view.judge(j.Name) {
		n.children = append(n.children, t.node(need, above))
	}
	return n
}

// state says how an add-on is on the cluster, in the terms of the causes.
func (v clusterView) state(name string) string {
	seen := v.see(name)
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
	case meta.IsStatusConditionTrue(v.addOns[name].Status.Conditions, addon.ConditionDegraded):
		return "available, degraded"
	default:
		return "available"
	}
}

// causeText says why a dependency is not satisfied; nothing where it is.
func causeText(j dependency.Judgement) string {
	switch {
	case j.Cause == dependency.Circular:
		return fmt.Sprintf("%s: %s", j.Cause, dependency.Way(j.Circle))
	case j.Held && j.Satisfied:
		return "held: satisfied when last known"
	case j.Held:
		return fmt.Sprintf("%s, held: not satisfied when last known", j.Cause)
	default:
		return string(j.Cause)
	}
}
