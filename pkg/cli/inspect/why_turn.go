package inspect

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/availability"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

// lag states which controller is next if the add-on's conditions do not match the verdict.
func (e *explanation) lag(addOn *addonv1alpha1.ManagedClusterAddOn, seen dependency.Seen, reason string) {
	told := ""
	if last := lastTold(addOn); last != nil {
		told = last.Reason
	}
	switch {
	case told != reason:
		e.say("Condition Degraded has yet to follow; if that takes longer than a few seconds, see whether addon-manager runs on the hub.")
	case reason != addonv1alpha1.ReasonRequiredDependencyNotSatisfied:
		if awaited(seen) {
			e.turn(addOn)
		}
	case seen.Available != metav1.ConditionFalse && seen.Reason != addonv1alpha1.ReasonClusterLeaseStopped:
		e.say("Condition Available has yet to follow the hub's verdict; if that takes longer than a few seconds, see whether addon-agent "+
			"runs on cluster %s.", e.view.Name)
	}
}

// overtaken reports whether Available still reports a missing required add-on that the verdict may no longer contain.
func overtaken(seen dependency.Seen) bool {
	return seen.Available == metav1.ConditionFalse && seen.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied
}

// awaited reports whether the status of an add-on with all its required dependencies is still to be reported.
func awaited(seen dependency.Seen) bool {
	return seen.Available == "" || overtaken(seen) ||
		seen.Available == metav1.ConditionUnknown && seen.Reason != addonv1alpha1.ReasonClusterLeaseStopped
}

// turn states which controller reports the availability of an add-on, now that all its required dependencies are met.
func (e *explanation) turn(addOn *addonv1alpha1.ManagedClusterAddOn) {
	whose := "its own controller to say, for its health check is Customized: see whether that runs and writes condition Available"
	lease, leased := availability.LeaseOf(addOn)
	switch host := addOn.Annotations[upstream.HostingClusterNameAnnotationKey]; {
	case meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved) != nil:
		whose = fmt.Sprintf("addon-agent on cluster %s to say, by its plans: see whether addon-agent runs there", e.view.Name)
	case leased:
		whose = fmt.Sprintf("OCM's klusterlet on cluster %s to say within 30 s, or without OCM for addon-agent there, by lease %s: "+
			"see whether one of them runs, and whether the lease is renewed", e.view.Name, lease)
	case addOn.Status.HealthCheck.Mode != upstream.HealthCheckModeCustomized:
		whose = fmt.Sprintf("OCM's klusterlet of cluster %s to say within 30 s, by a lease on cluster %s, which hosts it: "+
			"see whether that klusterlet runs, and whether the lease is renewed", e.view.Name, host)
	}
	e.say("Whether %s is available is for %s.", addOn.Name, whose)
	e.look(addOn)
}
