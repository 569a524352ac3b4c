package progress

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/former"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

// LastChange returns what holds up the last change of the Instance if no condition reports it; empty if nothing does.
func LastChange(view View) string {
	instance := view.Instance
	if Unseen(instance) {
		return UnseenText(instance.Namespace)
	}
	last := instance.Status.Execution
	if last == nil || !instance.Status.PlanStatus[last.Plan].Status.IsRunning() {
		return ""
	}
	due := view.Due()
	if due == "" || due == last.Plan {
		return ""
	}
	return fmt.Sprintf("plan %q is waiting for plan %q to end", due, last.Plan)
}

// FactsChange describes a change of the facts of the cluster that no plan has taken yet; empty if there is none.
func FactsChange(instance *kudo.Instance) string {
	change := facts.Change(instance)
	if change == "" || !instance.DeletionTimestamp.IsZero() {
		return ""
	}
	return "changed since the last plan that took them (" + change + "); the next deploy, update or upgrade takes them"
}

// Due returns the plan that the Instance requests after the running plan; empty if there is none, or it is unknown.
func (v View) Due() string {
	if v.Version == nil {
		return ""
	}
	reference := corev1.ObjectReference{Namespace: v.Version.Namespace, Name: v.Version.Name, UID: v.Version.UID}
	if former.IsInForce(v.Instance.Status.Returned, v.Instance.Spec, reference, func() string { return plan.ContentDigest(&v.Version.Spec) }) {
		return v.pendingRequest()
	}
	state := plan.ReachedState(v.Instance.Status, nil)
	if state.LastStatus.IsRunning() {
		state = state.AfterCompletion()
	}
	state.Generation, state.Parameters, state.Request = v.Instance.Generation, v.Instance.Spec.Parameters, v.Instance.Spec.PlanExecution
	state.Registries, state.Cluster = v.Instance.Spec.ImageRegistries, v.Instance.Spec.Cluster
	state.Sensitive.From = plan.WithoutDigests(v.Instance.Spec.ParametersFrom)
	state.Version = &v.Version.Spec
	state.Reference = reference
	return plan.Due(state)
}

// pendingRequest returns the manually requested plan of the Instance that has not started yet; empty if there is none.
func (v View) pendingRequest() string {
	request := v.Instance.Spec.PlanExecution
	if request.UID == "" || request.Cancel || plan.IsHandled(v.Instance.Status, request.UID) {
		return ""
	}
	return request.PlanName
}

// Unseen reports whether the agent has not observed the last change of an Instance that waits for nothing else. A removal that has started
// counts as observed although the observed generation is older: condition Ready reports it.
func Unseen(instance *kudo.Instance) bool {
	if !instance.DeletionTimestamp.IsZero() && meta.IsStatusConditionFalse(instance.Status.Conditions, kudo.ConditionReady) {
		return false
	}
	return meta.IsStatusConditionTrue(instance.Status.Conditions, kudo.ConditionResolved) &&
		instance.Status.ObservedGeneration < instance.Generation && NotMirroredText(instance) == ""
}

// NotMirroredText returns why the agent, which has observed the last change of an Instance, cannot copy it to the managed cluster; empty if it
// can.
func NotMirroredText(instance *kudo.Instance) string {
	ready := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady)
	if ready == nil || ready.Reason != kudo.ReasonNotMirrored || ready.ObservedGeneration < instance.Generation {
		return ""
	}
	return text.JoinMessage(ready.Message)
}

// UnseenText returns the message about a change that the agent has not observed.
func UnseenText(cluster string) string {
	return fmt.Sprintf("not observed by the agent yet; if this takes longer than a few seconds, check that addon-agent is running on "+
		"cluster %s", cluster)
}

// UnprocessedText is the message about an object that addon-manager has not processed yet.
const UnprocessedText = "addon-manager has not processed the add-on yet: if this takes longer than a few seconds, check that addon-manager is " +
	"running on the hub"

// RunningPlan returns the running plan, or an empty string.
func RunningPlan(instance *kudo.Instance) string {
	if last := instance.Status.Execution; last != nil && instance.Status.PlanStatus[last.Plan].Status.IsRunning() {
		return last.Plan
	}
	return ""
}

// HoldUp returns what holds up the last change of an Instance; empty if nothing does.
func HoldUp(view View) string {
	resolved := meta.FindStatusCondition(view.Instance.Status.Conditions, kudo.ConditionResolved)
	switch {
	case !view.Instance.DeletionTimestamp.IsZero():
		return "being removed"
	case resolved == nil || resolved.ObservedGeneration < view.Instance.Generation:
		return "addon-manager has not processed the last change yet"
	case resolved.Status != metav1.ConditionTrue:
		return ConditionText(view.Instance.Status.Conditions, kudo.ConditionResolved, "")
	case NotMirroredText(view.Instance) != "":
		return NotMirroredText(view.Instance)
	case view.Instance.Status.Execution == nil && !Unseen(view.Instance):
		return "no plan has started yet"
	default:
		return LastChange(view)
	}
}
