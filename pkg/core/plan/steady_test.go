package plan_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

func TestSteady(t *testing.T) {
	const crash = "Pod ns/a: container app restarts: CrashLoopBackOff: exited with code 1 (Error)"
	const killed, other = "Pod ns/a: container app restarts: CrashLoopBackOff: exited with code 137 (OOMKilled)", "Pod ns/a: container db restarts: CrashLoopBackOff: exited with code 1"
	often := func(restarts int) string {
		return fmt.Sprintf("Pod ns/a: container app restarts: CrashLoopBackOff (image shop:1, more than %d restarts): exited with code 1 (Error)", restarts)
	}
	for name, test := range map[string]struct {
		recorded, current, want string
		age                     time.Duration
	}{
		"only the log differs":                          {crash + plan.LastLogLine + `"12:00 no"`, crash + plan.LastLogLine + `"12:01 no"`, crash + plan.LastLogLine + `"12:00 no"`, time.Hour},
		"the cause differs":                             {crash + plan.LastLogLine + `"a"`, "other" + plan.LastLogLine + `"a"`, "other" + plan.LastLogLine + `"a"`, 0},
		"the log is no longer read":                     {crash + plan.LastLogLine + `"a"`, crash, crash, 10 * time.Minute},
		"the log is read at last":                       {crash, crash + plan.LastLogLine + `"a"`, crash + plan.LastLogLine + `"a"`, time.Hour},
		"the same container fails otherwise":            {crash + plan.LastLogLine + `"a"`, killed, crash + plan.LastLogLine + `"a"`, 9 * time.Minute},
		"the same container has failed otherwise since": {crash, killed, killed, 10 * time.Minute},
		"another container fails":                       {crash, other, other, time.Minute},
		"the container works":                           {crash, "Pod ns/a: is not scheduled: no nodes", "Pod ns/a: is not scheduled: no nodes", time.Minute},
		"it has restarted more often":                   {often(3) + plan.LastLogLine + `"a"`, often(10) + plan.LastLogLine + `"a"`, often(3) + plan.LastLogLine + `"a"`, 9 * time.Minute},
		"it restarts for a long time":                   {often(3) + plan.LastLogLine + `"a"`, often(10) + plan.LastLogLine + `"a"`, often(10) + plan.LastLogLine + `"a"`, 10 * time.Minute},
		"another problem of the workload": {"Deployment ns/a: 0 of 2 replicas: container app restarts: x", "Deployment ns/a: 1 of 2 replicas: container app restarts: x",
			"Deployment ns/a: 1 of 2 replicas: container app restarts: x", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.Steady(test.recorded, test.current, test.age); got != test.want {
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
