// Package plan decides which plan of an OperatorVersion runs, and what the next step of a running plan is. It is pure: it touches no
// cluster and reads no clock.
//
// Decide is the entry point: it maps an Observation to the next Action. It composes the four steps of an execution: Choose selects the plan
// to start, Start creates its status, Next lists the next tasks, and Advance records their outcomes in the status. The status is the only
// state between passes, so an execution can be interrupted and continued at any point.
package plan

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/author"
	"github.com/tandem-addons/tandem/pkg/core/former"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
	"github.com/tandem-addons/tandem/pkg/core/window"
)

// Observation holds everything that Decide depends on: an Instance, its desired and running OperatorVersions, and the time.
type Observation struct {
	Now time.Time

	// Instance is the Instance as read. The status of its last execution has the shape of its plan: see Normalize.
	Instance *kudo.Instance

	// Owner identifies the Instance in the labels of objects.
	Owner Owner

	// Desired is the OperatorVersion that the Instance's spec names, nil if it does not exist, and Reference its identity on the hub.
	Desired   *kudo.OperatorVersionSpec
	Reference corev1.ObjectReference

	// Running is the OperatorVersion of the last execution, nil if there is none or if the version is lost.
	Running *kudo.OperatorVersionSpec

	// Former is the OperatorVersion of status.former, nil if there is none or if it is lost. It is only observed if the Instance may return to it.
	Former *kudo.OperatorVersionSpec

	// Pods are the pods with the owner's labels. They are only observed for an OperatorVersion with Pipe tasks.
	Pods []Object

	// Sensitive is what was observed about sensitive parameters; the zero value if the Instance has none.
	Sensitive Sensitive

	// KubernetesVersion is the version of the cluster. It is only observed if a plan is due that depends on it.
	KubernetesVersion string

	// Departure is the part of the Instance in the removal of an ancestor. It is not observed for an Instance that is being removed itself.
	Departure Departure

	// Window is what executions wait for because a maintenance window is closed; nil if they may start.
	Window *window.Wait

	// CleanupWait is the remaining time before a failed cleanup plan is retried; zero if it may start.
	CleanupWait time.Duration

	// RetryDelay is the delay before the first retry of an owed plan; MinRetryDelay if zero.
	RetryDelay time.Duration

	// SoakFailure is why the Instance was not healthy for long enough after its last plan; empty if it was, or may still be.
	SoakFailure string

	// Unblocked is true if the applied objects and children that a failed plan waited for have become healthy since: its retry starts early.
	Unblocked bool
}

// ActionKind is the kind of the next action for an Instance.
type ActionKind string

const (
	// ActionWait only records why nothing is done.
	ActionWait ActionKind = "Wait"
	// ActionCancel records that the running execution was cancelled manually.
	ActionCancel ActionKind = "Cancel"
	// ActionAdopt records that a re-created OperatorVersion with equal content replaces the one of the last execution, or new references of
	// unchanged sensitive values.
	ActionAdopt ActionKind = "Adopt"
	// ActionStart records the start of an execution and the objects that its first tasks apply, before any task runs.
	ActionStart ActionKind = "Start"
	// ActionStep runs the next tasks in parallel.
	ActionStep ActionKind = "Step"
	// ActionSettle prunes objects that the current version no longer applies, and judges every object in the inventory.
	ActionSettle ActionKind = "Settle"
	// ActionHalt records that the Instance continues no plan because an ancestor is being removed, and has to be deployed again otherwise.
	ActionHalt ActionKind = "Halt"
	// ActionHold records that the Instance waits for the removal of an ancestor.
	ActionHold ActionKind = "Hold"
	// ActionWithdraw deletes the custom resources of the Instance, and their definitions, because an ancestor is being removed.
	ActionWithdraw ActionKind = "Withdraw"
	// ActionRemove deletes everything that belongs to the Instance.
	ActionRemove ActionKind = "Remove"
)

// Action is the next action for an Instance, as returned by Decide.
type Action struct {
	Kind ActionKind

	// Pods are pods of Pipe tasks to delete first, whatever the action: their execution has ended.
	Pods []Object

	// Start is the execution that ActionStart starts.
	Start Choice

	// Tasks are the tasks that ActionStep runs.
	Tasks []Task

	// Prune lists the objects that ActionSettle deletes.
	Prune []kudo.InventoryEntry

	// Holds is true for ActionWait if what is waited for says nothing about what runs: that stays available as long as its workloads are.
	Holds bool

	// Status and the condition Ready are recorded by ActionWait, ActionCancel, ActionAdopt, ActionHalt and ActionHold. After is the time after which ActionWait ends
	// without a change; zero means never.
	Status kudo.InstanceStatus
	Ready  metav1.Condition
	After  time.Duration
}

// Decide returns the next action for an Instance. It only composes the rules of this package: Choose selects what to start, cancel or
// remove. Otherwise a running plan advances by one step, and an Instance without a running plan settles.
func Decide(o Observation) Action {
	choice, err := Choose(o.State())
	action := o.action(choice, err)
	if o.Departure.Stage != "" && !choice.Adopt && choice.Start == nil {
		action = o.depart(choice)
	}
	action.Pods = o.abandonedPods(choice)
	return action
}

// withAuthors returns a choice to start an execution with the authors that addon-manager has recorded for the desired state.
func (o Observation) withAuthors(choice Choice) Choice {
	spec, version := o.Instance.Spec, types.NamespacedName{Namespace: o.Reference.Namespace, Name: o.Reference.Name}
	choice.ChangedBy = author.Text(spec.ChangedBy, author.Values(version, spec))
	choice.RequestedBy = author.Text(spec.RequestedBy, author.Request(spec.PlanExecution))
	return choice
}

// action returns the action for a choice. The error is why no choice could be made.
func (o Observation) action(choice Choice, err error) Action {
	switch {
	case choice.Adopt:
		return o.adopt()
	case choice.Cancel:
		return o.cancel()
	case choice.Start != nil && choice.Start.Plan == kudo.CleanupPlan && o.CleanupWait > 0:
		return o.retryCleanup()
	case choice.Start != nil:
		return Action{Kind: ActionStart, Start: o.withAuthors(choice)}
	case choice.Remove && o.isRemoved():
		return o.FinishRemoval()
	case choice.Remove:
		return Action{Kind: ActionRemove}
	case o.CanContinue():
		return o.step()
	default:
		return o.idle(err)
	}
}

// depart returns the action of an Instance whose ancestor is being removed, unless its cleanup plan starts. Before anything is deleted, it is
// recorded that everything has to be deployed again if that is cancelled.
func (o Observation) depart(choice Choice) Action {
	stage, status := o.Departure.Stage, o.Instance.Status
	ready := Condition(metav1.ConditionFalse, kudo.ReasonRemoving, o.Departure.WaitText())
	switch custom, _ := Teardown(status.Inventory, o.Departure.Groups); {
	case stage == StageCleanup && !choice.Remove:
		return o.step()
	case stage != StageHold && !isHalted(status):
		reason := fmt.Sprintf("stopped because Instance %q is being removed", o.Departure.Ancestor)
		return Action{Kind: ActionHalt, Status: halted(o.Running, status, reason, o.Now), Ready: ready}
	case stage == StageWithdraw && len(custom) > 0:
		return Action{Kind: ActionWithdraw}
	default:
		return Action{Kind: ActionHold, Status: *status.DeepCopy(), Ready: ready}
	}
}

// step returns the next step of the running execution. It waits if the values of sensitive parameters are lost.
func (o Observation) step() Action {
	switch {
	case o.isSuspended() && len(Next(o.lastSpec(), o.lastStatus())) == 0:
		return o.pause()
	case o.Sensitive.Lost == "":
		return Action{Kind: ActionStep, Tasks: Next(o.lastSpec(), o.lastStatus())}
	case o.IsLeaving():
		return o.wait(Condition(metav1.ConditionFalse, kudo.ReasonRemoving, o.Sensitive.Lost))
	default:
		return o.hold(kudo.ReasonSecretNotFound, o.Sensitive.Lost)
	}
}

// pause returns the action of a suspended execution whose steps have ended, and that starts no other. A plan that does not influence condition Ready
// leaves it to the objects.
func (o Observation) pause() Action {
	if IsAside(o.Instance.Status) {
		return Action{Kind: ActionSettle}
	}
	paused := o.wait(RunningCondition(o.lastStatus()))
	paused.Ready.Message = fmt.Sprintf("plan %q is suspended before %s", o.lastStatus().Name, NextStep(o.lastSpec(), o.lastStatus()))
	paused.Holds = true
	return paused
}

// isSuspended reports whether no plan starts. Nothing suspends a removal.
func (o Observation) isSuspended() bool { return o.Instance.IsSuspended() && !o.IsLeaving() }

// Waiting returns condition Waiting of the Instance with that status; nil if its plans wait for nothing that a user decides.
func (o Observation) Waiting(status kudo.InstanceStatus) *metav1.Condition {
	switch {
	case o.isSuspended():
	case o.Window == nil:
		return nil
	default:
		o.Instance = o.Instance.DeepCopy()
		o.Instance.Status = status
		return o.State().closedCondition()
	}
	by := suspension.By(o.Instance.Spec)
	if status.Execution == nil || o.Running == nil {
		return WaitingCondition(by, Due(o.State()), kudo.Plan{}, kudo.PlanStatus{})
	}
	return WaitingCondition(by, Due(o.State()), o.lastSpec(), status.PlanStatus[status.Execution.Plan])
}

// LastRequest returns condition LastRequestSucceeded of the Instance with that status; nil if it stays as it is.
func (o Observation) LastRequest(status kudo.InstanceStatus) *metav1.Condition {
	after, instance := o, *o.Instance
	instance.Status, after.Instance = status, &instance
	if problem := after.State().ResumeProblem(); problem != "" && !o.IsLeaving() {
		return &metav1.Condition{
			Type: kudo.ConditionLastRequestSucceeded, Status: metav1.ConditionFalse, Reason: kudo.ReasonRequestInvalid, Message: problem,
		}
	}
	return LastRequest(status)
}

// closedCondition returns condition Waiting of an Instance with a plan that would start if the maintenance windows were open; nil if there is none.
func (s State) closedCondition() *metav1.Condition {
	_, err := Choose(s)
	var closed *ClosedError
	if !errors.As(err, &closed) {
		return nil
	}
	return &metav1.Condition{Type: kudo.ConditionWaiting, Status: metav1.ConditionTrue, Reason: kudo.ReasonWindow, Message: closed.Error()}
}

// ReadyGeneration returns the generation on the hub that condition Ready is of. While a suspension or a maintenance window holds up a change, it is the
// one before the change: a rollout and a client that wait for the change do not take the former health for it. During a plan, Ready is False in any case.
func (o Observation) ReadyGeneration() int64 {
	s := o.State()
	if s.holdError("") == nil || s.pendingPlan() == "" || IsInterrupted(o.Instance.Status) {
		return o.Instance.HubGeneration()
	}
	last := o.Instance.Status.Execution
	switch ready := meta.FindStatusCondition(o.Instance.Status.Conditions, kudo.ConditionReady); {
	case ready == nil:
		return 0
	case ready.Reason != kudo.ReasonPlanPending && !IsWait(ready.Reason):
		return ready.ObservedGeneration
	case last == nil:
		return 0
	default: // it was of the change that waits
		return last.Generation
	}
}

// IsLeaving reports whether the Instance, or an ancestor, is being removed.
func (o Observation) IsLeaving() bool { return o.Instance.IsRemoving() || o.Departure.Stage != "" }

// CanContinue reports whether there is an execution that can continue.
func (o Observation) CanContinue() bool {
	return o.Instance.Status.Execution != nil && o.Running != nil && o.lastStatus().Status.IsRunning()
}

// isRemoved reports whether no object of the Instance is left, or none ever existed.
func (o Observation) isRemoved() bool {
	return o.Instance.IsRemoved() || o.Instance.Status.Execution == nil && len(o.Instance.Status.Inventory) == 0
}

// idle returns the action if nothing runs and nothing starts.
func (o Observation) idle(err error) Action {
	last := o.Instance.Status.Execution
	var missing *MissingPlanError
	var unresolved *UnresolvedError
	var unsupported *UnsupportedError
	var suspended *SuspendedError
	var closed *ClosedError
	switch {
	case errors.As(err, &unsupported), errors.As(err, &suspended), errors.As(err, &closed): // what runs stays healthy
		return Action{Kind: ActionSettle, Prune: Prunable(o.Instance.Status, o.Running)}
	case errors.As(err, &unresolved):
		return o.hold(kudo.ReasonSecretNotFound, err.Error())
	case o.State().Version == nil && o.Desired == nil:
		return o.hold(kudo.ReasonNotMirrored,
			fmt.Sprintf("OperatorVersion %q is not on the managed cluster yet: waiting for its mirror", o.Instance.Spec.OperatorVersion.Name))
	case o.Running == nil && last != nil && err == nil:
		return o.hold(kudo.ReasonNotMirrored, fmt.Sprintf("OperatorVersion %q of the last execution no longer exists", last.OperatorVersion.Name))
	case err != nil && !(errors.As(err, &missing) && missing.Requested): // the hub reports such a request in condition Resolved
		return o.hold(kudo.ReasonPlanFailed, err.Error())
	default:
		return o.Rest()
	}
}

// Rest returns the action when no plan runs.
func (o Observation) Rest() Action {
	if failed := o.State().FailedOwed(); failed != "" {
		wait := o.wait(o.failedCondition(failed))
		wait.After = o.untilRetry()
		return wait
	}
	return Action{Kind: ActionSettle, Prune: Prunable(o.Instance.Status, o.Running)}
}

// Prunable returns the entries of objects to delete if the last execution, which runs version, has that status: those of tasks that the
// version does not have once it is completely applied, and the marked ones once no plan is owed.
func Prunable(status kudo.InstanceStatus, version *kudo.OperatorVersionSpec) []kudo.InventoryEntry {
	var vanished, marked []kudo.InventoryEntry
	if IsWhole(status) {
		vanished = VanishedEntries(status.Inventory, version)
	}
	if status.Execution != nil && len(status.Execution.Owed) == 0 {
		marked = only(status.Inventory, func(e kudo.InventoryEntry) bool { return e.Surplus })
	}
	return List(vanished, marked...)
}

// SettledReady returns condition Ready of an Instance that is idle or runs a plan that does not influence it, given the objects in its
// inventory and its children.
func (o Observation) SettledReady(objects []Object, children []Child) metav1.Condition {
	s := o.State()
	if s.isLeaving() {
		return Condition(metav1.ConditionFalse, kudo.ReasonRemoving, "objects are about to be removed")
	}
	if unsupported := s.unsupported(); unsupported != nil {
		return Condition(metav1.ConditionFalse, kudo.ReasonKubernetesVersionUnsupported, unsupported.Error())
	}
	if failed := s.FailedOwed(); failed != "" {
		return o.failedCondition(failed)
	}
	switch next := s.pendingPlan(); {
	case next == "":
	case s.holdError(next) == nil:
		return PendingCondition(next)
	case s.Last == nil || len(s.Last.Owed) > 0: // else the change that waits leaves what runs as it is
		return Condition(metav1.ConditionFalse, kudo.ReasonPlanPending, s.holdError(next).Error())
	}
	if r := o.Instance.Status.Returned; r != nil {
		return Condition(metav1.ConditionFalse, kudo.ReasonReturned, former.Text(r))
	}
	return Ready(o.Owner, objects, children)
}

// failedCondition returns condition Ready of an Instance with an owed plan that failed.
func (o Observation) failedCondition(name string) metav1.Condition {
	message, s := FailedText(o.Instance.Status, name), o.State()
	if r := o.Instance.Status.Returned; r != nil && s.Last.Return {
		message = fmt.Sprintf("version %s has failed, and so has the return to version %s: %s", r.From, r.To, message)
	}
	message += o.ReturnProblem()
	return Condition(metav1.ConditionFalse, kudo.ReasonPlanFailed, message)
}

// ReturnProblem returns why an Instance that has to return to its former version does not, as the end of a message; empty if it does, or need not.
func (o Observation) ReturnProblem() string {
	s := o.State()
	if !s.mustReturn() || s.returnProblem() == "" {
		return ""
	}
	return "; spec.onFailure is Return, but the former version cannot be applied again: " + s.returnProblem()
}

// pendingPlan returns the next plan that has to complete before the Instance is Ready, whatever it waits for; empty if there is none.
func (s State) pendingPlan() string {
	s.LastStatus = kudo.Complete
	return DueForReady(s)
}

// FinishRemoval returns the action that records the completed removal of the Instance.
func (o Observation) FinishRemoval() Action {
	removed := o.wait(Condition(metav1.ConditionFalse, kudo.ReasonRemoved, NothingLeft))
	removed.Status.Inventory = nil
	return removed
}

// retryCleanup waits until a failed cleanup plan may be retried.
func (o Observation) retryCleanup() Action {
	removed := "the Instance"
	if o.Departure.Stage != "" {
		removed = fmt.Sprintf("Instance %q", o.Departure.Ancestor)
	}
	failed := o.wait(Condition(metav1.ConditionFalse, kudo.ReasonRemoving, fmt.Sprintf(
		"plan %q failed and will be retried: %s; if it cannot succeed, annotate %s on the hub with %s=true to remove its objects "+
			"without the plan, or run 'kubectl addon uninstall --release' to release the Instance and leave its objects",
		kudo.CleanupPlan, o.Instance.Status.PlanStatus[kudo.CleanupPlan].Message, removed, kudo.AnnotationSkipCleanup)))
	failed.After = o.CleanupWait
	return failed
}

func (o Observation) cancel() Action {
	cancel := Action{Kind: ActionCancel, Status: CancelExecution(o.Running, o.Instance.Status, o.Now), Ready: o.recordedReady()}
	if !IsAside(cancel.Status) {
		cancel.Ready = RunningCondition(cancel.Status.PlanStatus[cancel.Status.Execution.Plan])
	}
	return cancel
}

func (o Observation) adopt() Action {
	status := *o.Instance.Status.DeepCopy()
	if o.State().isRecreated() {
		status = Adopt(status, o.Reference)
	}
	if o.Sensitive.Rebased != nil {
		status.Execution.ParametersFrom = o.Sensitive.Rebased
	}
	return Action{Kind: ActionAdopt, Status: status, Ready: o.recordedReady()}
}

// recordedReady returns condition Ready as it is recorded.
func (o Observation) recordedReady() metav1.Condition {
	if ready := meta.FindStatusCondition(o.Instance.Status.Conditions, kudo.ConditionReady); ready != nil {
		return Condition(ready.Status, ready.Reason, ready.Message)
	}
	return Condition(metav1.ConditionUnknown, kudo.ReasonPlanPending, "not evaluated yet")
}

// hold leaves the plans unchanged for a reason that says nothing about what runs.
func (o Observation) hold(reason, message string) Action {
	held := o.wait(Condition(metav1.ConditionFalse, reason, message))
	held.Holds = true
	return held
}

// wait leaves the plans unchanged.
func (o Observation) wait(ready metav1.Condition) Action {
	return Action{Kind: ActionWait, Status: *o.Instance.Status.DeepCopy(), Ready: ready}
}

// abandonedPods returns the pods of Pipe tasks whose execution has ended for any reason.
func (o Observation) abandonedPods(choice Choice) []Object {
	var continues types.UID
	ends := choice.Start != nil || choice.Cancel || choice.Remove
	if last := o.Instance.Status.Execution; last != nil && !ends && o.lastStatus().Status.IsRunning() {
		continues = last.UID
	}
	var abandoned []Object
	for _, pod := range o.Pods {
		_, ofPipe := pod.Live.GetAnnotations()[kudo.AnnotationPipe]
		if ofPipe && o.Owner.Owns(pod.Live) && !pod.AppliedBy(continues) && !pod.IsDeleted() {
			abandoned = append(abandoned, pod)
		}
	}
	return abandoned
}

// State returns the desired state of the Instance together with the reached one.
func (o Observation) State() State {
	s := ReachedState(o.Instance.Status, o.Running)
	s.Version = o.Desired
	s.Reference = o.Reference
	s.Generation = o.Instance.HubGeneration()
	s.Parameters, s.Registries, s.Sensitive = o.Instance.Spec.Parameters, o.Instance.Spec.ImageRegistries, o.Sensitive
	s.Cluster = o.Instance.Spec.Cluster
	if s.Sensitive.From == nil {
		s.Sensitive.From = WithoutDigests(o.Instance.Spec.ParametersFrom)
	}
	s.Request, s.KubernetesVersion = o.Instance.Spec.PlanExecution, o.KubernetesVersion
	s.DueRetries = o.dueRetries()
	s.Removing, s.SkipsCleanup = o.Instance.IsRemoving(), o.Instance.SkipsCleanup()
	s.Stage, s.Suspended, s.SuspendedBy = o.Departure.Stage, o.isSuspended(), suspension.By(o.Instance.Spec)
	if o.Window != nil {
		s.Closed = o.Window.Message
	}
	return o.withReturn(s)
}

// withReturn returns the state with what a return to the former version depends on. While one is in force, nothing else is desired than the last execution
// has.
func (o Observation) withReturn(s State) State {
	status := o.Instance.Status
	s.Returns = o.MayReturn()
	s.SoakFailure = o.SoakFailure
	s.Failure = former.Failure{Version: o.Running, Former: o.Former, Record: status.Former, Lost: o.Sensitive.FormerLost}
	r := status.Returned
	if r == nil || s.Last == nil {
		return s
	}
	if s.hasRequest() && former.IsRetry(r, s.Request) {
		s.Again = s.Request.UID
		return s
	}
	if o.Desired != nil && !former.IsInForce(r, o.Instance.Spec, o.Reference, func() string { return ContentDigest(o.Desired) }) {
		return s
	}
	s.Returned, s.Version, s.Reference = r, o.Running, s.Last.OperatorVersion
	s.Parameters, s.Registries, s.Cluster = s.Last.Parameters, s.Last.ImageRegistries, s.Last.Cluster
	s.Sensitive.From, s.Sensitive.Unresolved = s.Last.ParametersFrom, ""
	return s
}

// MayReturn reports whether the Instance returns to the former version if another one fails. Children follow the plans of their parent.
func (o Observation) MayReturn() bool { return o.returnsOnFailure() && !o.IsLeaving() }

// withoutFormerReturn returns the status without a return that is no longer in force, because the spec asks for what runs. If it asks for something else, the
// return is dropped when that starts.
func (o Observation) withoutFormerReturn(status kudo.InstanceStatus) kudo.InstanceStatus {
	if status.Returned == nil || o.Desired == nil {
		return status
	}
	o.Instance = o.Instance.DeepCopy()
	o.Instance.Status = status
	if s := o.State(); s.Returned != nil || s.pendingPlan() != "" || status.PlanStatus[status.Execution.Plan].Status.IsRunning() {
		return status
	}
	status = *status.DeepCopy()
	status.Returned = nil
	return status
}

// lastSpec returns the plan of the last execution, whose version is known.
func (o Observation) lastSpec() kudo.Plan { return o.Running.Plans[o.Instance.Status.Execution.Plan] }

// lastStatus returns the status of the last execution.
func (o Observation) lastStatus() kudo.PlanStatus {
	return o.Instance.Status.PlanStatus[o.Instance.Status.Execution.Plan]
}

// Normalize returns the observation with a status in the current format, in which the status of the last execution has the shape of its
// plan, even if another writer has changed it.
func (o Observation) Normalize() Observation {
	last := o.Instance.Status.Execution
	if last == nil {
		return o
	}
	status := MigrateStatus(o.Instance.Status, o.Running)
	if o.Running != nil {
		status = *status.DeepCopy()
		if status.PlanStatus == nil {
			status.PlanStatus = map[string]kudo.PlanStatus{}
		}
		status.PlanStatus[last.Plan] = Normalize(last.Plan, o.Running.Plans[last.Plan], status.PlanStatus[last.Plan], last.UID, o.Now)
	}
	status = o.withoutFormer(o.withoutFormerReturn(o.rescheduleTimedOut(status)))
	if equality.Semantic.DeepEqual(status, o.Instance.Status) {
		return o
	}
	o.Instance = o.Instance.DeepCopy()
	o.Instance.Status = status
	return o
}

// MarkSuspension returns the normalized observation with a record of whether its last execution is suspended.
func (o Observation) MarkSuspension() Observation {
	if o.Instance.Status.Execution == nil || o.Running == nil {
		return o
	}
	last := o.lastStatus()
	marked := MarkSuspension(o.lastSpec(), last, o.isSuspended(), o.Now)
	if (marked.SuspendedSince == nil) == (last.SuspendedSince == nil) {
		return o
	}
	o.Instance = o.Instance.DeepCopy()
	o.Instance.Status.PlanStatus[o.Instance.Status.Execution.Plan] = marked
	return o
}
