package why

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/former"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

// maxRecent is how long a plan that does not fail counts as one that progresses normally.
const maxRecent = time.Minute

// explainPlan states the running plan of an add-on or, if none runs, of its children: since when it has been running, and what it is waiting for.
// Without a running plan, it states why the Instance is not ready if the add-on does not report that.
func (e *Explanation) explainPlan(addOn *addonv1alpha1.ManagedClusterAddOn) {
	root := e.view.InstanceOf(addOn)
	if root == nil {
		return
	}
	running := e.view.Running(root)
	for _, instance := range running {
		e.addSentence("%s", e.runningText(addOn, root, instance))
	}
	if len(running) == 0 && root.Status.Returned != nil {
		e.explainReturn(root)
		return
	}
	e.explainRest(addOn, root, len(running) > 0)
}

// explainReturn states that an Instance has returned to its former version.
func (e *Explanation) explainReturn(root *kudo.Instance) {
	e.addSentence("Its Instance has returned: %s. Fix the cause, and try the version again, or change to another one.",
		strings.TrimSuffix(text.JoinMessage(former.Text(root.Status.Returned)), "."))
	e.suggest("kubectl addon plan resume %s --cluster %s", root.Name, e.view.Name)
}

// explainRest states why the Instance is not ready if the add-on does not report that and no plan runs, and which version it has.
func (e *Explanation) explainRest(addOn *addonv1alpha1.ManagedClusterAddOn, root *kudo.Instance, isRunning bool) {
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	ready := meta.FindStatusCondition(root.Status.Conditions, kudo.ConditionReady)
	isUnreported := available != nil && available.Status == metav1.ConditionTrue && ready != nil && ready.Status == metav1.ConditionFalse &&
		!ready.LastTransitionTime.Before(&available.LastTransitionTime)
	if !isRunning && isUnreported {
		e.addSentence("Its Instance is not ready: %s.", reasonText(ready))
	}
	if isRunning || isUnreported {
		e.suggestDetails(addOn)
	}
	e.explainVersion(root)
}

// runningText states the running plan of an Instance, which is the root or one of its descendants.
func (e *Explanation) runningText(addOn *addonv1alpha1.ManagedClusterAddOn, root, instance *kudo.Instance) string {
	status := instance.Status.PlanStatus[instance.Status.Execution.Plan]
	subject := fmt.Sprintf("plan %q", status.Name)
	if instance != root {
		subject += " of Instance " + text.Word(instance.Name)
	}
	isRecent := e.isRecent(status)
	sentence := planPrefix(root, isRecent) + subject
	if instance == root && plan.IsAside(root.Status) {
		sentence = "Plan" + strings.TrimPrefix(subject, "plan") + ", which was requested manually,"
	}
	if started := status.StartedTimestamp; started != nil {
		sentence += " has been running since " + started.UTC().Format(time.RFC3339)
	} else {
		sentence += " is running"
	}
	if status.Status == kudo.Error {
		sentence += ", and a task is failing and being retried"
	}
	if status.Message != "" && !isStated(addOn, status.Message) {
		sentence += ": " + strings.TrimSuffix(text.JoinMessage(status.Message), ".")
	}
	return sentence + "."
}

// isRecent reports whether a running plan started a short time ago and does not fail.
func (e *Explanation) isRecent(status kudo.PlanStatus) bool {
	return status.Status != kudo.Error && status.StartedTimestamp != nil && e.now.Sub(status.StartedTimestamp.Time) <= maxRecent
}

// isStuck reports whether the last plan of an Instance has failed, or has been running for a long time.
func (e *Explanation) isStuck(instance *kudo.Instance) bool {
	last := instance.Status.Execution
	if last == nil || meta.IsStatusConditionTrue(instance.Status.Conditions, kudo.ConditionWaiting) { // a rollback would wait as well
		return false
	}
	status := instance.Status.PlanStatus[last.Plan]
	return status.Status == kudo.FatalError || status.Status.IsRunning() && !e.isRecent(status)
}

// isStated reports whether condition Available of an add-on that is not available contains a message, so that it was explained already.
func isStated(addOn *addonv1alpha1.ManagedClusterAddOn, message string) bool {
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	return available != nil && available.Status != metav1.ConditionTrue && strings.Contains(available.Message, message)
}

// planPrefix returns the beginning of the sentence about a running plan: only a recent one is certain to progress.
func planPrefix(root *kudo.Instance, isRecent bool) string {
	switch isInstalled := root.Status.Whole != nil; {
	case isInstalled && isRecent:
		return "It is being updated: "
	case isInstalled:
		return "Its update is not complete: "
	case isRecent:
		return "It is being installed: "
	default:
		return "Its installation is not complete: "
	}
}

// explainVersion names the OperatorVersion that was last installed completely if it is not the desired one, and suggests to return to it if the change is
// stuck.
func (e *Explanation) explainVersion(root *kudo.Instance) {
	if whole := fleet.ReportOf(root).Installed; whole != "" && whole != root.Spec.OperatorVersion.Name {
		e.addSentence("OperatorVersion %s was the last to be installed completely, not %s.", text.Word(whole), text.Word(root.Spec.OperatorVersion.Name))
		if e.isStuck(root) {
			e.suggest("kubectl addon rollback %s --cluster %s", root.Name, e.view.Name)
		}
	}
}

// explainDeletion states since when an add-on has been deleted, and what its removal is waiting for.
func (e *Explanation) explainDeletion(addOn *addonv1alpha1.ManagedClusterAddOn) {
	waiting, instance := waitsFor(addOn), e.view.InstanceOf(addOn)
	remaining := progress.RemainingText(addOn) // included already
	if instance != nil && (remaining == "" || !instance.DeletionTimestamp.IsZero()) {
		waiting += ": " + text.JoinMessage(progress.RemovalText(addOn, instance, fleet.Descendants(instance, e.view.InstanceList())))
	}
	e.addSentence("Deletion of add-on %s from cluster %s started at %s%s.", addOn.Name, e.view.Name,
		addOn.DeletionTimestamp.UTC().Format(time.RFC3339), strings.TrimSuffix(waiting, "."))
	e.explainFinalizers(addOn)
	if instance == nil {
		return
	}
	for _, first := range e.view.Removal(addOn.Name).First {
		e.suggest("kubectl addon why %s --cluster %s", first, e.view.Name)
	}
	if advice := progress.RemovalAdvice(instance); advice != "" && remaining == "" {
		e.addSentence("%s", advice)
	}
	e.suggestDetails(addOn)
	e.fixRemoval(waiting)
}

// isUpdateUnknown reports whether a plan updates the add-on, about which nothing else is known.
func (e *Explanation) isUpdateUnknown(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	return available != nil && available.Reason == addonv1alpha1.ReasonUpdating
}

// satisfiedText lists the dependencies of an available add-on, all of which are satisfied; empty if they cannot be parsed. If a plan
// updates the add-on, and it is not known which, it states that.
func (e *Explanation) satisfiedText(addOn *addonv1alpha1.ManagedClusterAddOn, available *metav1.Condition, verdict dependency.Verdict) string {
	root := e.view.InstanceOf(addOn)
	switch {
	case e.isUpdateUnknown(addOn) && (root == nil || len(e.view.Running(root)) == 0):
		e.suggestDetails(addOn)
		return " and is being updated: " + text.JoinMessage(available.Message)
	case e.view.Definitions[addOn.Name].Malformed != nil:
		return ""
	case len(verdict) == 0:
		return " and has no dependencies"
	}
	return ", and its dependencies are satisfied: " + strings.Join(dependency.Names(verdict), ", ")
}
