package cli

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// String names what is uninstalled as kubectl does: the add-on, else the Instance.
func (i installed) String() string {
	if i.addOn != nil {
		return objectName(addon.GroupVersion.Group, "ManagedClusterAddOn", i.Name)
	}
	return objectName(kudo.GroupVersion.Group, "Instance", i.Name)
}

// suffering names the add-ons that suffer, and where; required says that one of them stops being available.
func suffering(found []installed) (texts []string, required bool) {
	suffers := clusterTexts{}
	for _, i := range found {
		for _, dependant := range i.dependants {
			text := fmt.Sprintf("without %s, add-on %s %s", word(i.Name), word(dependant.Name), effectText(dependant.Type))
			if len(dependant.Through) > 0 {
				text += " (through " + throughText(dependant.Through) + ")"
			}
			required = required || dependant.Type == addon.DependencyTypeRequired
			suffers.add(i.Namespace, text)
		}
	}
	return suffers.texts(), required
}

// leftText lists what an Instance that is let go of leaves behind, as far as its agent has reported.
func leftText(instance *kudo.Instance) string {
	cluster := word(instance.Namespace)
	if len(instance.Status.Inventory) == 0 {
		return fmt.Sprintf("Letting go of Instance %s: nothing is known to be left of it on cluster %s.\n", word(instance.Name), cluster)
	}
	text := fmt.Sprintf("Letting go of Instance %s. What is not removed yet stays on cluster %s:\n", word(instance.Name), cluster)
	for _, entry := range instance.Status.Inventory {
		text += fmt.Sprintf("  %s\n", entry)
	}
	return text
}

// waitText says what keeps it from being gone.
func (i installed) waitText() string {
	switch {
	case i.instance == nil:
		return cmp.Or(remainingText(i.addOn), finalizersText("ManagedClusterAddOn", i.addOn))
	case i.instance.DeletionTimestamp.IsZero():
		return fmt.Sprintf("addon-manager has not deleted Instance %s yet", word(i.Name))
	case i.instance.ForceReleased():
		return fmt.Sprintf("addon-manager has not let go of Instance %s yet", word(i.Name))
	}
	ready := meta.FindStatusCondition(i.instance.Status.Conditions, kudo.ConditionReady)
	switch {
	case ready != nil && ready.Status == metav1.ConditionTrue && cleanedUp(i.instance.Status):
		return fmt.Sprintf("plan %q of Instance %s is complete: what it has applied is removed next", kudo.CleanupPlan, word(i.Name))
	case ready == nil || ready.Status == metav1.ConditionTrue:
		return fmt.Sprintf("the agent of cluster %s has not begun to remove Instance %s", word(i.Namespace), word(i.Name))
	case ready.Reason == kudo.ReasonRemoved:
		return i.removedText()
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %s", ready.Reason, ready.Message), ": ")
}

// remainingText says what the add-on of the agent stays for; empty where it does not, and of any other.
func remainingText(addOn *addon.ManagedClusterAddOn) string {
	remaining := meta.FindStatusCondition(addOn.Status.Conditions, addon.ConditionAddOnsRemaining)
	if remaining == nil || remaining.Status != metav1.ConditionTrue {
		return ""
	}
	return remaining.Message
}

// removedText says what keeps an Instance of which nothing is left on the cluster.
func (i installed) removedText() string {
	if len(i.below) == 0 {
		return finalizersText("Instance", i.instance)
	}
	return fmt.Sprintf("nothing else is left of Instance %s: its children go now: %s", word(i.Name), strings.Join(belowTexts(i.below), ", "))
}

// belowTexts name Instances, each with what its condition Ready says.
func belowTexts(instances []kudo.Instance) []string {
	texts := make([]string, len(instances))
	for i := range instances {
		texts[i] = word(instances[i].Name)
		ready := meta.FindStatusCondition(instances[i].Status.Conditions, kudo.ConditionReady)
		if ready != nil && ready.Status != metav1.ConditionTrue {
			texts[i] += " (" + strings.TrimSuffix(ready.Reason+": "+ready.Message, ": ") + ")"
		}
	}
	return texts
}

// cleanedUp says whether the cleanup plan of a removal is complete. One that somebody ran by hand is not it.
func cleanedUp(status kudo.InstanceStatus) bool {
	last := status.Execution
	return last != nil && last.Plan == kudo.CleanupPlan && last.UID != last.Request && status.PlanStatus[last.Plan].Status == kudo.Complete
}

// finalizersText says what holds an object that is being deleted.
func finalizersText(kind string, object metav1.Object) string {
	return fmt.Sprintf("%s %s is held by finalizers: %s", kind, word(object.GetName()), listed(object.GetFinalizers()))
}
