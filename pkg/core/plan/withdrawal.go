package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/history"
)

// Tree is an Instance that is being removed, with its descendants, as observed on the managed cluster. Any Instance of it may run the controller
// of any custom resource of it: all custom resources are deleted before the first workload.
type Tree struct {
	Root        Branch
	Descendants []Branch
}

// Branch is an Instance of a Tree.
type Branch struct {
	Instance *kudo.Instance

	// Clean is true if no cleanup plan has to run, or to complete, before objects of the Instance are deleted.
	Clean bool
}

// Departure is the part of an Instance in the removal of an ancestor; the zero value if none is being removed.
type Departure struct {
	// Ancestor is the name of the nearest ancestor that is being removed, and Since when its removal began.
	Ancestor string
	Since    time.Time

	Stage Stage

	// Groups are the API groups that the tree defines.
	Groups Groups
}

// WaitText describes what an Instance waits for if it has nothing else to do.
func (d Departure) WaitText() string {
	return fmt.Sprintf("waiting for Instance %q to be removed", d.Ancestor)
}

// Departure returns the part of a descendant in the removal.
func (t Tree) Departure(name string) Departure {
	stage := t.stage(name)
	if stage == "" {
		return Departure{}
	}
	root := t.Root.Instance
	since, _ := time.Parse(time.RFC3339, root.Annotations[kudo.AnnotationHubDeleted]) // the agent has written and signed it
	return Departure{Ancestor: root.Name, Since: since, Stage: stage, Groups: t.Groups()}
}

// stage returns the stage of a descendant; empty while the cleanup plan of the root, which may need the descendant, is not complete. If
// descendants have custom resources, their cleanup plans complete before these are deleted, those of parents before those of their children.
func (t Tree) stage(name string) Stage {
	switch {
	case !t.Root.Clean:
		return ""
	case t.custom() == nil:
		return StageHold
	case t.unclean() == nil:
		return StageWithdraw
	case t.follows(name):
		return StageCleanup
	default:
		return StageHold
	}
}

// follows reports whether the cleanup plans of all ancestors of a descendant are complete.
func (t Tree) follows(name string) bool {
	for name != t.Root.Instance.Name {
		at := slices.IndexFunc(t.Descendants, func(b Branch) bool { return b.Instance.Name == name })
		if at < 0 {
			return true
		}
		parent := t.Descendants[at].Instance.Annotations[kudo.AnnotationParent]
		if slices.ContainsFunc(t.Descendants, func(b Branch) bool { return b.Instance.Name == parent && !b.Clean }) {
			return false
		}
		name = parent
	}
	return true
}

// Groups returns the API groups that the tree defines.
func (t Tree) Groups() Groups {
	groups := Groups{}
	for _, b := range append([]Branch{t.Root}, t.Descendants...) {
		groups.add(b.Instance.Status.Inventory)
	}
	return groups
}

// unclean returns a descendant whose cleanup plan has to complete before custom resources are deleted; nil if there is none.
func (t Tree) unclean() *kudo.Instance {
	return t.first(func(b Branch) bool { return !b.Clean && !t.Root.Instance.SkipsCleanup() })
}

// custom returns a descendant with custom resources of the tree, or with definitions; nil if there is none.
func (t Tree) custom() *kudo.Instance {
	groups := t.Groups()
	return t.first(func(b Branch) bool { return slices.ContainsFunc(b.Instance.Status.Inventory, groups.hasCustom) })
}

func (t Tree) first(which func(Branch) bool) *kudo.Instance {
	if at := slices.IndexFunc(t.Descendants, which); at >= 0 {
		return t.Descendants[at].Instance
	}
	return nil
}

// CleanupWaitText describes why the root deletes nothing yet: the cleanup plan of a descendant with custom resources, or beside one with them, is
// not complete. It is empty if it does not wait.
func (t Tree) CleanupWaitText() string {
	if unclean := t.unclean(); unclean != nil && t.custom() != nil {
		return awaitedText(unclean, fmt.Sprintf("its plan %q runs first", kudo.CleanupPlan))
	}
	return ""
}

// WithdrawalWaitText describes why the root deletes nothing but its own custom resources yet; empty if it does not wait. It names a custom resource
// rather than its definition, which waits for it.
func (t Tree) WithdrawalWaitText() string {
	groups := t.Groups()
	resources := t.first(func(b Branch) bool {
		return slices.ContainsFunc(b.Instance.Status.Inventory, func(e kudo.InventoryEntry) bool { return groups.hasCustom(e) && !IsDefinition(e) })
	})
	if custom := cmp.Or(resources, t.custom()); custom != nil {
		return awaitedText(custom, "its custom resources are deleted first")
	}
	return ""
}

// awaitedText describes an Instance that is waited for, and what it waits for itself.
func awaitedText(i *kudo.Instance, what string) string {
	child := Child{Mirror: i}
	child.Name.Namespace, child.Name.Name = i.Namespace, i.Name
	if ready := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionReady); ready == nil || ready.Status == metav1.ConditionTrue {
		return child.describe(what)
	}
	return child.describe(what + child.why())
}

// isHalted reports whether no plan of an Instance runs, and all of its objects would be applied again if it continued.
func isHalted(status kudo.InstanceStatus) bool {
	last := status.Execution
	return last == nil || status.Whole == nil && !status.PlanStatus[last.Plan].Status.IsRunning()
}

// halted returns the status of an Instance whose objects are about to be deleted because an ancestor is being removed. If that is cancelled,
// the OperatorVersion has to be deployed again. version is the one of the last execution, nil if it is lost.
func halted(version *kudo.OperatorVersionSpec, status kudo.InstanceStatus, reason string, now time.Time) kudo.InstanceStatus {
	status = *status.DeepCopy()
	last := status.Execution
	if state := status.PlanStatus[last.Plan]; state.Status.IsRunning() {
		status.PlanStatus[last.Plan] = end(state, reason, now)
		status.History = history.End(status, kudo.HistoryCancelled)
	}
	status.Whole = nil
	if version == nil {
		version = &kudo.OperatorVersionSpec{Plans: map[string]kudo.Plan{kudo.DeployPlan: {}}}
	}
	last.Owed = owedAfterCleanup(version, last.Owed)
	return status
}
