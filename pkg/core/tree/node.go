package tree

import (
	"cmp"
	"maps"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Node is an OperatorVersion in a tree. A version that occurs more than once has a single node.
type Node struct {
	Version *kudo.OperatorVersion
	// Children in the order of Tasks.
	Children []Child
}

// Child is the child of one task of a version.
type Child struct {
	Task kudo.Task
	*Node
}

// MakesChild reports whether the task ensures a child Instance (KEP-29).
func MakesChild(task kudo.Task) bool {
	return task.Kind == kudo.TaskKudoOperator || task.Kind == kudo.TaskOperator
}

// Tasks returns the tasks of the version that create children, each once, in the order in which steps run them: those of plan deploy first,
// then those of the other plans by their names. It omits tasks that no step runs.
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

// ChildName returns the name of the child Instance that the task creates for the Instance parent: "aa.bb" (KEP-29). install.NameProblem
// reports whether the name is valid.
func ChildName(parent string, task kudo.Task) string {
	return parent + "." + cmp.Or(task.Spec.InstanceName, task.Spec.Package)
}

// Acknowledged returns what the hub has reported about the child that the task creates for the Instance parent; only its name if that is nothing.
func Acknowledged(parent *kudo.Instance, task kudo.Task) kudo.ChildStatus {
	for _, child := range parent.Status.Children {
		if child.Task == task.Name {
			return child
		}
	}
	return kudo.ChildStatus{Instance: ChildName(parent.Name, task)}
}

// Descendant is a direct or transitive child of an Instance.
type Descendant struct {
	// Name of the Instance.
	Name string
	// Parent is the version of the parent Instance.
	Parent *kudo.OperatorVersion
	// Child is the task of Parent that creates it, and its node.
	Child
}

// Descendants lists all descendants of an Instance of that name, each directly before its own.
func (n *Node) Descendants(instance string) []Descendant {
	var found []Descendant
	for _, child := range n.Children {
		name := ChildName(instance, child.Task)
		found = append(found, Descendant{Name: name, Parent: n.Version, Child: child})
		found = append(found, child.Descendants(name)...)
	}
	return found
}
