package availability_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/availability"
)

var now = time.Date(2025, 11, 21, 12, 0, 0, 0, time.UTC)

// newLease returns a lease that was renewed the given time ago.
func newLease(ago time.Duration, change ...func(*coordinationv1.Lease)) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-ago)}
	for _, c := range change {
		c(lease)
	}
	return lease
}

// every sets the renewal period of a lease.
func every(seconds int32) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = &seconds }
}

func TestOfLease(t *testing.T) {
	const lacks = "Required addon 'b' is not installed or not available."
	judged := func(status metav1.ConditionStatus, reason, message string, until time.Time) availability.Judgement {
		c := condition(addonv1alpha1.ConditionAvailable, status, reason, message)
		return availability.Judgement{Condition: &c, Until: until}
	}
	yes := func(left time.Duration) availability.Judgement {
		return judged(metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated", "a add-on is available.", now.Add(left))
	}
	no := judged(metav1.ConditionFalse, "ManagedClusterAddOnLeaseUpdateStopped", "a add-on is not available.", time.Time{})
	unknown := judged(metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound", "The status of a add-on is unknown.", time.Time{})
	created := func(ago time.Duration) func(*addonv1alpha1.ManagedClusterAddOn) {
		return func(a *addonv1alpha1.ManagedClusterAddOn) { a.CreationTimestamp.Time = now.Add(-ago) }
	}
	mode := func(mode upstream.HealthCheckMode) func(*addonv1alpha1.ManagedClusterAddOn) {
		return func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.HealthCheck.Mode = mode }
	}
	with := func(conditions ...metav1.Condition) func(*addonv1alpha1.ManagedClusterAddOn) {
		return func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.Conditions = conditions }
	}
	nobody := availability.Judgement{}

	for name, test := range map[string]struct {
		change     func(*addonv1alpha1.ManagedClusterAddOn)
		lease      *coordinationv1.Lease
		klusterlet bool
		want       availability.Judgement
	}{
		"a lease renewed just now is fresh for five minutes":              {lease: newLease(0), want: yes(5 * time.Minute)},
		"a lease is fresh until five minutes have passed":                 {lease: newLease(5*time.Minute - 1), want: yes(1)},
		"five minutes after the last renewal a lease is stale":            {lease: newLease(5 * time.Minute), want: no},
		"five of the lease's own periods count":                           {lease: newLease(40*time.Second, every(10)), want: yes(10 * time.Second)},
		"a lease with a period of its own is stale after five of them":    {lease: newLease(50*time.Second, every(10)), want: no},
		"a period of nothing is none":                                     {lease: newLease(time.Minute, every(0)), want: yes(4 * time.Minute)},
		"a negative period is none":                                       {lease: newLease(time.Minute, every(-7)), want: yes(4 * time.Minute)},
		"a period of years counts as a day":                               {lease: newLease(0, every(math.MaxInt32)), want: yes(120 * time.Hour)},
		"a lease that was never renewed is stale":                         {lease: &coordinationv1.Lease{}, want: no},
		"without a lease it is unknown":                                   {want: unknown},
		"mode Lease is as none":                                           {change: mode(upstream.HealthCheckModeLease), want: unknown},
		"nothing is made of a lease that a new add-on does not have":      {change: created(time.Second), want: availability.Judgement{Until: now.Add(time.Second)}},
		"two seconds later it is unknown":                                 {change: created(2 * time.Second), want: unknown},
		"an add-on from a hub whose clock is ahead does not wait for it":  {change: created(-time.Hour), want: unknown},
		"the lease of a new add-on counts immediately":                    {change: created(time.Second), lease: newLease(time.Hour), want: no},
		"an add-on with a health check of its own is left to it":          {change: mode(upstream.HealthCheckModeCustomized), lease: newLease(0), want: nobody},
		"an unknown health check is evaluated by another controller":      {change: mode("None"), lease: newLease(0), want: nobody},
		"where a klusterlet judges leases they are left to it":            {klusterlet: true, lease: newLease(0), want: nobody},
		"an add-on whose agent runs on another cluster is left to others": {change: markHosted, lease: newLease(0), want: nobody},
		"a fresh lease does not help an add-on without a required dependency": {
			change: with(condition(addonv1alpha1.ConditionDegraded, metav1.ConditionTrue, addonv1alpha1.ReasonRequiredDependencyNotSatisfied, lacks)),
			lease:  newLease(0),
			want:   judged(metav1.ConditionFalse, addonv1alpha1.ReasonRequiredDependencyNotSatisfied, lacks, time.Time{}),
		},
		"a missing optional dependency has no influence": {
			change: with(condition(addonv1alpha1.ConditionDegraded, metav1.ConditionTrue, addonv1alpha1.ReasonDependencyNotSatisfied, lacks)),
			lease:  newLease(0), want: yes(5 * time.Minute),
		},
		"a plan-based add-on is not judged by a lease": {
			change: with(condition(addonv1alpha1.ConditionResolved, metav1.ConditionTrue, kudo.ReasonResolved, "")),
			lease:  newLease(0),
			want:   judged(metav1.ConditionFalse, addonv1alpha1.ReasonNotInstalled, "the add-on is about to be installed", time.Time{}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			subject := addOn()
			if test.change != nil {
				test.change(subject)
			}
			seen := availability.Seen{AddOn: subject, Standalone: !test.klusterlet, Lease: test.lease}
			if diff := cmp.Diff(test.want, availability.Of(seen, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func markHosted(a *addonv1alpha1.ManagedClusterAddOn) {
	a.Annotations = map[string]string{upstream.HostingClusterNameAnnotationKey: "another"}
}

func TestLeaseOf(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*addonv1alpha1.ManagedClusterAddOn)
		want   string
	}{
		"the namespace where the add-on was installed comes first": {
			func(a *addonv1alpha1.ManagedClusterAddOn) {
				a.Status.Namespace, a.Spec.InstallNamespace = "installed", "wanted"
			}, "installed/a"},
		"the one where it shall be installed is next": {
			func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.InstallNamespace = "wanted" }, "wanted/a"},
		"OCM's is the last resort":        {func(*addonv1alpha1.ManagedClusterAddOn) {}, "open-cluster-management-agent-addon/a"},
		"an agent elsewhere has no lease": {markHosted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			subject := addOn()
			test.change(subject)
			got, leased := availability.LeaseOf(subject)
			if leased != (test.want != "") || leased && got.String() != test.want || !leased && got != (types.NamespacedName{}) {
				t.Errorf("%v, %v", got, leased)
			}
		})
	}
}
