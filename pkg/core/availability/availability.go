// Package availability decides the condition Available of an add-on on its managed cluster: the add-on's own health, combined with the
// hub's verdict on its dependencies (OCM's Addon Dependency Management proposal). It is pure and touches no cluster.
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

// Seen holds everything that decides whether an add-on is available.
type Seen struct {
	// AddOn is the observed add-on on the hub, including the verdict on its dependencies.
	AddOn *addonv1alpha1.ManagedClusterAddOn
	// Instance is the add-on's Instance on the managed cluster; nil if there is none.
	Instance *kudo.Instance
	// Unsigned is true if Instance is nil only because the hub has not confirmed it yet since the agent was upgraded.
	Unsigned bool
	// Standalone is true if no OCM klusterlet evaluates leases on the managed cluster.
	Standalone bool
	// Lease is the lease that LeaseOf names; nil if it does not exist.
	Lease *coordinationv1.Lease
}

// Judgement is the result of judging an add-on.
type Judgement struct {
	// Condition is the desired condition Available; nil where another writer owns it.
	Condition *metav1.Condition
	// Release is true if Available belongs to another writer but still repeats a verdict that no longer holds. The condition is then
	// removed: its status is unknown until its writer sets it, and an add-on without a health check would otherwise stay unavailable for a
	// stale reason.
	Release bool
	// Until is when the add-on must be judged again even if nothing changes; zero if never.
	Until time.Time
}

// Of judges an add-on. Another writer owns Available if the add-on lacks no required dependency, is not plan-based, and is not judged
// by a lease here.
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

// byInstance judges a plan-based add-on. Its Instance covers all child Instances, and has condition Available only while a plan updates it.
func byInstance(seen Seen, resolved *metav1.Condition) Judgement {
	switch {
	case seen.Unsigned:
		return Judgement{}
	case seen.Instance == nil:
		return judgement(metav1.ConditionFalse, addonv1alpha1.ReasonNotInstalled, notInstalled(seen.AddOn, resolved))
	}
	ready := meta.FindStatusCondition(seen.Instance.Status.Conditions, kudo.ConditionReady)
	updating := meta.FindStatusCondition(seen.Instance.Status.Conditions, kudo.ConditionAvailable)
	switch {
	case ready == nil:
		return judgement(metav1.ConditionFalse, kudo.ReasonPlanPending, "no plan has started yet")
	case ready.Status == metav1.ConditionTrue:
		return judgement(metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, ready.Message)
	case updating != nil && updating.Status == metav1.ConditionTrue && updating.Reason == kudo.ReasonReturned:
		return judgement(metav1.ConditionTrue, updating.Reason, updating.Message)
	case updating != nil && updating.Status == metav1.ConditionTrue:
		return judgement(metav1.ConditionTrue, addonv1alpha1.ReasonUpdating, updating.Message)
	case updating != nil:
		return judgement(metav1.ConditionFalse, updating.Reason, updating.Message)
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

// Includes reports whether condition Available carries the verdict of condition Resolved.
func Includes(available, resolved *metav1.Condition) bool {
	return available != nil && resolved.Message != "" && strings.Contains(available.Message, resolved.Message)
}

func judgement(status metav1.ConditionStatus, reason, message string) Judgement {
	return Judgement{Condition: &metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: status, Reason: reason, Message: message}}
}
