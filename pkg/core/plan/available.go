package plan

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// updateTimeout is how long a plan without a timeout may run before the Instance that it updates is no longer available.
const updateTimeout = 10 * time.Minute

// Workload is a workload that has to stay available during an update.
type Workload struct {
	Object

	// CrashLoop describes a pod of the workload that fails repeatedly; empty if none was found.
	CrashLoop string
}

// Workloads returns the entries of the workloads that were applied, without those of manually requested plans only.
func Workloads(inventory []kudo.InventoryEntry) []kudo.InventoryEntry {
	return only(inventory, func(e kudo.InventoryEntry) bool { return !e.Manual && !e.Pending && !e.Hook && isWorkload(e) })
}

// GuardedWorkloads returns the entries of the workloads that have to stay available during the last execution.
func GuardedWorkloads(inventory []kudo.InventoryEntry) []kudo.InventoryEntry {
	return only(inventory, func(e kudo.InventoryEntry) bool { return e.Available && isWorkload(e) })
}

func isWorkload(e kudo.InventoryEntry) bool {
	return health.IsWorkload(schema.GroupKind{Group: e.Group, Kind: e.Kind})
}

// MarkAvailable returns the inventory at the start of an execution, with a mark on each workload that is available: it has to stay so. If the
// execution continues the update of another one, whose status is before, the marks of that one stay.
func MarkAvailable(before kudo.InstanceStatus, inventory []kudo.InventoryEntry, workloads []Object) []kudo.InventoryEntry {
	serves := map[kudo.InventoryEntry]bool{}
	for _, o := range workloads {
		serves[Entry(o.Want, "")] = !o.IsDeleted() && health.Serves(o.Live)
	}
	marked, continues := slices.Clone(inventory), isUpdating(before)
	for i, e := range marked {
		marked[i].Available = serves[Identity(e)] || continues && e.Available
	}
	return marked
}

// Dismiss returns the inventory after the plan has deleted an object, or started to: it does not have to stay available.
func Dismiss(inventory []kudo.InventoryEntry, object kudo.InventoryEntry) []kudo.InventoryEntry {
	i := slices.IndexFunc(inventory, func(e kudo.InventoryEntry) bool { return e.Available && Identity(e) == Identity(object) })
	if i < 0 {
		return inventory
	}
	dismissed := slices.Clone(inventory)
	dismissed[i].Available = false
	return dismissed
}

// Retract returns the inventory after the plan has deleted a workload that it is going to apply again: until then it is missing.
func Retract(inventory []kudo.InventoryEntry, object kudo.InventoryEntry) []kudo.InventoryEntry {
	retracted := slices.Clone(inventory)
	for i, e := range retracted {
		retracted[i].Pending = e.Pending || Identity(e) == Identity(object)
	}
	return retracted
}

// Replaces reports whether the task deletes a workload that has to stay available, and another task of the execution is still to apply it.
func Replaces(execution kudo.PlanStatus, task string, inventory []kudo.InventoryEntry, object kudo.InventoryEntry) bool {
	i := slices.IndexFunc(inventory, func(e kudo.InventoryEntry) bool { return e.Available && Identity(e) == Identity(object) })
	if i < 0 || inventory[i].Task == task {
		return false
	}
	for _, phase := range execution.Phases {
		for _, step := range phase.Steps {
			for _, t := range step.Tasks {
				if t.Name == inventory[i].Task && t.Status != kudo.Complete {
					return true
				}
			}
		}
	}
	return false
}

// KeepsAvailable reports whether the running execution, which is not aside, leaves an Instance available as long as its workloads are: nothing of it
// fails.
func KeepsAvailable(status kudo.InstanceStatus) bool {
	return status.Execution.Available && status.PlanStatus[status.Execution.Plan].Status != kudo.Error
}

// UpdatingAvailable returns condition Available during an execution that KeepsAvailable, and when it has to be evaluated again although nothing
// changes: at the timeout of the plan, or after ten minutes. spec is the plan.
func UpdatingAvailable(
	owner Owner, spec kudo.Plan, status kudo.PlanStatus, workloads []Workload, children []Child, now time.Time,
) (*metav1.Condition, time.Time) {
	deadline := updateDeadline(spec, status)
	if !deadline.IsZero() && !now.Before(deadline) {
		message := fmt.Sprintf("plan %q has been running for more than %s", status.Name, updateTimeout)
		if status.Message != "" {
			message += ": " + status.Message
		}
		return availability(metav1.ConditionFalse, kudo.ReasonPlanInProgress, message), time.Time{}
	}
	if problem := unavailable(owner, workloads, children); problem != "" {
		return availability(metav1.ConditionFalse, kudo.ReasonUnhealthy, problem+"; "+RunningCondition(status).Message), deadline
	}
	return updatingCondition(fmt.Sprintf("plan %q is running", status.Name)), deadline
}

// updateDeadline returns when an execution takes too long; zero if it never does, or while it is suspended.
func updateDeadline(spec kudo.Plan, status kudo.PlanStatus) time.Time {
	w := wholePlan(spec, &status)
	if status.SuspendedSince != nil {
		return time.Time{}
	}
	if w.timeout == nil || w.timeout.Duration <= 0 {
		w.timeout = &metav1.Duration{Duration: updateTimeout}
	}
	return w.deadline()
}

// SettledAvailable returns condition Available of an Instance with the condition Ready that SettledReady returns; nil if that applies. An
// available Instance stays so while a plan waits for its start, while only its children are updated, and after an update while what it has
// replaced is deleted. It returns when the condition has to be evaluated again although nothing changes; zero means never.
func (o Observation) SettledAvailable(ready metav1.Condition, objects []Object, children []Child) (*metav1.Condition, time.Time) {
	switch {
	case ready.Reason == kudo.ReasonPlanPending || waitsToStart(ready.Reason):
		return o.HeldAvailable(ready.Message, objects, children), time.Time{}
	case ready.Reason == kudo.ReasonReturned:
		return o.returnedAvailable(ready.Message, objects, withoutUpdating(children))
	case ready.Reason == kudo.ReasonUnhealthy:
		children = withoutUpdating(children)
		if Ready(o.Owner, objects, children).Status == metav1.ConditionTrue {
			return updatingCondition("child Instances are being updated"), time.Time{}
		}
		return o.pruningCondition(objects, children)
	}
	return nil, time.Time{}
}

// returnedAvailable returns condition Available of an Instance that runs the former version because another one has failed, which the message says: it
// serves as before.
func (o Observation) returnedAvailable(message string, objects []Object, children []Child) (*metav1.Condition, time.Time) {
	healthy := Ready(o.Owner, objects, children)
	if healthy.Status == metav1.ConditionTrue {
		return availability(metav1.ConditionTrue, kudo.ReasonReturned, message), time.Time{}
	}
	if pruning, until := o.pruningCondition(objects, children); pruning != nil {
		return pruning, until
	}
	return availability(metav1.ConditionFalse, kudo.ReasonUnhealthy, healthy.Message+"; "+message), time.Time{}
}

// HeldAvailable returns condition Available of an Instance whose plans wait to start, with that message in condition Ready; nil if that applies. If its
// health decided before the wait, it does so during the wait, however long that takes: an available Instance stays so as long as its workloads and
// children are available, and another one is available once all of its objects and children are healthy.
func (o Observation) HeldAvailable(message string, objects []Object, children []Child) *metav1.Condition {
	if !isDecidedByHealth(o.Instance.Status) {
		return nil
	}
	var workloads []Workload
	for _, object := range objects {
		if isWorkload(Entry(object.Want, "")) {
			workloads = append(workloads, Workload{Object: object})
		}
	}
	problem := unavailable(o.Owner, workloads, children)
	if problem == "" && !IsAvailable(o.Instance.Status) {
		if ready := Ready(o.Owner, objects, withoutUpdating(children)); ready.Status != metav1.ConditionTrue {
			problem = ready.Message
		}
	}
	if problem != "" {
		return availability(metav1.ConditionFalse, kudo.ReasonUnhealthy, problem+"; "+message)
	}
	return updatingCondition(message)
}

// isDecidedByHealth reports whether an Instance is available or unavailable because of its objects and children, according to its recorded conditions,
// and not because it was never installed or its plan has failed or takes too long. During a wait, only condition Available records that.
func isDecidedByHealth(status kudo.InstanceStatus) bool {
	decides := meta.FindStatusCondition(status.Conditions, kudo.ConditionAvailable)
	if decides == nil {
		decides = meta.FindStatusCondition(status.Conditions, kudo.ConditionReady)
	}
	return decides != nil && (decides.Status == metav1.ConditionTrue || decides.Reason == kudo.ReasonUnhealthy)
}

// withoutUpdating returns the children without those that are available although a plan of theirs runs or is about to start.
func withoutUpdating(children []Child) []Child {
	return slices.DeleteFunc(slices.Clone(children), Child.isUpdating)
}

// pruningCondition returns condition Available after an update, while the only problem is that objects and children without a task are
// deleted: for ten minutes at most; nil otherwise.
func (o Observation) pruningCondition(objects []Object, children []Child) (*metav1.Condition, time.Time) {
	status := o.Instance.Status
	if status.Execution == nil || o.Running == nil || o.lastStatus().LastUpdatedTimestamp == nil {
		return nil, time.Time{}
	}
	surplus := identities(Prunable(status, o.Running))
	objects = slices.DeleteFunc(slices.Clone(objects), func(object Object) bool { return object.IsDeleted() && surplus[Entry(object.Want, "")] })
	children = slices.DeleteFunc(slices.Clone(children), func(c Child) bool { return c.Former || c.Vanished })
	deadline := o.lastStatus().LastUpdatedTimestamp.Add(updateTimeout + time.Second)
	if !o.Now.Before(deadline) || Ready(o.Owner, objects, children).Status != metav1.ConditionTrue {
		return nil, time.Time{}
	}
	return updatingCondition("objects that no task applies any longer are being deleted"), deadline
}

// unavailable describes the first workload or child that is not available; empty if all are.
func unavailable(owner Owner, workloads []Workload, children []Child) string {
	for _, w := range workloads {
		if problem := w.unavailable(owner); problem != "" {
			return problem
		}
	}
	for _, c := range children {
		if problem := c.unavailable(); problem != "" {
			return problem
		}
	}
	return ""
}

// NeedsLookAtPods reports whether the pods of a workload may be in a crash loop although it counts as available: StatefulSets and DaemonSets do
// so with one ready pod.
func (o Object) NeedsLookAtPods() bool {
	return !o.IsDeleted() && o.Live.GetKind() != "Deployment" && health.Serves(o.Live) && o.health().Status != health.Healthy && PodSelector(o.Live) != nil
}

func (w Workload) unavailable(owner Owner) string {
	if w.Live == nil {
		return Describe(w.Want) + missing
	}
	if err := owner.Claim(w.Object); err != nil {
		return err.Error()
	}
	problem := health.Unavailable(w.Live)
	if problem == "" && w.CrashLoop != "" {
		problem = Describe(w.Live) + ": " + w.CrashLoop
	}
	if problem != "" && w.Opaque {
		return Describe(w.Live) + ": is not available, and " + sensitive.NotShown
	}
	return problem
}

// unavailable describes the problem of a child that was installed before and is not available; empty if there is none. A child that is being
// installed or removed does not count.
func (c Child) unavailable() string {
	if !c.isKept() || c.Mirror.Status.Whole == nil || IsAvailable(c.Mirror.Status) {
		return ""
	}
	if recorded := meta.FindStatusCondition(c.Mirror.Status.Conditions, kudo.ConditionAvailable); recorded != nil {
		return c.describe("is not available: " + recorded.Message)
	}
	return c.describe("is not available" + c.why())
}

// isUpdating reports whether a child is available, although a plan of it runs or is about to start.
func (c Child) isUpdating() bool { return c.isKept() && IsAvailable(c.Mirror.Status) }

// isKept reports whether the child exists and is not to be removed.
func (c Child) isKept() bool {
	return c.Acknowledged.State == kudo.ChildApplied && !c.Former && !c.Vanished && c.isCurrent() && !c.Mirror.IsRemoving()
}

// RecordedAvailable returns condition Available as it is recorded; nil if it is absent.
func RecordedAvailable(status kudo.InstanceStatus) *metav1.Condition {
	recorded := meta.FindStatusCondition(status.Conditions, kudo.ConditionAvailable)
	if recorded == nil {
		return nil
	}
	return availability(recorded.Status, recorded.Reason, recorded.Message)
}

func updatingCondition(message string) *metav1.Condition {
	return availability(metav1.ConditionTrue, kudo.ReasonUpdating, message)
}

// availability returns condition Available.
func availability(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: kudo.ConditionAvailable, Status: status, Reason: reason, Message: message}
}
