package addonstatus

import (
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

func TestOnlyProgressIsDelayed(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	a := &available{pace: controller.NewPace(clock), clock: clock}
	verdict := &metav1.Condition{Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonRequiredDependencyNotSatisfied}
	progress := &metav1.Condition{Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonNotInstalled}
	works := &metav1.Condition{Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonPlanComplete}
	unknown := &metav1.Condition{Status: metav1.ConditionUnknown}
	for name, tc := range map[string]struct {
		before, want *metav1.Condition
		waited, left time.Duration
	}{
		"the first state":                            {nil, progress, 0, reasonDelay},
		"the first state, when it is available":      {nil, works, 0, 0},
		"the first state, a verdict":                 {nil, verdict, 0, 0},
		"a verdict that is withdrawn":                {verdict, progress, 0, reasonDelay},
		"a verdict that is withdrawn, when it works": {verdict, works, 0, 0},
		"progress":                     {progress, progress, 0, reasonDelay},
		"progress, after a while":      {progress, progress, reasonDelay / 4, reasonDelay * 3 / 4},
		"progress that was delayed":    {progress, progress, reasonDelay, 0},
		"progress of what was unknown": {unknown, progress, 0, reasonDelay},
		"progress to available":        {progress, works, 0, 0},
		"a failure":                    {works, progress, 0, 0},
		"a verdict":                    {works, verdict, 0, 0},
	} {
		err := a.postpone(types.NamespacedName{Name: "kafka"}, tc.before, tc.want, now.Add(-tc.waited))
		var postponed *controller.PostponedError
		if errors.As(err, &postponed) != (tc.left > 0) || postponed != nil && postponed.For != tc.left {
			t.Errorf("%s: %v, want a delay of %s", name, err, tc.left)
		}
	}
}

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
