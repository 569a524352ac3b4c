package availability

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestALeaseIsLookedAtWhenItIsMoreThanProlonged(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	lease := func(ago time.Duration, period int32) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			LeaseDurationSeconds: &period, RenewTime: &metav1.MicroTime{Time: now.Add(-ago)},
		}}
	}
	for name, test := range map[string]struct {
		before, after *coordinationv1.Lease
		want          bool
	}{
		"a fresh one is prolonged":              {lease(time.Minute, 60), lease(0, 60), false},
		"a fresh one gets a label":              {lease(time.Minute, 60), lease(time.Minute, 60), false},
		"a fresh one is set back":               {lease(0, 60), lease(time.Minute, 60), true},
		"a fresh one gets a shorter period":     {lease(time.Minute, 60), lease(0, 10), true},
		"a fresh one loses its time":            {lease(0, 60), &coordinationv1.Lease{}, true},
		"a stale one is renewed":                {lease(time.Hour, 60), lease(0, 60), true},
		"one that was never renewed is at last": {&coordinationv1.Lease{}, lease(0, 60), true},
	} {
		t.Run(name, func(t *testing.T) {
			passes := notProlonged(func() time.Time { return now })
			if got := passes.Update(event.TypedUpdateEvent[*coordinationv1.Lease]{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
				t.Errorf("looked at: %v, want %v", got, test.want)
			}
		})
	}
}
