package tree

import (
	"cmp"
	"maps"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Node is an OperatorVersion in a tree. Where a version stands in it more than once, its nodes are the same one.
type Node struct {
	Version *kudo.OperatorVersion
	// Children in the order of Tasks.
	Children []Child
}

// Child is what one task of a version brings along.
type Child struct {
	Task kudo.Task
	*Node
}

// MakesChild reports whether the task ensures a child Instance (KEP-29).
func MakesChild(task kudo.Task) bool {
	return task.Kind == kudo.TaskKudoOperator || task.Kind == kudo.TaskOperator
}

// Tasks are the tasks by which the version brings children along, each once, in the order in which steps run them: those of the plan
// deploy first, then those of the other plans by their names. A task that no step runs brings nothing along.
func Tasks(version *kudo.OperatorVersionSpec) []kudo.Task {
	tasks := make(map[string]kudo.Task)
	for _, task := range version.Tasks {
		if _, twice := tasks[task.Name]; !twice && MakesChild(task) {
			tasks[task.Name] = task
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	var found []kudo.Task
	plans := slices.DeleteFunc(slices.Sorted(maps.Keys(version.Plans)), func(name string) bool { return name == kudo.DeployPlan })
	for _, name := range append([]string{kudo.DeployPlan}, plans...) {
		for _, phase := range version.Plans[name].Phases {
			for _, step := range phase.Steps {
				for _, name := range step.Tasks {
					if task, isFirst := tasks[name]; isFirst {
						found = append(found, task)
						delete(tasks, name)
					}
				}
			}
		}
	}
	return found
}

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
