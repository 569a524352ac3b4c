package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/health"
)

// Ready returns condition Ready of an Instance of which no plan has failed or is pending (DESIGN §5): True if all objects in the inventory
// exist, belong to the owner and are healthy, and the children are healthy too.
func Ready(owner Owner, listed []Object, children []Child) metav1.Condition {
	for _, o := range listed {
		if problem := problemOf(owner, o); problem != "" {
			return Condition(metav1.ConditionFalse, kudo.ReasonUnhealthy, problem)
		}
	}
	for _, child := range children {
		if problem := child.problem(); problem != "" {
			return Condition(metav1.ConditionFalse, kudo.ReasonUnhealthy, problem)
		}
	}
	return Condition(metav1.ConditionTrue, kudo.ReasonHealthy, "all plans are complete and all applied objects are healthy")
}

// FirstProblem returns the object that Ready names; nil if it names none, or one that does not exist, is being deleted or belongs to another writer.
func FirstProblem(owner Owner, listed []Object) []Object {
	for _, o := range listed {
		if problemOf(owner, o) == "" {
			continue
		}
		if o.Unread != "" || o.Live == nil || o.IsDeleted() || owner.Claim(o) != nil {
			return nil
		}
		return []Object{o}
	}
	return nil
}

// LastLogLine precedes the last line of a container's log in a message.
const LastLogLine = ": last line of its log: "

// failure matches the part of a message that names a container that fails repeatedly.
var failure = regexp.MustCompile(`^.*?: container [a-z0-9-]+ restarts: `)

// steadyInterval is the time for which a message about a container that fails repeatedly stays, whatever its last run says.
const steadyInterval = 10 * time.Minute

// Steady returns the recorded message if it differs from the current one only in the line of the log: a container that fails repeatedly logs
// other times and addresses in each run, which are not worth a write. A recorded message about the same container also stays while its age is less than
// steadyInterval: exit codes and probes may alternate.
func Steady(recorded, current string, age time.Duration) string {
	if of := failure.FindString(recorded); of != "" && of == failure.FindString(current) && age < steadyInterval {
		return recorded
	}
	before, _, logged := strings.Cut(recorded, LastLogLine)
	if now, _, logs := strings.Cut(current, LastLogLine); logged && logs && before == now {
		return recorded
	}
	return current
}

// PendingCondition returns condition Ready of an Instance with a plan that is about to start. It is False in between: a client that waits
// for its generation to be Ready would otherwise take pending changes for done.
func PendingCondition(next string) metav1.Condition {
	return Condition(metav1.ConditionFalse, kudo.ReasonPlanPending, fmt.Sprintf("plan %q is next", next))
}

// missing is the end of a condition message about an applied object that no longer exists.
const missing = ": is missing"

// IsMissing reports whether the condition is False because an object is missing: reason Unhealthy also covers objects that fail.
func IsMissing(condition metav1.Condition) bool {
	return condition.Reason == kudo.ReasonUnhealthy && strings.HasSuffix(condition.Message, missing) // what a container says is quoted
}

// RerunProblem describes why a complete task has to run again that has applied an object, or deleted it; empty if it does not. A Job that has run may be
// gone, and so may an object that a later task of the plan has deleted. A later task may also have applied one that the task has deleted. aside means
// that the execution does not influence condition Ready: only then, the objects of another such one are the same.
func (w Owner) RerunProblem(inventory []kudo.InventoryEntry, task string, o Object, deletes, aside bool) string {
	entry, isListed := listedEntry(inventory, o)
	switch {
	case deletes && (!w.Has(o) || isListed && entry.Task != task && !entry.Pending):
		return ""
	case deletes:
		return Describe(o.Want) + ": exists"
	case o.Live == nil:
		return goneProblem(entry, o)
	case !isListed:
		return Describe(o.Want) + ": is not in the inventory"
	case entry.Manual && !aside:
		return Describe(o.Want) + ": was applied by a request that does not influence Ready"
	default:
		return problemOf(w, o)
	}
}

// listedEntry returns the entry of an object; ok is false if there is none.
func listedEntry(inventory []kudo.InventoryEntry, o Object) (entry kudo.InventoryEntry, ok bool) {
	i := slices.IndexFunc(inventory, func(e kudo.InventoryEntry) bool { return Identity(e) == Entry(o.Want, "") })
	if i < 0 {
		return entry, false
	}
	return inventory[i], true
}

// goneProblem describes why an object that does not exist has to be applied again; empty if it does not.
func goneProblem(entry kudo.InventoryEntry, o Object) string {
	if IsJob(o.Want) || entry.Pending {
		return ""
	}
	return Describe(o.Want) + missing
}

// problemOf describes the problem of an applied object; empty if it is healthy.
func problemOf(owner Owner, o Object) string {
	switch {
	case o.Unread != "":
		return Describe(o.Want) + ": " + o.Unread
	case o.Live == nil && o.runsToCompletion():
		return ""
	case o.Live == nil:
		return Describe(o.Want) + missing
	case o.IsDeleted():
		return describeDeletion(o)
	}
	if err := owner.Claim(o); err != nil {
		return err.Error()
	}
	if result := o.health(); result.Status != health.Healthy {
		return result.Message
	}
	return ""
}

// runsToCompletion reports whether objects of the kind may be deleted after they have completed.
func (o Object) runsToCompletion() bool {
	kind := o.Want.GroupVersionKind().GroupKind()
	return kind == schema.GroupKind{Group: "batch", Kind: "Job"} || kind == schema.GroupKind{Kind: "Pod"}
}

// Stalled returns condition Stalled of an Instance with that condition Ready: a plan has failed, and does not start again by itself. It returns nil
// otherwise. Reconciling, the other condition of kstatus, has no use here: Ready is False in all those cases.
func Stalled(status kudo.InstanceStatus, ready metav1.Condition) *metav1.Condition {
	if failed := ready.Reason == kudo.ReasonPlanFailed || ready.Reason == kudo.ReasonReturned; !failed || NextRetry(status) != nil {
		return nil
	}
	return &metav1.Condition{Type: kudo.ConditionStalled, Status: metav1.ConditionTrue, Reason: ready.Reason, Message: ready.Message}
}

// LastRequest returns condition LastRequestSucceeded of an Instance: the outcome of its last manual plan request. It returns nil if there is
// none, or if its plan has run again since it ended.
func LastRequest(status kudo.InstanceStatus) *metav1.Condition {
	if len(status.HandledRequests) == 0 {
		return nil
	}
	request := status.HandledRequests[len(status.HandledRequests)-1]
	for _, name := range slices.Sorted(maps.Keys(status.PlanStatus)) {
		ran := status.PlanStatus[name]
		if ran.UID != request && !isResumedBy(status, request, ran.UID) {
			continue
		}
		c := &metav1.Condition{Type: kudo.ConditionLastRequestSucceeded}
		switch ran.Status {
		case kudo.Complete:
			c.Status, c.Reason, c.Message = metav1.ConditionTrue, kudo.ReasonPlanComplete, fmt.Sprintf("plan %q is complete", name)
		case kudo.FatalError:
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, kudo.ReasonPlanFailed, FailedText(kudo.InstanceStatus{PlanStatus: status.PlanStatus}, name)
		default:
			c.Status, c.Reason, c.Message = metav1.ConditionUnknown, kudo.ReasonPlanInProgress, fmt.Sprintf("plan %q is running", name)
		}
		return c
	}
	before := meta.FindStatusCondition(status.Conditions, kudo.ConditionLastRequestSucceeded)
	if before == nil || before.Status != metav1.ConditionUnknown || status.Execution == nil {
		return nil
	}
	return &metav1.Condition{
		Type: kudo.ConditionLastRequestSucceeded, Status: metav1.ConditionFalse, Reason: kudo.ReasonPlanFailed,
		Message: fmt.Sprintf("the requested plan was superseded by plan %q", status.Execution.Plan),
	}
}

// isResumedBy reports whether an execution, which a change or a retry has started, does what the request has asked for: it resumes the one before.
func isResumedBy(status kudo.InstanceStatus, request, execution types.UID) bool {
	last := status.Execution
	return last != nil && last.Resume != "" && last.Request == request && last.UID == execution
}

// RunningCondition returns condition Ready of an Instance with a running plan.
func RunningCondition(status kudo.PlanStatus) metav1.Condition {
	message := fmt.Sprintf("plan %q is running", status.Name)
	if status.Message != "" {
		message += ": " + status.Message
	}
	reason := kudo.ReasonPlanInProgress
	if status.Status == kudo.Error {
		reason = kudo.ReasonPlanError
	}
	return Condition(metav1.ConditionFalse, reason, message)
}

// NothingLeft is the message of condition Ready of a removed Instance.
const NothingLeft = "no objects of the Instance are left on the managed cluster"

// Condition returns condition Ready.
func Condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kudo.ConditionReady, Status: status, Reason: reason, Message: message}
}
