// Package tree decides which operators an OperatorVersion brings along: the versions that its KudoOperator tasks mean, what these
// bring along in turn, and how the Instances of all of them are called. It is pure and touches no cluster.
package tree

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/dependency"
	"github.com/tandem-addons/tandem/pkg/text"
)

// MaxInstances bounds a tree: operators that each have two children of the next one would make millions.
const MaxInstances = 256

// Fault is something that keeps a tree from being run.
type Fault struct {
	// Reason is one of the reasons of condition Resolved that are about children.
	Reason string
	// Message names the way to the thing at fault, and the way out.
	Message string
}

// Error is why a version cannot be run because of what it brings along.
type Error struct {
	// Faults are all that there are, never none.
	Faults []Fault
}

// faultLimit is how many faults the text of an Error names; who mends those is told the others.
const faultLimit = 10

func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, fault := range e.Faults {
		lines[i] = fault.Message
	}
	return strings.Join(text.Limit(lines, faultLimit, "more faults"), "\n")
}

// Resolve is the tree below root. candidates are the versions that there are of the operators in it, root among them where it is one, and
// perhaps others. What is wrong is an *Error with every fault: circles, versions that do not exist, children that would have the same name,
// and trees that are too large.
func Resolve(root *kudo.OperatorVersion, candidates []kudo.OperatorVersion) (*Node, error) {
	r := resolution{candidates: candidates, nodes: map[string]*Node{}}
	tree := r.visit(root)
	if size := r.size(tree, map[*Node]int{}); size > MaxInstances {
		r.fault(kudo.ReasonChildrenInvalid, "%s brings more than %d Instances along: split the operator", root.Name, MaxInstances)
	} else {
		r.names(tree)
	}
	if len(r.faults) > 0 {
		return nil, &Error{Faults: r.faults}
	}
	return tree, nil
}

// resolution is a walk through the graph of operators.
type resolution struct {
	candidates []kudo.OperatorVersion
	// nodes by the name of the version: nil while what is below it is being walked through.
	nodes map[string]*Node
	// way from the root to where the walk is.
	way    []string
	faults []Fault
}

// visit is the node of a version; its children are left out where they are at fault.
func (r *resolution) visit(version *kudo.OperatorVersion) *Node {
	node := &Node{Version: version}
	r.nodes[version.Name] = nil
	r.way = append(r.way, version.Name)
	for _, task := range Tasks(&version.Spec) {
		if child := r.child(version, task); child != nil {
			node.Children = append(node.Children, Child{Task: task, Node: child})
		}
	}
	r.way = r.way[:len(r.way)-1]
	r.nodes[version.Name] = node
	return node
}

// child is the node of the version that the task means; nil where it is at fault.
func (r *resolution) child(parent *kudo.OperatorVersion, task kudo.Task) *Node {
	version, err := Choose(task, r.candidates)
	if err != nil {
		r.fault(kudo.ReasonChildVersionNotFound, "%s: task %q of %s: %v", r.wayTo(wanted(task)), task.Name, parent.Name, err)
		return nil
	}
	node, met := r.nodes[version.Name]
	if met && node == nil {
		r.fault(kudo.ReasonCircularOperators,
			"circular dependency: %s: an operator cannot be a child of its own children; take it out of one of them", r.wayTo(version.Name))
		return nil
	}
	if !met {
		node = r.visit(&version)
	}
	return node
}

func (r *resolution) wayTo(name string) string {
	return dependency.Way(append(slices.Clone(r.way), name))
}

func (r *resolution) fault(reason, format string, args ...any) {
	r.faults = append(r.faults, Fault{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// size is how many Instances the tree makes, or more than MaxInstances.
func (r *resolution) size(node *Node, counted map[*Node]int) int {
	if size, done := counted[node]; done {
		return size
	}
	size := 1
	for _, child := range node.Children {
		size = min(size+r.size(child.Node, counted), MaxInstances+1)
	}
	counted[node] = size
	return size
}

// names judges what the descendants of an Instance would be called, whatever its own name is. On a managed cluster dots are dashes, so
// that names of different levels can be the same.
func (r *resolution) names(root *Node) {
	taken := map[string]Descendant{}
	for _, d := range root.Descendants("") {
		end := strings.ReplaceAll(strings.TrimPrefix(d.Name, "."), ".", "-")
		if room := validation.DNS1123LabelMaxLength - len("x-"); len(end) > room {
			r.fault(kudo.ReasonChildrenInvalid, "task %q of %s makes a child whose name ends in %q, which has %d characters: "+
				"at most %d leave room for the name of the uppermost Instance; give the tasks on the way a shorter instanceName",
				d.Task.Name, d.Parent.Name, strings.TrimPrefix(d.Name, "."), len(end), room)
		}
		if other, collides := taken[end]; collides {
			r.fault(kudo.ReasonChildrenInvalid, "task %q of %s and task %q of %s make children whose names both end in %q on the managed "+
				"cluster: give one of them another instanceName", other.Task.Name, other.Parent.Name, d.Task.Name, d.Parent.Name, end)
			continue
		}
		taken[end] = d
	}
}
