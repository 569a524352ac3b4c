// Package availability decides condition Available of an add-on on its managed cluster: what the add-on's own health says,
// and-ed with the hub's verdict over its dependencies (OCM's Addon Dependency Management proposal). It is pure.
package availability

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Of judges an add-on by its conditions on the hub and its Instance on the managed cluster, nil if there is none. It says
// false where Available is somebody else's to write: an add-on that does not run by plans and lacks nothing that it requires.
func Of(conditions []metav1.Condition, instance *kudo.Instance) (metav1.Condition, bool) {
	if degraded := meta.FindStatusCondition(conditions, addon.ConditionDegraded); degraded != nil &&
		degraded.Status == metav1.ConditionTrue && degraded.Reason == addon.ReasonRequiredDependencyNotSatisfied {
		return condition(metav1.ConditionFalse, degraded.Reason, degraded.Message), true
	}
	resolved := meta.FindStatusCondition(conditions, addon.ConditionResolved)
	if resolved == nil {
		return metav1.Condition{}, false
	}
	if instance == nil {
		return condition(metav1.ConditionFalse, addon.ReasonNotInstalled, notInstalled(resolved)), true
	}
	ready := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady)
	switch {
	case ready == nil:
		return condition(metav1.ConditionFalse, kudo.ReasonPlanPending, "no plan has started yet"), true
	case ready.Status == metav1.ConditionTrue:
		return condition(metav1.ConditionTrue, addon.ReasonPlanComplete, ready.Message), true
	default:
		return condition(metav1.ConditionFalse, ready.Reason, ready.Message), true
	}
}

func notInstalled(resolved *metav1.Condition) string {
	if resolved.Status == metav1.ConditionTrue {
		return "the add-on is about to be installed"
	}
	return fmt.Sprintf("the add-on is not installed: %s: %s", resolved.Reason, resolved.Message)
}

func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: addon.ConditionAvailable, Status: status, Reason: reason, Message: message}
}
