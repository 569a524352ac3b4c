package plan

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/former"
	"github.com/tandem-addons/tandem/pkg/core/history"
)

// State is everything that Choose compares: the desired state of an Instance, and the state that its executions have reached.
type State struct {
	// Version is the OperatorVersion that the Instance's spec names, nil if it does not exist, and Reference its identity on the hub.
	Version   *kudo.OperatorVersionSpec
	Reference corev1.ObjectReference

	// Generation is the Instance's generation on the hub.
	Generation int64

	// Parameters are the parameters in the Instance's spec.
	Parameters map[string]string

	// Registries are the image registries in the Instance's spec.
	Registries []kudo.ImageRegistry

	// Cluster are the facts of the cluster in the Instance's spec.
	Cluster *kudo.ClusterFacts

	// Sensitive are the references of its sensitive parameters. Without digests, only their places are compared.
	Sensitive Sensitive

	// Request is the Instance's spec.planExecution.
	Request kudo.PlanExecution

	// Removing is true if the Instance is to be removed, and SkipsCleanup if that is without its cleanup plan.
	Removing, SkipsCleanup bool

	// Suspended is true if no plan starts, except for the removal of the Instance. SuspendedBy names the objects on the hub that suspend it; empty if only
	// its spec does.
	Suspended   bool
	SuspendedBy string

	// Closed is why no plan starts before a maintenance window opens; empty if plans may start. Nothing delays the removal of the Instance.
	Closed string

	// Stage is what the Instance does while an ancestor is being removed; empty if none is.
	Stage Stage

	// Last is the last started execution, nil if there is none, and LastStatus its status.
	Last       *kudo.Execution
	LastStatus kudo.ExecutionStatus

	// LastResult is LastStatus as it is recorded, whatever is asked about.
	LastResult kudo.ExecutionStatus

	// LastVersion is the OperatorVersion of Last, nil if it is lost. It provides the cleanup plan.
	LastVersion *kudo.OperatorVersionSpec

	// Whole is the OperatorVersion that was applied completely, nil if there is none.
	Whole *kudo.WholeVersion

	// Returns is true if the Instance returns to the former version once another one has failed, and Failure is what that depends on.
	Returns bool
	Failure former.Failure

	// SoakFailure is why the Instance was not healthy for long enough after its last plan; empty if it was, or may still be.
	SoakFailure string

	// Returned is a return that is in force: what is desired is then what the last execution has. Again is the request to try the failed version again,
	// with which it is not in force.
	Returned *kudo.Return
	Again    types.UID

	// DueRetries are the failed owed plans that start again now.
	DueRetries map[string]bool

	// KubernetesVersion is the version of the cluster; empty if it is not known, and then nothing waits for it.
	KubernetesVersion string

	// Handled are the uids of manual requests that were started.
	Handled []types.UID
}

// Stage is what an Instance does while an ancestor is being removed.
type Stage string

const (
	// StageHold continues no plan.
	StageHold Stage = "Hold"
	// StageCleanup continues no plan but the cleanup plan.
	StageCleanup Stage = "Cleanup"
	// StageWithdraw continues no plan, and deletes the custom resources of the Instance, and their definitions.
	StageWithdraw Stage = "Withdraw"
)

// isLeaving reports whether the Instance, or an ancestor, is being removed.
func (s State) isLeaving() bool { return s.Removing || s.Stage != "" }

// desiredValues returns the values in the spec, and lastValues those of the last execution.
func (s State) desiredValues() Values {
	return Values{Given: s.Parameters, From: s.Sensitive.From, Registries: s.Registries}
}

func (s State) lastValues() Values { return valuesIn(s.Last) }

// valuesIn returns the values of an execution.
func valuesIn(e *kudo.Execution) Values {
	return Values{Given: e.Parameters, From: e.ParametersFrom, Registries: e.ImageRegistries}
}

// ReachedState returns the state that the executions of an Instance have reached, without a desired state. version is the OperatorVersion
// of its last execution, nil if it is lost.
func ReachedState(status kudo.InstanceStatus, version *kudo.OperatorVersionSpec) State {
	status = MigrateStatus(status, version)
	s := State{Last: status.Execution, LastVersion: version, Whole: status.Whole, Handled: status.HandledRequests}
	if s.Last != nil {
		s.LastStatus = status.PlanStatus[s.Last.Plan].Status
		s.LastResult = s.LastStatus
	}
	return s
}

// MigrateStatus returns a status with the fields that releases before owed plans did not write, derived from those that they wrote. It returns
// other statuses unchanged. An Instance counts as whole if one of the plans deploy, update and upgrade is complete (DESIGN §5).
func MigrateStatus(status kudo.InstanceStatus, version *kudo.OperatorVersionSpec) kudo.InstanceStatus {
	last := status.Execution
	if last == nil || status.Whole != nil || len(last.Owed) > 0 {
		return status
	}
	status = *status.DeepCopy()
	last = status.Execution
	if len(status.HandledRequests) == 0 && last.Request != "" {
		status.HandledRequests = []types.UID{last.Request}
	}
	if last.RestartPending {
		status.Inventory = markAll(status.Inventory, last.UID)
		last.RestartPending = false
	}
	if slices.ContainsFunc(WholePlans, func(name string) bool { return status.PlanStatus[name].Status == kudo.Complete }) {
		status.Whole = wholeVersion(last.OperatorVersion, version)
	}
	last.Owed = derivedOwed(status)
	return status
}

// derivedOwed returns the plans that are owed according to a status of an earlier release: the last plan, and deploy if no version is whole.
func derivedOwed(status kudo.InstanceStatus) []kudo.OwedPlan {
	last := kudo.OwedPlan{Plan: status.Execution.Plan, Whole: status.Whole == nil && slices.Contains(WholePlans, status.Execution.Plan)}
	state := status.PlanStatus[last.Plan].Status
	if state == kudo.FatalError {
		last.Outcome = kudo.OwedFailed
	}
	var owed []kudo.OwedPlan
	if status.Whole == nil && !last.Whole {
		owed = append(owed, kudo.OwedPlan{Plan: kudo.DeployPlan, Whole: true, Outcome: kudo.OwedFailed})
	}
	if last.Whole || state != kudo.Complete && !IsManual(status) {
		owed = append(owed, last)
	}
	return owed
}

// WholePlans are the plans that can apply a complete OperatorVersion, the preferred one first.
var WholePlans = []string{kudo.UpgradePlan, kudo.UpdatePlan, kudo.DeployPlan}

// owedIndex returns the position of a plan among the owed ones; negative if it is not owed.
func owedIndex(owed []kudo.OwedPlan, plan string) int {
	return slices.IndexFunc(owed, func(o kudo.OwedPlan) bool { return o.Plan == plan })
}

// wholeVersion returns the identity of a completely applied OperatorVersion, whose spec may be lost.
func wholeVersion(reference corev1.ObjectReference, version *kudo.OperatorVersionSpec) *kudo.WholeVersion {
	whole := &kudo.WholeVersion{OperatorVersion: reference}
	if version != nil {
		whole.Version, whole.AppVersion, whole.DependencyVersion = version.Version, version.AppVersion, version.DependencyVersion
		whole.Dependencies = version.Dependencies
	}
	return whole
}

// recordLast records the state of the last execution, also in the history, and which plans are still owed. outcome is recorded for a plan that has
// ended without completing.
func recordLast(
	status kudo.InstanceStatus, version *kudo.OperatorVersionSpec, outcome kudo.OwedOutcome, last kudo.PlanStatus,
) kudo.InstanceStatus {
	status.PlanStatus[status.Execution.Plan] = last
	status.History = history.End(status, kudo.HistoryOutcome(outcome)) // equal names
	return recordEnd(status, version, outcome)
}

// recordEnd returns the status after the end of the last execution, which runs version: only a plan that completes is no longer owed, and
// one that applies the complete OperatorVersion is recorded. If that was requested manually, nothing else is owed either. outcome is
// recorded for a plan that does not complete.
func recordEnd(status kudo.InstanceStatus, version *kudo.OperatorVersionSpec, outcome kudo.OwedOutcome) kudo.InstanceStatus {
	last := status.Execution
	at := owedIndex(last.Owed, last.Plan)
	if at < 0 {
		return status
	}
	owed := slices.Clone(last.Owed)
	switch state := status.PlanStatus[last.Plan].Status; {
	case state == kudo.FatalError:
		owed[at].Outcome, owed[at].RetryTime = outcome, nil
	case state == kudo.Complete && owed[at].Whole:
		status.Whole = wholeVersion(last.OperatorVersion, version)
		if owed = slices.Delete(owed, at, at+1); IsManual(status) {
			owed = nil
		}
	case state == kudo.Complete:
		owed = slices.Delete(owed, at, at+1)
	default:
		return status
	}
	if len(owed) == 0 {
		owed = nil
	}
	last.Owed = owed
	return status
}

// IsManual reports whether the last execution was started by a manual request.
func IsManual(status kudo.InstanceStatus) bool {
	last := status.Execution
	return last != nil && last.UID != "" && last.UID == last.Request
}

// IsAside reports whether the last execution is of a manually requested plan that is not owed, such as a backup: it does not influence
// condition Ready.
func IsAside(status kudo.InstanceStatus) bool {
	return IsManual(status) && owedIndex(status.Execution.Owed, status.Execution.Plan) < 0
}

// IsExecuting reports whether an execution that has started has not ended.
func IsExecuting(status kudo.InstanceStatus) bool {
	return status.Execution != nil && status.PlanStatus[status.Execution.Plan].Status.IsRunning()
}

// IsInterrupted reports whether an execution that has started, and influences condition Ready, has not ended: if it waits, it may have applied only
// a part of what it changes.
func IsInterrupted(status kudo.InstanceStatus) bool { return IsExecuting(status) && !IsAside(status) }

// IsAvailable reports whether an Instance is available according to its recorded conditions: Available, and Ready where that is absent.
func IsAvailable(status kudo.InstanceStatus) bool {
	if available := meta.FindStatusCondition(status.Conditions, kudo.ConditionAvailable); available != nil {
		return available.Status == metav1.ConditionTrue
	}
	return meta.IsStatusConditionTrue(status.Conditions, kudo.ConditionReady)
}

// isUpdating reports whether the last execution updates an available Instance and does not take too long: an execution that supersedes it
// continues the update, even if a workload is unavailable at that moment.
func isUpdating(status kudo.InstanceStatus) bool {
	last := status.Execution
	if last == nil || !last.Available || !status.PlanStatus[last.Plan].Status.IsRunning() {
		return false
	}
	recorded := meta.FindStatusCondition(status.Conditions, kudo.ConditionAvailable)
	return recorded == nil || recorded.Reason != kudo.ReasonPlanInProgress
}

// IsWhole reports whether the OperatorVersion of the last execution is completely applied. Before that, replacements for the objects of the
// previous version may be missing. The status is in the current format.
func IsWhole(status kudo.InstanceStatus) bool {
	return State{Last: status.Execution, Whole: status.Whole}.isWhole()
}

func (s State) isWhole() bool {
	return s.Last != nil && s.Whole != nil && sameReference(s.Whole.OperatorVersion, s.Last.OperatorVersion) && s.owedWhole() == ""
}

// owedWhole returns the owed plan that applies the complete OperatorVersion; empty if there is none.
func (s State) owedWhole() string {
	if s.Last == nil {
		return ""
	}
	if i := slices.IndexFunc(s.Last.Owed, func(o kudo.OwedPlan) bool { return o.Whole }); i >= 0 {
		return s.Last.Owed[i].Plan
	}
	return ""
}

// isOtherVersion reports whether the desired OperatorVersion is another one than that of the last execution.
func (s State) isOtherVersion() bool {
	return !sameReference(s.Reference, s.Last.OperatorVersion) && !sameContent(s.Version, s.LastVersion)
}

// isRecreated reports whether the desired OperatorVersion replaces the one of the last execution, which was deleted and re-created with
// equal content.
func (s State) isRecreated() bool {
	return s.Last != nil && s.Version != nil && !sameReference(s.Reference, s.Last.OperatorVersion) && sameContent(s.Version, s.LastVersion)
}

func sameReference(a, b corev1.ObjectReference) bool { return former.Same(a, b) }

// sameContent reports whether two OperatorVersions, read through the same schema, are equal but for the namespace of their Operator.
func sameContent(a, b *kudo.OperatorVersionSpec) bool {
	if a == nil || b == nil {
		return false
	}
	return equality.Semantic.DeepEqual(contentOf(a), contentOf(b))
}

// contentOf returns what identifies an OperatorVersion across objects.
// Which clusters it supports, and whether one can return from it, change nothing on those that it runs on, and earlier releases did not store either.
func contentOf(version *kudo.OperatorVersionSpec) kudo.OperatorVersionSpec {
	content := *version
	content.Operator.Namespace, content.KubernetesVersion, content.Returnable = "", "", false
	content.Content = slices.Clone(content.Content)
	for i := range content.Content {
		content.Content[i].KubeVersion = ""
	}
	return content
}

// ContentDigest identifies the content of an OperatorVersion, except for the namespace of its Operator, across objects.
func ContentDigest(version *kudo.OperatorVersionSpec) string {
	encoded, err := json.Marshal(contentOf(version))
	if err != nil {
		return "" // it consists of strings, numbers, lists and maps
	}
	return fmt.Sprintf("%x", sha256.Sum256(encoded))
}

// Adopt returns the status after a re-created OperatorVersion with equal content has replaced that of the last execution.
func Adopt(status kudo.InstanceStatus, reference corev1.ObjectReference) kudo.InstanceStatus {
	adopted := *status.DeepCopy()
	before := adopted.Execution.OperatorVersion
	if whole := adopted.Whole; whole != nil && sameReference(whole.OperatorVersion, before) {
		whole.OperatorVersion = reference
	}
	adopted.Execution.OperatorVersion = reference
	return adopted
}

// maxHandled is the number of remembered manual requests.
const maxHandled = 64

// addHandled adds a request to the handled ones.
func addHandled(handled []types.UID, request types.UID) []types.UID {
	handled = append(slices.Clone(handled), request)
	return handled[max(0, len(handled)-maxHandled):]
}

// IsHandled reports whether a manual request was started before, according to a status.
func IsHandled(status kudo.InstanceStatus, request types.UID) bool {
	return State{Last: status.Execution, Handled: status.HandledRequests}.isHandled(request)
}

// isHandled reports whether a manual request was started before.
func (s State) isHandled(request types.UID) bool {
	return slices.Contains(s.Handled, request) || s.Last != nil && (s.Last.UID == request || s.Last.Request == request)
}
