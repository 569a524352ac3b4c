package plan_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

func TestSteady(t *testing.T) {
	const crash = "Pod ns/a: container app restarts: CrashLoopBackOff: exited with code 1 (Error)"
	for name, test := range map[string]struct{ recorded, current, want string }{
		"only the log differs":      {crash + plan.LastLogLine + `"12:00 no"`, crash + plan.LastLogLine + `"12:01 no"`, crash + plan.LastLogLine + `"12:00 no"`},
		"the cause differs":         {crash + plan.LastLogLine + `"a"`, "other" + plan.LastLogLine + `"a"`, "other" + plan.LastLogLine + `"a"`},
		"the log is no longer read": {crash + plan.LastLogLine + `"a"`, crash, crash},
		"the log is read at last":   {crash, crash + plan.LastLogLine + `"a"`, crash + plan.LastLogLine + `"a"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.Steady(test.recorded, test.current); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestALogIsNoMissingObject(t *testing.T) {
	condition := metav1.Condition{Reason: kudo.ReasonUnhealthy, Message: "Pod ns/a: fails" + plan.LastLogLine + `"config: is missing"`}
	if plan.IsMissing(condition) {
		t.Error("the log of a container counts as a missing object")
	}
}
