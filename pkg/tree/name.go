package tree

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// ChildName is the name of the child Instance that the task makes for the Instance parent: "aa.bb" (KEP-29). Whether an Instance can
// have it, install.NameFault says.
func ChildName(parent string, task kudo.Task) string {
	return parent + "." + cmp.Or(task.Spec.InstanceName, task.Spec.Package)
}

// Descendant is an Instance somewhere below another one.
type Descendant struct {
	// Name of the Instance.
	Name string
	// Parent is the version of the Instance right above.
	Parent *kudo.OperatorVersion
	// Child is the task of Parent that makes it, and the node that it makes.
	Child
}

// Descendants are all that an Instance of that name has below it, each right before its own.
func (n *Node) Descendants(instance string) []Descendant {
	var found []Descendant
	for _, child := range n.Children {
		name := ChildName(instance, child.Task)
		found = append(found, Descendant{Name: name, Parent: n.Version, Child: child})
		found = append(found, child.Descendants(name)...)
	}
	return found
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
