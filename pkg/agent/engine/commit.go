package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/former"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/text"
)

// result is the result of a round.
type result struct {
	// status to commit, without the conditions of the judgement, which are set separately.
	status kudo.InstanceStatus
	judgement
	compared comparison

	// again is true if a change leads to another round immediately; after is when to reconcile again in any case.
	again bool
	after time.Duration

	// postponed is true if nothing is written yet.
	postponed bool

	// paced is true if the stored status has the time of the last change of messages.
	paced bool

	// unsearched describes the kinds that a completed removal could not search; empty if there are none.
	unsearched string

	// omitted describes the fields that a started plan does not apply; empty if there are none.
	omitted string
	// warnings are those about the charts of a started plan; empty if there are none.
	warnings string

	// overridden describes the closed maintenance windows outside of which a plan has started on request; empty if there are none.
	overridden string
}

// judgement holds the conditions that depend on the health of an Instance: Ready and, where it differs, Available. until is when they have to be
// evaluated again if nothing changes; zero means never.
type judgement struct {
	ready     metav1.Condition
	available *metav1.Condition
	until     time.Time
}

// withOverride returns the result with a description of closed maintenance windows if an execution has started that a stored status lacks.
func (r result) withOverride(stored kudo.InstanceStatus, overridden string) result {
	if r.status.Execution != nil && (stored.Execution == nil || stored.Execution.UID != r.status.Execution.UID) {
		r.overridden = overridden
	}
	return r
}

// mask returns the result without sensitive values in its messages.
func (r result) mask(m sensitive.Masker) result {
	r.status, r.ready.Message = m.Status(r.status), m.Text(r.ready.Message)
	r.overridden = m.Text(r.overridden)
	r.unsearched, r.omitted, r.warnings = m.Text(r.unsearched), m.Text(r.omitted), m.Text(r.warnings)
	r.available, r.compared.condition = maskCondition(r.available, m), maskCondition(r.compared.condition, m)
	r.compared.objects = m.Drift(r.compared.objects)
	return r
}

// maskCondition returns a condition without sensitive values in its message; nil if there is none.
func maskCondition(condition *metav1.Condition, m sensitive.Masker) *metav1.Condition {
	if condition == nil {
		return nil
	}
	masked := *condition
	masked.Message = m.Text(masked.Message)
	return &masked
}

// notFollowed begins the remark in condition Ready of a healthy Instance about Secrets that are not read.
const notFollowed = "; changes of Secrets are not followed: "

// withRemark returns the result with a remark about Secrets that the plans of a healthy Instance may not read; refused is empty if there
// are none.
func (r result) withRemark(refused string) result {
	if r.ready.Status != metav1.ConditionTrue {
		return r
	}
	r.ready.Message, _, _ = strings.Cut(r.ready.Message, notFollowed) // as it was recorded
	if refused != "" {
		r.ready.Message += notFollowed + refused
	}
	return r
}

// resultOf returns the result of an action that is only recorded.
func resultOf(action plan.Action) result {
	r := result{
		status: action.Status, judgement: judgement{ready: action.Ready},
		again: action.Kind == plan.ActionCancel || action.Kind == plan.ActionAdopt || action.Kind == plan.ActionHalt, after: action.After,
	}
	if action.Kind == plan.ActionAdopt { // the execution continues
		r.available = plan.RecordedAvailable(action.Status)
	}
	return r
}

// statusOf adds the conditions and the observed generation to the status, and returns when to reconcile again. It delays a write that only
// changes messages if they were written recently, or if too many Instances progress at the same time: the message about a Deployment with many
// pods, or about one that another writer changes all the time, is never the same. Outcomes of tasks are written immediately, and a removal paces itself. worded is when this process
// last wrote only messages.
func (r result) statusOf(o plan.Observation, stored kudo.InstanceStatus, worded time.Time, admit func() bool) (kudo.InstanceStatus, time.Duration) {
	if r.postponed && !r.losesAvailability(stored) {
		return stored, r.after
	}
	status := r.status
	status.ObservedGeneration = o.Instance.HubGeneration()
	setAt(&status, o.ReadyGeneration(), func() { setCondition(&status, r.ready, o.Now) })
	setOrRemove(&status, kudo.ConditionWaiting, o.Waiting(status), o.Now)
	setOrRemove(&status, kudo.ConditionAvailable, r.available, o.Now)
	switch {
	case o.Instance.Spec.DriftModeOrDefault() == kudo.DriftOff:
		meta.RemoveStatusCondition(&status.Conditions, kudo.ConditionDrifted)
		status.Drift = nil
	case r.compared.isKnown:
		setOrRemove(&status, kudo.ConditionDrifted, r.compared.condition, o.Now)
		status.Drift = r.compared.objects
	}
	setOrRemove(&status, kudo.ConditionStalled, plan.Stalled(status, r.ready), o.Now)
	setRequest(&status, o.LastRequest(status), o.Now)
	if o.Instance.IsRemoving() || !plan.OnlyMessagesDiffer(stored, status) || equality.Semantic.DeepEqual(stored, status) {
		return status, r.after
	}
	if r.paced {
		worded = ptr.Deref(stored.PlanStatus[stored.Execution.Plan].LastUpdatedTimestamp, metav1.Time{}).Time
	}
	if wait := messageInterval.After(o.Now.Sub(worded)).Within(admit); wait > 0 {
		return stored, soonest(r.after, wait)
	}
	return status, r.after
}

// losesAvailability reports whether an Instance that is recorded as available no longer is.
func (r result) losesAvailability(stored kudo.InstanceStatus) bool {
	return plan.IsAvailable(stored) && r.available != nil && r.available.Status != metav1.ConditionTrue
}

// lastWorded returns when only messages of an Instance's status were written last; the zero time if that is not known.
func (e *engine) lastWorded(instance *kudo.Instance) time.Time {
	last, _ := e.worded.Get(instance.UID)
	at, _ := last.(time.Time)
	return at
}

// setOrRemove sets a condition of a status, or removes it if there is none.
func setOrRemove(status *kudo.InstanceStatus, name string, condition *metav1.Condition, now time.Time) {
	if condition == nil {
		meta.RemoveStatusCondition(&status.Conditions, name)
		return
	}
	setCondition(status, *condition, now)
}

// setCondition sets a condition of a status, at the generation that it observes.
func setCondition(status *kudo.InstanceStatus, condition metav1.Condition, now time.Time) {
	condition.ObservedGeneration = status.ObservedGeneration
	settled, _ := apply.MergeCondition(status.Conditions, condition, now)
	meta.SetStatusCondition(&status.Conditions, settled)
}

// setRequest sets condition LastRequestSucceeded of a status if it is known. That a request cannot run ends with the request.
func setRequest(status *kudo.InstanceStatus, request *metav1.Condition, now time.Time) {
	before := meta.FindStatusCondition(status.Conditions, kudo.ConditionLastRequestSucceeded)
	switch {
	case request != nil:
		setCondition(status, *request, now)
	case before != nil && before.Reason == kudo.ReasonRequestInvalid:
		meta.RemoveStatusCondition(&status.Conditions, kudo.ConditionLastRequestSucceeded)
	}
}

// setAt sets conditions of a status that are of another generation than the one that it observes. A change that a suspension or a maintenance window holds up
// has no condition Ready or Soaked yet.
func setAt(status *kudo.InstanceStatus, generation int64, set func()) {
	observed := status.ObservedGeneration
	status.ObservedGeneration = generation
	set()
	status.ObservedGeneration = observed
}

// soonest returns the shortest of some waits; zero means no wait.
func soonest(waits ...time.Duration) (first time.Duration) {
	for _, wait := range waits {
		if first == 0 || wait > 0 && wait < first {
			first = wait
		}
	}
	return first
}

// until returns the time until a deadline; zero if there is none, and a positive minimum otherwise.
func (e *engine) until(deadline time.Time) time.Duration {
	if deadline.IsZero() {
		return 0
	}
	return max(deadline.Sub(e.clock()), time.Millisecond)
}

// commit writes the status if it changed, and returns the updated Instance. A conflict means that another writer was first: the result of
// this pass is dropped.
func (e *engine) commit(ctx context.Context, o plan.Observation, stored, status kudo.InstanceStatus) (*kudo.Instance, error) {
	if equality.Semantic.DeepEqual(stored, status) {
		return nil, nil
	}
	e.drafts.Remove(client.ObjectKeyFromObject(o.Instance))
	if plan.OnlyMessagesDiffer(stored, status) {
		e.worded.Add(o.Instance.UID, o.Now)
	}
	committed := o.Instance.DeepCopy()
	committed.Status = status
	err := e.client.Status().Update(ctx, committed, client.FieldOwner(fieldManager), apply.Unchecked)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		if !apierrors.IsConflict(err) { // the write may have been executed: the next pass reads what is recorded
			e.writes.Forget(client.ObjectKeyFromObject(committed))
		}
		return nil, fmt.Errorf("writing status of Instance %q: %w", o.Instance.Name, err)
	}
	e.writes.NoteIfNewer(committed)
	if len(committed.Status.Inventory) < len(status.Inventory) { // otherwise it would be written repeatedly
		return nil, fmt.Errorf("nothing is applied for Instance %q because the API server drops its inventory: "+
			"CustomResourceDefinition instances.kudo.dev is older than this agent; apply the one of this version", o.Instance.Name)
	}
	e.emitReturn(o, stored, status)
	e.emitWait(o, stored, status)
	e.emitDrift(o, stored, status)
	e.emitSoak(o, stored, status)
	e.emitEnd(o, status)
	return committed, nil
}

// emitReturn emits an event if an Instance starts to apply its former version again.
func (e *engine) emitReturn(o plan.Observation, before, after kudo.InstanceStatus) {
	was, is := before.Returned, after.Returned
	if is == nil || was != nil && was.Execution == is.Execution {
		return
	}
	e.metrics.returns.WithLabelValues(operatorOf(o)).Inc()
	e.events.Eventf(o.Instance, nil, corev1.EventTypeWarning, kudo.ReasonReturned, "Return", "%s", text.Prefix(former.Text(is), maxNoteBytes))
}

// emitWait emits an event if an Instance was suspended or resumed, or if a plan waits for a maintenance window.
func (e *engine) emitWait(o plan.Observation, before, after kudo.InstanceStatus) {
	was, is := waitReason(before), waitReason(after)
	if was == is {
		return
	}
	if was == kudo.ReasonSuspended && !o.IsLeaving() {
		e.events.Eventf(o.Instance, nil, corev1.EventTypeNormal, "Resumed", "Resume", "the Instance is no longer suspended")
	}
	if is == "" {
		return
	}
	reason, action := "Suspended", "Suspend"
	if is == kudo.ReasonWindow {
		reason, action = "WaitingForWindow", "Start"
	}
	message := meta.FindStatusCondition(after.Conditions, kudo.ConditionWaiting).Message
	e.events.Eventf(o.Instance, nil, corev1.EventTypeNormal, reason, action, "%s", text.Prefix(message, maxNoteBytes))
}

// waitReason returns the reason of condition Waiting; empty if there is none.
func waitReason(status kudo.InstanceStatus) string {
	if waits := meta.FindStatusCondition(status.Conditions, kudo.ConditionWaiting); waits != nil {
		return waits.Reason
	}
	return ""
}

// emitDrift emits an event if another writer has changed what was applied, or put it back.
func (e *engine) emitDrift(o plan.Observation, before, after kudo.InstanceStatus) {
	was, is := meta.IsStatusConditionTrue(before.Conditions, kudo.ConditionDrifted), meta.FindStatusCondition(after.Conditions, kudo.ConditionDrifted)
	switch {
	case is == nil || was == (is.Status == metav1.ConditionTrue):
	case !was:
		e.events.Eventf(o.Instance, nil, corev1.EventTypeWarning, kudo.ReasonDrifted, "Compare", "%s", text.Prefix(is.Message, maxNoteBytes))
	case is.Status == metav1.ConditionFalse:
		e.events.Eventf(o.Instance, nil, corev1.EventTypeNormal, kudo.ReasonInSync, "Compare", "%s", is.Message)
	}
}

// emitSoak emits an event if an Instance has been healthy for long enough, if its containers have restarted before, or if it has failed to be.
func (e *engine) emitSoak(o plan.Observation, before, after kudo.InstanceStatus) {
	was, is := meta.FindStatusCondition(before.Conditions, kudo.ConditionSoaked), meta.FindStatusCondition(after.Conditions, kudo.ConditionSoaked)
	if is == nil || was != nil && was.Reason == is.Reason {
		return
	}
	switch is.Reason {
	case kudo.ReasonHealthyLongEnough:
		e.events.Eventf(o.Instance, nil, corev1.EventTypeNormal, kudo.ConditionSoaked, "Soak", "%s", is.Message)
	case kudo.ReasonRestarted, kudo.ReasonSoakFailed:
		e.events.Eventf(o.Instance, nil, corev1.EventTypeWarning, is.Reason, "Soak", "%s", text.Prefix(is.Message, maxNoteBytes))
	}
}

// emitStart emits the event of the start of a plan once the plan has run for recheckInterval, and returns the time until then; zero if it is over.
// Most plans end earlier, and then the event of their end is enough. If the agent stops before, the event is lost.
func (e *engine) emitStart(x *execution, now time.Time) time.Duration {
	began := ptr.Deref(x.instance.Status.PlanStatus[x.Plan].StartedTimestamp, metav1.Time{})
	if wait := recheckInterval - now.Sub(began.Time); wait > 0 {
		e.started.Add(x.instance.UID, x.UID)
		return wait
	}
	if last, known := e.started.Get(x.instance.UID); !known || last != x.UID {
		return 0
	}
	e.started.Remove(x.instance.UID)
	again := ""
	if retries := plan.Retries(x.instance.Status); retries > 0 {
		again = fmt.Sprintf(" again: retry %d", retries)
	}
	e.events.Eventf(x.instance, nil, corev1.EventTypeNormal, "PlanStarted", "Start", "plan %q started%s", x.Plan, again)
	return 0
}

// emitEnd emits events for plans that have ended.
func (e *engine) emitEnd(o plan.Observation, after kudo.InstanceStatus) {
	for _, name := range slices.Sorted(maps.Keys(after.PlanStatus)) {
		then, now := o.Instance.Status.PlanStatus[name], after.PlanStatus[name]
		if now.Status == kudo.NeverRun || now.UID == then.UID && now.Status == then.Status {
			continue
		}
		switch now.Status {
		case kudo.Complete:
			e.metrics.end(operatorOf(o), now, o.Now)
			e.events.Eventf(o.Instance, nil, corev1.EventTypeNormal, "PlanComplete", "Execute", "plan %q is complete", name)
		case kudo.FatalError:
			e.metrics.end(operatorOf(o), now, o.Now)
			e.events.Eventf(o.Instance, nil, corev1.EventTypeWarning, "PlanFailed", "Execute", "%s", text.Prefix(plan.FailedText(after, name), maxNoteBytes))
		default:
			if now.UID != then.UID && name == after.Execution.Plan && plan.Retries(after) > 0 {
				e.metrics.retries.WithLabelValues(operatorOf(o), name).Inc()
			}
		}
	}
}

// operatorOf returns the name of the running or desired operator; empty if both OperatorVersions are lost.
func operatorOf(o plan.Observation) string {
	switch {
	case o.Running != nil:
		return o.Running.Operator.Name
	case o.Desired != nil:
		return o.Desired.Operator.Name
	default:
		return ""
	}
}
