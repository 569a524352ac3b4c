package hub

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestALeaseIsFreshForFivePeriodsFromWhenItsRenewalWasSeen(t *testing.T) {
	type look struct {
		after   time.Duration // since the first reconciliation
		renewed time.Duration // according to the lease, since then; its clock may be off
		want    time.Duration
	}
	for name, looks := range map[string][]look{
		"the first look counts as a renewal, however old the lease is": {
			{0, -1000 * time.Hour, 50 * time.Second}},
		"time that passes without a renewal is taken off": {
			{0, 0, 50 * time.Second}, {20 * time.Second, 0, 30 * time.Second}, {50 * time.Second, 0, 0}},
		"a renewal counts from when it was seen": {
			{0, 0, 50 * time.Second}, {20 * time.Second, time.Second, 50 * time.Second}, {40 * time.Second, time.Second, 30 * time.Second}},
		"a clock that is ahead buys no time": {
			{0, 1000 * time.Hour, 50 * time.Second}, {60 * time.Second, 1000 * time.Hour, -10 * time.Second}},
		"a clock that was set back is a renewal, too": {
			{0, time.Hour, 50 * time.Second}, {60 * time.Second, 0, 50 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &leases{renewals: map[types.NamespacedName]renewal{}}
			start, period := time.Date(2025, 11, 21, 12, 0, 0, 0, time.UTC), int32(10)
			for _, at := range looks {
				lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
					LeaseDurationSeconds: &period, RenewTime: &metav1.MicroTime{Time: start.Add(at.renewed)},
				}}
				if got := l.timeLeft(lease, start.Add(at.after)); got != at.want {
					t.Errorf("after %v: %v left, want %v", at.after, got, at.want)
				}
			}
		})
	}
}

func TestALeaseThatIsGoneIsForgotten(t *testing.T) {
	l := &leases{renewals: map[types.NamespacedName]renewal{}}
	start := time.Date(2025, 11, 21, 12, 0, 0, 0, time.UTC)
	l.timeLeft(&coordinationv1.Lease{}, start)
	l.forget(types.NamespacedName{})
	if got := l.timeLeft(&coordinationv1.Lease{}, start.Add(time.Hour)); got != 5*time.Minute {
		t.Errorf("%v left", got)
	}
}
