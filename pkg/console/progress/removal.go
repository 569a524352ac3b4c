package progress

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// RemovalText states why an add-on or Instance that is being removed still exists. The add-on is nil if the Instance belongs to none, and the
// Instance if the add-on has none; below lists its descendants.
func RemovalText(addOn *addonv1alpha1.ManagedClusterAddOn, instance *kudo.Instance, below []kudo.Instance) string {
	switch {
	case instance == nil:
		return cmp.Or(RemainingText(addOn), HeldText(addOn))
	case instance.DeletionTimestamp.IsZero():
		return cmp.Or(RemainingText(addOn), fmt.Sprintf("addon-manager has not deleted Instance %s yet", text.Word(instance.Name)))
	case instance.IsForceReleased():
		return fmt.Sprintf("addon-manager has not removed the finalizer of Instance %s yet", text.Word(instance.Name))
	}
	ready := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady)
	switch {
	case isRemovalUnseen(instance):
		return fmt.Sprintf("the agent of cluster %s has not started to remove Instance %s", text.Word(instance.Namespace), text.Word(instance.Name))
	case ready.Status == metav1.ConditionTrue:
		return fmt.Sprintf("plan %q of Instance %s is complete; its applied objects are removed next", kudo.CleanupPlan, text.Word(instance.Name))
	case ready.Reason == kudo.ReasonRemoved:
		return removedText(instance, below)
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %s", ready.Reason, ready.Message), ": ")
}

// RemovalAdvice states which program to check if a removal has not started; empty if it has, or if the add-on has no Instance.
func RemovalAdvice(instance *kudo.Instance) string {
	program := ""
	switch {
	case instance == nil:
	case instance.DeletionTimestamp.IsZero() || instance.IsForceReleased():
		program = "addon-manager is running on the hub"
	case isRemovalUnseen(instance):
		program = "addon-agent is running on cluster " + text.Word(instance.Namespace)
	}
	if program == "" {
		return ""
	}
	return "If this takes longer than a few seconds, check that " + program + "."
}

// isRemovalUnseen reports whether the agent has not reported that it removes an Instance, which has been deleted.
func isRemovalUnseen(instance *kudo.Instance) bool {
	ready := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady)
	return ready == nil || ready.Status == metav1.ConditionTrue && !isCleanedUp(instance.Status)
}

// removedText states why an Instance still exists although all its objects are removed.
func removedText(instance *kudo.Instance, below []kudo.Instance) string {
	if len(below) == 0 {
		return FinalizersText("Instance", instance)
	}
	return fmt.Sprintf("Instance %s has no objects left; its children are being removed: %s",
		text.Word(instance.Name), strings.Join(belowTexts(below), ", "))
}

// belowTexts returns the names of Instances, each with the message of its condition Ready.
func belowTexts(instances []kudo.Instance) []string {
	texts := make([]string, len(instances))
	for i := range instances {
		texts[i] = text.Word(instances[i].Name)
		ready := meta.FindStatusCondition(instances[i].Status.Conditions, kudo.ConditionReady)
		if ready != nil && ready.Status != metav1.ConditionTrue {
			texts[i] += " (" + strings.TrimSuffix(ready.Reason+": "+ready.Message, ": ") + ")"
		}
	}
	return texts
}

// isCleanedUp reports whether the cleanup plan of a removal is complete. A manually requested cleanup does not count.
func isCleanedUp(status kudo.InstanceStatus) bool {
	last := status.Execution
	return last != nil && last.Plan == kudo.CleanupPlan && last.UID != last.Request && status.PlanStatus[last.Plan].Status == kudo.Complete
}
