package preview

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
)

// Change is a change of an Instance. It is read-only.
type Change struct {
	// Before is the current Instance, nil if it does not exist, and After the desired one, nil if it is to be deleted. They only differ
	// in the spec, except for planExecution.
	Before, After *kudo.Instance
	// Version is the OperatorVersion of After; nil if it does not exist.
	Version *kudo.OperatorVersion
	// Started is the OperatorVersion that was last started for Before; nil if there was none, or if it no longer exists.
	Started *kudo.OperatorVersion
	// Instances are the Instances of the cluster.
	Instances []kudo.Instance
	// Candidates are the OperatorVersions that children may run.
	Candidates []kudo.OperatorVersion
	// KubernetesVersion is the version of the cluster; empty if it is not known.
	KubernetesVersion string
	// Facts are the facts of the cluster, which addon-manager records in the specs of Instances; nil if they are not known.
	Facts *kudo.ClusterFacts
	// Validation is the treatment of fields that do not fit the kind of their object.
	Validation Validation

	// work is left for rendering all tasks of the change, and of those of children.
	work *render.Budget
}

// Preview holds the effects of a change, assuming that every plan completes.
type Preview struct {
	// WaitsFor is the running plan that the first of Plans waits for.
	WaitsFor string
	// Claims lists the volume claims that are deleted with their data, and those that stay, also those of Children: for a removal.
	Claims []Object
	// Plans to run, in their order.
	Plans []Plan
	// Removed lists the objects that are deleted after the plans: for a removal all remaining ones.
	Removed []Object
	// Children are deleted after that.
	Children []Child
	// Problem is why no plan can run.
	Problem string
	// Unsupported is why the plans wait for another version of Kubernetes; empty if they do not, or if the cluster's is not known.
	Unsupported string
	// UnknownKinds are the kinds of objects to create of which only the cluster knows whether it has them.
	UnknownKinds []schema.GroupKind
}

// Plan is a plan that would run.
type Plan struct {
	plan.Coming
	Tasks []Task
	// Removed lists the objects that no task renders any more, and Children the children for which the OperatorVersion has no task any more:
	// they are deleted at the end of the plan.
	Removed  []Object
	Children []Child
	// Problem is why the plan would not start.
	Problem string
}

// Task is a task that a plan would run.
type Task struct {
	plan.Placed
	Action  plan.TaskAction
	Objects []Object
	// Child is the child of a KudoOperator task.
	Child *Child
	// Problem is why the task would fail.
	Problem string
	// Warnings state why the task may fail, which the hub cannot prove.
	Warnings []string
}

// Object is an object of a task.
type Object struct {
	kudo.InventoryEntry
	Effect Effect
	// Note is what the effect includes, or why it is not another one, as a sentence; usually empty.
	Note string
	// Before and After are the object as last applied and as it would be applied, without fields that change with every execution; nil if
	// unknown or missing.
	Before, After *unstructured.Unstructured
}

// Effect is the effect of a change on an object or a child.
type Effect string

// The effects.
const (
	Created   Effect = "created"
	Changed   Effect = "changed"
	Unchanged Effect = "unchanged"
	Removed   Effect = "removed"
	// Kept objects are no longer part of the Instance, and stay.
	Kept Effect = "kept"
	// Annotated objects change only in the annotation with the version of the package. Restarted objects change in addition only in the
	// annotation that restarts their pods (KEP-27).
	Annotated Effect = "annotated"
	Restarted Effect = "restarted"
	// Replaced objects are deleted and re-created, because they cannot be changed.
	Replaced Effect = "replaced"
	// Renewed objects are created from the output of a Pipe task's pod, which is unknown before.
	Renewed Effect = "renewed"
	// Unknown objects are applied, but it is unknown whether they change: the template or parameters of the last apply are lost.
	Unknown Effect = "unknown"
)

// Child is the effect on a child Instance. Preview holds its own effects if it is created, changed or removed.
type Child struct {
	Instance        string
	OperatorVersion string
	Effect          Effect
	Preview         *Preview
}

// state returns the desired state of the Instance together with the reached one.
func (c Change) state() plan.State {
	s := plan.State{}
	if c.Before != nil {
		var started *kudo.OperatorVersionSpec
		if c.Started != nil {
			started = &c.Started.Spec
		}
		s = plan.ReachedState(c.Before.Status, started)
		s.Generation, s.Request = c.Before.Generation+1, c.Before.Spec.PlanExecution
	}
	s.Removing, s.KubernetesVersion = c.After == nil, c.KubernetesVersion
	if c.After != nil {
		s.Parameters, s.Registries, s.Cluster = c.After.Spec.Parameters, c.After.Spec.ImageRegistries, c.factsAfter()
		s.Sensitive.From = plan.WithoutDigests(c.After.Spec.ParametersFrom)
	}
	if c.Version != nil {
		s.Version = &c.Version.Spec
		s.Reference = corev1.ObjectReference{Namespace: c.Version.Namespace, Name: c.Version.Name, UID: c.Version.UID}
	}
	return s
}

// factsAfter returns the facts that the spec of the Instance has after the change.
func (c Change) factsAfter() *kudo.ClusterFacts {
	return install.FactsOf(install.Instance{Instance: c.After, Version: c.Version, Cluster: c.Facts})
}

// take assigns the version to the fields of the change that it belongs to.
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
