package availability

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/controller"
)

func TestOnlyProgressIsDelayed(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	a := &available{quiet: controller.NewQuietPeriods(clock), clock: clock}
	verdict := &metav1.Condition{Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonRequiredDependencyNotSatisfied}
	progress := &metav1.Condition{Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonNotInstalled}
	works := &metav1.Condition{Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonPlanComplete}
	unknown := &metav1.Condition{Status: metav1.ConditionUnknown}
	for name, tc := range map[string]struct {
		before, want *metav1.Condition
		waited, left time.Duration
	}{
		"the first state":                            {nil, progress, 0, grace},
		"the first state, when it is available":      {nil, works, 0, 0},
		"the first state, a verdict":                 {nil, verdict, 0, 0},
		"a verdict that is withdrawn":                {verdict, progress, 0, grace},
		"a verdict that is withdrawn, when it works": {verdict, works, 0, 0},
		"progress":                     {progress, progress, 0, grace},
		"progress, after a while":      {progress, progress, grace / 4, grace * 3 / 4},
		"progress that was delayed":    {progress, progress, grace, 0},
		"progress of what was unknown": {unknown, progress, 0, grace},
		"progress to available":        {progress, works, 0, 0},
		"a failure":                    {works, progress, 0, 0},
		"a verdict":                    {works, verdict, 0, 0},
	} {
		err := a.postponed(types.NamespacedName{Name: "kafka"}, tc.before, tc.want, now.Add(-tc.waited))
		var postponed *controller.Postponed
		if errors.As(err, &postponed) != (tc.left > 0) || postponed != nil && postponed.For != tc.left {
			t.Errorf("%s: %v, want a delay of %s", name, err, tc.left)
		}
	}
}
