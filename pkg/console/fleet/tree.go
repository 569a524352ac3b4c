package fleet

import (
	"fmt"
	"maps"
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/selector"
)

// Tree is the output of `tree`.
type Tree struct {
	Cluster string     `json:"cluster"`
	AddOns  []TreeNode `json:"addOns"`
	// Malformed lists the add-ons whose dependencies cannot be parsed, so that their last verdict is kept.
	Malformed []string `json:"malformed,omitempty"`
}

// TreeNode is an add-on, with the verdict on it as a dependency of its parent.
type TreeNode struct {
	AddOn string                       `json:"addOn"`
	Type  addonv1alpha1.DependencyType `json:"type,omitempty"`
	State string                       `json:"state"`
	// Cause states why the parent's dependency is not satisfied; empty if it is.
	Cause string `json:"cause,omitempty"`
	// Alternatives are the other add-ons that satisfy the parent's dependency as well. InsteadOf is the one that the dependency names if this one is an
	// alternative of it.
	Alternatives []string `json:"alternatives,omitempty"`
	InsteadOf    string   `json:"insteadOf,omitempty"`
	// Clusters selects the clusters on which the dependency exists. Elsewhere is set if this cluster is none of them.
	Clusters  string `json:"clusters,omitempty"`
	Elsewhere bool   `json:"elsewhere,omitempty"`
	// Cycle is set if the add-on is its own ancestor; Repeated is set if its dependencies are shown elsewhere in the tree.
	Cycle     bool       `json:"cycle,omitempty"`
	Repeated  bool       `json:"repeated,omitempty"`
	DependsOn []TreeNode `json:"dependsOn,omitempty"`
}

// TreeOf returns the trees of the given add-ons, or of all on the cluster.
func TreeOf(view Cluster, roots []string) Tree {
	if len(roots) == 0 {
		roots = Roots(view)
	}
	tree := addOnTree{view: view, shown: map[string]bool{}}
	data := Tree{Cluster: view.Name, AddOns: []TreeNode{}}
	for _, root := range roots {
		data.AddOns = append(data.AddOns, tree.node(dependency.Judgement{Name: root, By: root, Satisfied: true}, nil))
	}
	data.Malformed = tree.problems
	return data
}

func (n TreeNode) Visit(each func(TreeNode)) {
	each(n)
	for _, below := range n.DependsOn {
		below.Visit(each)
	}
}

// Roots returns a set of add-ons from which all add-ons of the cluster are reachable: the ones that no other installed add-on leads to,
// directly or through missing add-ons, and one of each cycle that no other add-on leads to.
func Roots(view Cluster) []string {
	reach, nearest := map[string]map[string]bool{}, Once(view.Nearest)
	for _, name := range view.AddOnNames() {
		reach[name] = map[string]bool{}
		Reach(nearest, name, reach[name])
	}
	var roots []string
	reached := map[string]bool{}
	for _, name := range view.AddOnNames() {
		below := slices.ContainsFunc(view.AddOnNames(), func(other string) bool { return reach[other][name] && !reach[name][other] })
		if !below && !reached[name] {
			roots = append(roots, name)
			maps.Copy(reached, reach[name])
		}
	}
	return roots
}

// Reach adds an add-on and all its direct and indirect dependencies to reached.
func Reach(needsOf func(name string) []addonv1alpha1.AddonDependency, name string, reached map[string]bool) {
	if reached[name] {
		return
	}
	reached[name] = true
	for _, need := range needsOf(name) {
		Reach(needsOf, need.Name, reached)
	}
}

// addOnTree builds the tree of add-ons.
type addOnTree struct {
	view Cluster
	// shown holds the add-ons that are already in the tree with their dependencies.
	shown map[string]bool
	// problems lists the malformed declarations in the tree.
	problems []string
}

// node returns the node of a dependency, with its own dependencies as children. above lists its ancestors.
func (t *addOnTree) node(j dependency.Judgement, above []string) TreeNode {
	n := TreeNode{AddOn: j.By, Type: j.Type, State: stateOf(t.view, j.By), Cause: CauseText(j), Alternatives: j.Alternatives}
	if j.By != j.Name {
		n.InsteadOf = j.Name
	}
	if t.shown[j.By] {
		n.Cycle = slices.Contains(above, j.By)
		n.Repeated = !n.Cycle && len(t.view.Needs(j.By)) > 0
		return n
	}
	t.shown[j.By] = true
	definition := t.view.Definitions[j.By]
	if definition.Malformed != nil {
		t.problems = append(t.problems, definition.Malformed.Error())
	}
	above = append(slices.Clip(above), j.By)
	for _, need := range t.view.Judge(j.By) {
		below := t.node(need, above)
		below.Clusters = clustersText(definition.Needs, need.Name)
		n.DependsOn = append(n.DependsOn, below)
	}
	for _, need := range t.view.Elsewhere(j.By) {
		n.DependsOn = append(n.DependsOn, TreeNode{
			AddOn: need.Name, Type: need.Type, State: ElsewhereText, Clusters: selector.Text(need.Clusters), Elsewhere: true,
		})
	}
	return n
}

// stateOf returns the state of an add-on on the cluster, in the terms of the causes.
func stateOf(v Cluster, name string) string {
	addOn, seen := v.AddOns[name], v.See(name)
	switch {
	case addOn == nil && !seen.Defined:
		return "no such add-on"
	case addOn == nil:
		return "not installed"
	}
	switch g := GlimpseOf(addOn); {
	case g.State == Removing:
		return "deleting"
	case seen.Available == "":
		return "not available (not reported yet)"
	case !g.State.IsAvailable():
		return fmt.Sprintf("%s (%s)", g.State.Text(), g.ReasonText())
	case g.State == Blocked, g.State == Waiting:
		return fmt.Sprintf("available, %s (%s)", g.State.Text(), g.Reason)
	case g.State == Degraded:
		return "available, degraded"
	case g.Reason == addonv1alpha1.ReasonUpdating:
		return "available, updating"
	default:
		return "available"
	}
}
