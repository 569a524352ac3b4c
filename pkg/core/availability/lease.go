package availability

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

const (
	// DefaultPeriod is the renewal period of a lease that does not set one, as in OCM.
	DefaultPeriod = time.Minute

	// MaxPeriod is the upper limit for the renewal period that a lease sets.
	MaxPeriod = 24 * time.Hour

	// maxMissedPeriods is the number of periods that may pass without a renewal, as in OCM.
	maxMissedPeriods = 5

	// missingLeaseDelay is how long a missing lease of a new add-on is ignored: the add-on may turn out to be plan-based.
	missingLeaseDelay = 2 * time.Second

	// installNamespace is OCM's default for an add-on that sets no install namespace.
	installNamespace = "open-cluster-management-agent-addon"
)

// LeaseOf returns the name of the lease on the managed cluster by which OCM judges the add-on. It returns false for an add-on that is
// plan-based, has another health check, or has its agent outside of the managed cluster.
func LeaseOf(addOn *addonv1alpha1.ManagedClusterAddOn) (types.NamespacedName, bool) {
	mode := addOn.Status.HealthCheck.Mode
	if mode != "" && mode != upstream.HealthCheckModeLease ||
		addOn.Annotations[upstream.HostingClusterNameAnnotationKey] != "" ||
		meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved) != nil {
		return types.NamespacedName{}, false
	}
	name := types.NamespacedName{Namespace: installNamespace, Name: addOn.Name}
	for _, namespace := range []string{addOn.Status.Namespace, addOn.Spec.InstallNamespace} {
		if namespace != "" {
			name.Namespace = namespace
			break
		}
	}
	return name, true
}

// LeaseTimeout returns how long a lease is fresh after a renewal: five of its periods.
func LeaseTimeout(lease *coordinationv1.Lease) time.Duration {
	period := DefaultPeriod
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		period = min(time.Duration(*seconds)*time.Second, MaxPeriod)
	}
	return maxMissedPeriods * period
}

// Fresh reports whether a lease was renewed recently, and until when it is fresh. A lease that was never renewed is not fresh.
func Fresh(lease *coordinationv1.Lease, now time.Time) (until time.Time, fresh bool) {
	if lease.Spec.RenewTime == nil {
		return time.Time{}, false
	}
	until = lease.Spec.RenewTime.Add(LeaseTimeout(lease))
	return until, now.Before(until)
}

// byLease judges an add-on by its lease, with OCM's reasons and messages.
func byLease(addOn *addonv1alpha1.ManagedClusterAddOn, lease *coordinationv1.Lease, now time.Time) Judgement {
	if lease == nil {
		created := addOn.CreationTimestamp.Time
		if settled := created.Add(missingLeaseDelay); !now.Before(created) && now.Before(settled) {
			return Judgement{Until: settled}
		}
		return judgement(metav1.ConditionUnknown, addonv1alpha1.ReasonLeaseNotFound, fmt.Sprintf("The status of %s add-on is unknown.", addOn.Name))
	}
	until, fresh := Fresh(lease, now)
	if !fresh {
		return judgement(metav1.ConditionFalse, addonv1alpha1.ReasonLeaseStopped, fmt.Sprintf("%s add-on is not available.", addOn.Name))
	}
	judged := judgement(metav1.ConditionTrue, addonv1alpha1.ReasonLeaseUpdated, fmt.Sprintf("%s add-on is available.", addOn.Name))
	judged.Until = until
	return judged
}
