// Package availability decides condition Available of an add-on on its managed cluster: what the add-on's own health says,
// and-ed with the hub's verdict over its dependencies (OCM's Addon Dependency Management proposal). It is pure.
package availability

import (
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Seen is what an add-on is judged by.
type Seen struct {
	// AddOn is the add-on as it stands on the hub, with the verdict over its dependencies.
	AddOn *addonv1alpha1.ManagedClusterAddOn
	// Instance is its Instance on the managed cluster; nil if there is none.
	Instance *kudo.Instance
	// Standalone is true if no OCM klusterlet judges leases on the managed cluster.
	Standalone bool
	// Lease is what LeaseOf names; nil if there is none.
	Lease *coordinationv1.Lease
}

// Judgement is what comes of it.
type Judgement struct {
	// Condition is Available as it is to be; nil where it is somebody else's to write.
	Condition *metav1.Condition
	// Release is true if Available, somebody else's to write, still repeats a verdict that is lifted. It is to be removed: nothing is
	// known until its writer speaks, and an add-on whose health nobody checks would stay unavailable for a reason that is gone.
	Release bool
	// Until is when the add-on must be judged again even if nothing changes; zero if that is never so.
	Until time.Time
}

// Of judges an add-on. Available is somebody else's to write where the add-on lacks nothing that it requires and neither runs by
// plans nor is judged by a lease here.
func Of(seen Seen, now time.Time) Judgement {
	conditions := seen.AddOn.Status.Conditions
	if degraded := meta.FindStatusCondition(conditions, addonv1alpha1.ConditionDegraded); degraded != nil &&
		degraded.Status == metav1.ConditionTrue && degraded.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied {
		return judgement(metav1.ConditionFalse, degraded.Reason, degraded.Message)
	}
	if resolved := meta.FindStatusCondition(conditions, addonv1alpha1.ConditionResolved); resolved != nil {
		return byInstance(seen, resolved)
	}
	if _, leased := LeaseOf(seen.AddOn); leased && seen.Standalone {
		return byLease(seen.AddOn, seen.Lease, now)
	}
	available := meta.FindStatusCondition(conditions, addonv1alpha1.ConditionAvailable)
	return Judgement{Release: available != nil && available.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied}
}

// byInstance judges an add-on that runs by plans: its Instance speaks for all that are below it.
func byInstance(seen Seen, resolved *metav1.Condition) Judgement {
	if seen.Instance == nil {
		return judgement(metav1.ConditionFalse, addonv1alpha1.ReasonNotInstalled, notInstalled(seen.AddOn, resolved))
	}
	ready := meta.FindStatusCondition(seen.Instance.Status.Conditions, kudo.ConditionReady)
	switch {
	case ready == nil:
		return judgement(metav1.ConditionFalse, kudo.ReasonPlanPending, "no plan has started yet")
	case ready.Status == metav1.ConditionTrue:
		return judgement(metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, ready.Message)
	default:
		return judgement(metav1.ConditionFalse, ready.Reason, ready.Message)
	}
}

func notInstalled(addOn *addonv1alpha1.ManagedClusterAddOn, resolved *metav1.Condition) string {
	if addOn.DeletionTimestamp != nil {
		return "the add-on is being removed"
	}
	if resolved.Status == metav1.ConditionTrue {
		return "the add-on is about to be installed"
	}
	return fmt.Sprintf("the add-on is not installed: %s: %s", resolved.Reason, resolved.Message)
}

// Includes reports whether condition Available says what condition Resolved does.
func Includes(available, resolved *metav1.Condition) bool {
	return available != nil && resolved.Message != "" && strings.Contains(available.Message, resolved.Message)
}

func judgement(status metav1.ConditionStatus, reason, message string) Judgement {
	return Judgement{Condition: &metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: status, Reason: reason, Message: message}}
}
