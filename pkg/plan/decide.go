package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Observation is everything that Decide judges by: an Instance, the OperatorVersions that it asks for and runs, and the time.
type Observation struct {
	Now time.Time

	// Instance as it was read, but for the status of its last execution, which has the shape of its plan: see Normalized.
	Instance *kudo.Instance

	// Owner is the Instance as objects name it.
	Owner Owner

	// Desired is the OperatorVersion that the Instance's spec asks for, nil if it is not there, and Reference its identity on the
	// hub.
	Desired   *kudo.OperatorVersionSpec
	Reference corev1.ObjectReference

	// Running is the OperatorVersion that was last started, nil if nothing ever was, or if it is lost.
	Running *kudo.OperatorVersionSpec

	// Pods carry the labels of the owner. They are observed only where an OperatorVersion has Pipe tasks.
	Pods []Object

	// CleanupWait is how long a cleanup plan that failed must wait before it is tried again; zero if it may start.
	CleanupWait time.Duration
}

// ActionKind is what is to be done next about an Instance.
type ActionKind string

const (
	// ActionWait means that nothing is to be done but to record why.
	ActionWait ActionKind = "Wait"
	// ActionCancel records that the running execution was ended by hand.
	ActionCancel ActionKind = "Cancel"
	// ActionStart records the start of an execution, with what its first tasks are about to apply, before anything of it is done.
	ActionStart ActionKind = "Start"
	// ActionStep carries out, side by side, the tasks that are next.
	ActionStep ActionKind = "Step"
	// ActionSettle prunes what the version in place does not apply any more, and judges everything that the inventory lists.
	ActionSettle ActionKind = "Settle"
	// ActionRemove deletes everything that belongs to the Instance.
	ActionRemove ActionKind = "Remove"
)

// Action is what is to be done next about an Instance, as Decide has found.
type Action struct {
	Kind ActionKind

	// Pods of Pipe tasks are deleted first, whatever else is done: their execution has ended.
	Pods []Object

	// Start is what ActionStart starts.
	Start Choice

	// Tasks are those that ActionStep carries out.
	Tasks []Task

	// Prune is what ActionSettle deletes.
	Prune []kudo.InventoryEntry

	// Status and condition Ready are what ActionWait and ActionCancel record, and After is when ActionWait ends if nothing changes before;
	// zero means that it does not.
	Status kudo.InstanceStatus
	Ready  metav1.Condition
	After  time.Duration
}

// Decide returns what is to be done next about an Instance. It only composes the rules of this package: Choose says what starts, ends or
// is removed; where that is nothing, a plan that runs goes a step further, and otherwise the Instance settles.
func Decide(o Observation) Action {
	choice, err := Choose(o.Wish())
	action := o.action(choice, err)
	action.Pods = o.abandonedPods(choice)
	return action
}

// action is what a choice asks for. The error says why none could be made.
func (o Observation) action(choice Choice, err error) Action {
	switch {
	case choice.Cancel:
		return o.cancel()
	case choice.Start != nil && choice.Start.Plan == kudo.CleanupPlan && o.CleanupWait > 0:
		return o.retryCleanup()
	case choice.Start != nil:
		return Action{Kind: ActionStart, Start: choice}
	case choice.Remove && o.isRemoved():
		return o.Removed()
	case choice.Remove:
		return Action{Kind: ActionRemove}
	case o.runs():
		return Action{Kind: ActionStep, Tasks: Next(o.Running.Plans[o.Instance.Status.Execution.Plan], o.lastStatus())}
	default:
		return o.idle(err)
	}
}

// runs reports whether there is an execution that can go on.
func (o Observation) runs() bool {
	return o.Instance.Status.Execution != nil && o.Running != nil && o.lastStatus().Status.Running()
}

// isRemoved reports whether nothing is left of the Instance, or nothing ever was there.
func (o Observation) isRemoved() bool {
	return o.Instance.Removed() || o.Instance.Status.Execution == nil && len(o.Instance.Status.Inventory) == 0
}

// idle is the action where nothing runs and nothing starts.
func (o Observation) idle(err error) Action {
	last := o.Instance.Status.Execution
	switch {
	case o.Desired == nil:
		return o.wait(Condition(metav1.ConditionFalse, kudo.ReasonNotMirrored,
			fmt.Sprintf("OperatorVersion %q is missing here and will be mirrored again", o.Instance.Spec.OperatorVersion.Name)))
	case o.Running == nil && last != nil && err == nil:
		return o.wait(Condition(metav1.ConditionFalse, kudo.ReasonNotMirrored,
			fmt.Sprintf("OperatorVersion %q, which was last started, is lost", last.OperatorVersion.Name)))
	case err != nil:
		return o.wait(Condition(metav1.ConditionFalse, kudo.ReasonPlanFailed, err.Error()))
	default:
		return o.Rest()
	}
}

// Rest is the action once no plan runs. With a version that is in place, what tasks of the one before have left is pruned.
func (o Observation) Rest() Action {
	last := o.lastStatus()
	if last.Status == kudo.FatalError {
		return o.wait(Ready(last, o.Owner, nil, nil))
	}
	return Action{Kind: ActionSettle, Prune: Vanished(o.Instance.Status.Inventory, o.Running, o.Instance.Status.PlanStatus)}
}

// Settled is condition Ready of an Instance at rest, by the objects that its inventory lists and by its children.
func (o Observation) Settled(objects []Object, children []Child) metav1.Condition {
	if next, err := Choose(o.Wish()); err == nil && next.Due() {
		return Pending(o.lastStatus(), next)
	}
	return Ready(o.lastStatus(), o.Owner, objects, children)
}

// Removed is the action once nothing is left of the Instance: to record that.
func (o Observation) Removed() Action {
	removed := o.wait(Condition(metav1.ConditionFalse, kudo.ReasonRemoved, NothingLeft))
	removed.Status.Inventory = nil
	return removed
}

// retryCleanup waits until a cleanup plan that failed may be tried again.
func (o Observation) retryCleanup() Action {
	failed := o.wait(Condition(metav1.ConditionFalse, kudo.ReasonRemoving, fmt.Sprintf("plan %q failed and will be tried again: %s",
		kudo.CleanupPlan, o.Instance.Status.PlanStatus[kudo.CleanupPlan].Message)))
	failed.After = o.CleanupWait
	return failed
}

func (o Observation) cancel() Action {
	status := *o.Instance.Status.DeepCopy()
	name := status.Execution.Plan
	status.PlanStatus[name] = Cancel(status.PlanStatus[name], o.Now)
	return Action{Kind: ActionCancel, Status: status, Ready: Running(status.PlanStatus[name])}
}

// wait leaves the plans alone.
func (o Observation) wait(ready metav1.Condition) Action {
	return Action{Kind: ActionWait, Status: *o.Instance.Status.DeepCopy(), Ready: ready}
}

// abandonedPods are the pods of Pipe tasks whose execution does not go on, whatever has ended it.
func (o Observation) abandonedPods(choice Choice) []Object {
	var continues types.UID
	ends := choice.Start != nil || choice.Cancel || choice.Remove
	if last := o.Instance.Status.Execution; last != nil && !ends && o.lastStatus().Status.Running() {
		continues = last.UID
	}
	var abandoned []Object
	for _, pod := range o.Pods {
		_, ofPipe := pod.Live.GetAnnotations()[kudo.AnnotationPipe]
		if ofPipe && o.Owner.Owns(pod.Live) && !pod.AppliedBy(continues) && !pod.Deleted() {
			abandoned = append(abandoned, pod)
		}
	}
	return abandoned
}

// Wish is what the Instance asks for, beside what was last started for it.
func (o Observation) Wish() Wish {
	w := Wish{
		Version:     o.Desired,
		Reference:   o.Reference,
		Generation:  o.Instance.HubGeneration(),
		Parameters:  o.Instance.Spec.Parameters,
		Request:     o.Instance.Spec.PlanExecution,
		Removing:    o.Instance.Removing(),
		Last:        o.Instance.Status.Execution,
		LastVersion: o.Running,
	}
	if w.Last != nil {
		w.LastStatus = o.lastStatus().Status
	}
	return w
}

// lastStatus is the status of the last execution.
func (o Observation) lastStatus() kudo.PlanStatus {
	return o.Instance.Status.PlanStatus[o.Instance.Status.Execution.Plan]
}

// Normalized is the observation with a status of the last execution that has the shape of its plan, whatever another writer has made of
// it.
func (o Observation) Normalized() Observation {
	last := o.Instance.Status.Execution
	if last == nil || o.Running == nil {
		return o
	}
	recorded := o.Instance.Status.PlanStatus[last.Plan]
	status := Normalize(last.Plan, o.Running.Plans[last.Plan], recorded, last.UID, o.Now)
	if equality.Semantic.DeepEqual(status, recorded) {
		return o
	}
	o.Instance = o.Instance.DeepCopy()
	if o.Instance.Status.PlanStatus == nil {
		o.Instance.Status.PlanStatus = map[string]kudo.PlanStatus{}
	}
	o.Instance.Status.PlanStatus[last.Plan] = status
	return o
}
