package preview

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/install"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// Change is a change of an Instance. Nothing in it is changed.
type Change struct {
	// Before is the Instance as it stands, nil where it does not, and After as it is to stand, nil where it is to go. What of After is
	// not its spec, and its planExecution, are as they stand.
	Before, After *kudo.Instance
	// Version is the OperatorVersion of After; nil where it does not exist.
	Version *kudo.OperatorVersion
	// Started is the OperatorVersion that was last started for Before; nil where nothing was, or where it does not exist any more.
	Started *kudo.OperatorVersion
	// Instances are those of the cluster.
	Instances []kudo.Instance
	// Candidates are the OperatorVersions that children may run.
	Candidates []kudo.OperatorVersion
}

// Preview is what a change would bring about, as long as every plan completes.
type Preview struct {
	// WaitsFor is the plan that runs and that the first of Plans waits for.
	WaitsFor string
	// Plans that run, in their order.
	Plans []Plan
	// Removed is what goes after that: at a removal all that is left.
	Removed []Object
	// Children that go after that.
	Children []Child
	// Fault says why no plan can run.
	Fault string
}

// Plan is a plan that would run.
type Plan struct {
	plan.Coming
	Tasks []Task
	// Removed is what the OperatorVersion has no task for any more, and Children are the children that it has none for: they go with
	// the end of the plan.
	Removed  []Object
	Children []Child
}

// Task is a task that a plan would carry out.
type Task struct {
	plan.Placed
	Action  plan.TaskAction
	Objects []Object
	// Child is that of a KudoOperator task.
	Child *Child
	// Fault says why the task would fail.
	Fault string
}

// Object is one that a task would deal with.
type Object struct {
	kudo.InventoryEntry
	Effect Effect
	// Before and After are the object as it was applied last and as it would be, without what changes with every execution; nil where it
	// is not known, or not there.
	Before, After *unstructured.Unstructured
}

// Effect is what becomes of an object or a child.
type Effect string

// The effects.
const (
	Created   Effect = "created"
	Changed   Effect = "changed"
	Unchanged Effect = "unchanged"
	Removed   Effect = "removed"
	// Annotated changes in nothing but the version of the package, which an annotation names, and Restarted in no more than that and what
	// has its pods restart (KEP-27).
	Annotated Effect = "annotated"
	Restarted Effect = "restarted"
	// Replaced is deleted and made anew, for it cannot be changed.
	Replaced Effect = "replaced"
	// Renewed is made from what a pod of a Pipe task writes, which nobody knows before.
	Renewed Effect = "renewed"
	// Unknown is applied, and nobody can report whether it changes: what it was made from is lost.
	Unknown Effect = "unknown"
)

// Child is what becomes of a child Instance. What it brings about itself is in Preview, once it is created, changed or removed.
type Child struct {
	Instance        string
	OperatorVersion string
	Effect          Effect
	Preview         *Preview
}

// wish is what the Instance would ask for.
func (c Change) wish() plan.Wish {
	w := plan.Wish{Removing: c.After == nil}
	if c.After != nil {
		w.Parameters = c.After.Spec.Parameters
	}
	if c.Version != nil {
		w.Version = &c.Version.Spec
		w.Reference = corev1.ObjectReference{Namespace: c.Version.Namespace, Name: c.Version.Name, UID: c.Version.UID}
	}
	if c.Before == nil {
		return w
	}
	w.Generation, w.Request = c.Before.Generation+1, c.Before.Spec.PlanExecution
	if w.Last = c.Before.Status.Execution; w.Last != nil {
		w.LastStatus = c.Before.Status.PlanStatus[w.Last.Plan].Status
	}
	if c.Started != nil {
		w.LastVersion = &c.Started.Spec
	}
	return w
}

// take takes the version for what it is of the change.
func (c *Change) take(version *kudo.OperatorVersion) {
	if c.After != nil {
		if name := install.VersionOf(c.After); version.Namespace == name.Namespace && version.Name == name.Name {
			c.Version = version
		}
	}
	if c.Before != nil && c.Before.Status.Execution != nil && c.Before.Status.Execution.OperatorVersion.UID == version.UID {
		c.Started = version
	}
}
