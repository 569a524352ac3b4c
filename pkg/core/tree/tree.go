// Package tree decides which child operators an OperatorVersion has: the versions that its KudoOperator tasks refer to, their own child
// operators, and the names of all their Instances. It is pure and touches no cluster.
package tree

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/text"
)

// MaxInstances limits a tree: a chain of operators with two children each would create millions.
const MaxInstances = 256

// Problem is a problem that keeps a tree from running.
type Problem struct {
	// Reason is one of the reasons of condition Resolved about children.
	Reason string
	// Message names the path to the failing version, and how to fix it.
	Message string
}

// Error reports why a version cannot run because of its child operators.
type Error struct {
	// Problems are all problems, at least one.
	Problems []Problem
}

// problemLimit is the maximum number of problems in the text of an Error. The others are reported once those are fixed.
const problemLimit = 10

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		lines[i] = problem.Message
	}
	return strings.Join(text.Limit(lines, problemLimit, "more problems"), "\n")
}

// Resolve returns the tree below root. candidates are the existing versions of the operators in it, including root if it exists, and
// perhaps others. The error is an *Error with every problem: cycles, missing versions, children with the same name, and trees that are too
// large.
func Resolve(root *kudo.OperatorVersion, candidates []kudo.OperatorVersion) (*Node, error) {
	r := resolution{candidates: candidates, nodes: map[string]*Node{}}
	tree := r.visit(root)
	if size := r.size(tree, map[*Node]int{}); size > MaxInstances {
		r.problem(kudo.ReasonChildrenInvalid, "%s creates more than %d Instances: split the operator", root.Name, MaxInstances)
	} else {
		r.names(tree)
	}
	if len(r.problems) > 0 {
		return nil, &Error{Problems: r.problems}
	}
	return tree, nil
}

// resolution is a walk through the graph of operators.
type resolution struct {
	candidates []kudo.OperatorVersion
	// nodes by the name of the version: nil while its descendants are being visited.
	nodes map[string]*Node
	// way is the path from the root to the current version.
	way      []string
	problems []Problem
}

// visit returns the node of a version, without children that have problems.
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

// child returns the node of the version that the task refers to; nil if it has a problem.
func (r *resolution) child(parent *kudo.OperatorVersion, task kudo.Task) *Node {
	version, err := Choose(task, r.candidates)
	if err != nil {
		r.problem(kudo.ReasonChildVersionNotFound, "%s: task %q of %s: %v", r.wayTo(wantedName(task)), task.Name, parent.Name, err)
		return nil
	}
	node, met := r.nodes[version.Name]
	if met && node == nil {
		r.problem(kudo.ReasonCircularOperators,
			"circular dependency: %s: an operator cannot be a child of its own children; remove it from one of them", r.wayTo(version.Name))
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

func (r *resolution) problem(reason, format string, args ...any) {
	r.problems = append(r.problems, Problem{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// size returns the number of Instances in the tree, or more than MaxInstances.
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

// names validates the names of an Instance's descendants, whatever its own name is. On a managed cluster dots become dashes, so names of
// different levels can be equal.
func (r *resolution) names(root *Node) {
	taken := map[string]Descendant{}
	for _, d := range root.Descendants("") {
		end := strings.ReplaceAll(strings.TrimPrefix(d.Name, "."), ".", "-")
		if room := validation.DNS1123LabelMaxLength - len("x-"); len(end) > room {
			r.problem(kudo.ReasonChildrenInvalid, "task %q of %s creates a child whose name ends in %q, which has %d characters: "+
				"must be at most %d to leave room for the name of the root Instance; set a shorter instanceName on the tasks of its path",
				d.Task.Name, d.Parent.Name, strings.TrimPrefix(d.Name, "."), len(end), room)
		}
		if other, collides := taken[end]; collides {
			r.problem(kudo.ReasonChildrenInvalid, "task %q of %s and task %q of %s create children whose names both end in %q on the managed "+
				"cluster: set a different instanceName on one of them", other.Task.Name, other.Parent.Name, d.Task.Name, d.Parent.Name, end)
			continue
		}
		taken[end] = d
	}
}
