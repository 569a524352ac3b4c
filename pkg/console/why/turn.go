package why

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/availability"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
)

// explainLag states which controller is next if the add-on's conditions do not match the verdict.
func (e *Explanation) explainLag(addOn *addonv1alpha1.ManagedClusterAddOn, seen dependency.Seen, reason string) {
	reported := ""
	if last := lastVerdict(addOn); last != nil {
		reported = last.Reason
	}
	switch {
	case reported != reason:
		e.addSentence("Condition Degraded is not up to date yet; if this takes longer than a few seconds, check that addon-manager is running on " +
			"the hub.")
	case reason != addonv1alpha1.ReasonRequiredDependencyNotSatisfied:
		if isReportPending(seen) {
			e.explainReporter(addOn)
		}
	case seen.Available != metav1.ConditionFalse && seen.Reason != addonv1alpha1.ReasonClusterLeaseStopped:
		e.addSentence("Condition Available is not up to date yet; if this takes longer than a few seconds, check that addon-agent is running on "+
			"cluster %s.", e.view.Name)
	}
}

// isStale reports whether Available still reports a missing required add-on that the verdict may no longer contain.
func isStale(seen dependency.Seen) bool {
	return seen.Available == metav1.ConditionFalse && seen.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied
}

// isReportPending reports whether the status of an add-on with all its required dependencies is still to be reported.
func isReportPending(seen dependency.Seen) bool {
	return seen.Available == "" || isStale(seen) ||
		seen.Available == metav1.ConditionUnknown && seen.Reason != addonv1alpha1.ReasonClusterLeaseStopped
}

// explainReporter states which controller reports the availability of an add-on, now that all its required dependencies are met.
func (e *Explanation) explainReporter(addOn *addonv1alpha1.ManagedClusterAddOn) {
	whose := "its own controller because its health check mode is Customized: " +
		"check that this controller is running and writes condition Available"
	lease, leased := availability.LeaseOf(addOn)
	if e.isUnprocessed(addOn) {
		e.explainUnprocessed(addOn)
		return
	}
	switch host := addOn.Annotations[upstream.HostingClusterNameAnnotationKey]; {
	case meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved) != nil:
		whose = fmt.Sprintf("addon-agent on cluster %s, based on the plans of the add-on: check that addon-agent is running there", e.view.Name)
	case leased:
		whose = fmt.Sprintf("OCM's klusterlet on cluster %s within 30 s, or without OCM by addon-agent there, based on lease %s: "+
			"check that one of them is running and that the lease is renewed", e.view.Name, lease)
	case addOn.Status.HealthCheck.Mode != upstream.HealthCheckModeCustomized:
		whose = fmt.Sprintf("OCM's klusterlet of cluster %s within 30 s, based on a lease on hosting cluster %s: "+
			"check that this klusterlet is running and that the lease is renewed", e.view.Name, host)
	}
	e.addSentence("The availability of %s is reported by %s.", addOn.Name, whose)
	e.suggestDetails(addOn)
}

// isUnprocessed reports whether addon-manager has not processed a plan-based add-on yet: no other program judges its availability.
func (e *Explanation) isUnprocessed(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	return e.view.Definitions[addOn.Name].PlanManaged &&
		meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved) == nil
}

// explainUnprocessed states that addon-manager has not processed an add-on yet.
func (e *Explanation) explainUnprocessed(addOn *addonv1alpha1.ManagedClusterAddOn) {
	e.addSentence("%s.", progress.UnprocessedText)
	e.suggestDetails(addOn)
}
