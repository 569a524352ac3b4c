package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
)

func TestStart(t *testing.T) {
	version := versionOf("deploy", "update", "backup")
	for name := range version.Plans {
		version.Plans[name] = twoSteps(func(*kudo.Plan) {})
	}
	complete, inError := plan.NeverRun("deploy", version.Plans["deploy"]), plan.Begin("backup", version.Plans["backup"], "b", noon)
	complete.Status, complete.UID = kudo.Complete, "d"
	inError.Status, inError.Message = kudo.Error, "refused"
	status := kudo.InstanceStatus{
		Execution:  &kudo.Execution{UID: "b", Plan: "backup", OperatorVersion: one},
		PlanStatus: map[string]kudo.PlanStatus{"deploy": complete, "backup": inError},
	}
	for name, test := range map[string]struct {
		plan    string
		of      corev1.ObjectReference
		want    map[string]kudo.ExecutionStatus
		message string // of plan backup
	}{
		"what ran until now has ended, and what was complete is": {
			plan: "update", of: one, message: `superseded by plan "update"`,
			want: map[string]kudo.ExecutionStatus{"deploy": kudo.Complete, "update": kudo.Pending, "backup": kudo.FatalError},
		},
		"a restarted plan starts from the beginning": {
			plan: "backup", of: one,
			want: map[string]kudo.ExecutionStatus{"deploy": kudo.Complete, "update": kudo.NeverRun, "backup": kudo.Pending},
		},
		"no other plan of another version has ever run": {
			plan: "update", of: two,
			want: map[string]kudo.ExecutionStatus{"deploy": kudo.NeverRun, "update": kudo.Pending, "backup": kudo.NeverRun},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := *status.DeepCopy()
			choice := plan.Choice{Start: &kudo.Execution{Plan: test.plan, OperatorVersion: test.of}, Version: version}
			started := plan.Start(status, choice, "new", noon.Add(time.Hour))
			got := map[string]kudo.ExecutionStatus{}
			for name, s := range started.PlanStatus {
				got[name] = s.Status
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if message := started.PlanStatus["backup"].Message; message != test.message {
				t.Errorf("backup says %q, want %q", message, test.message)
			}
			if started.Execution.UID != "new" || started.PlanStatus[test.plan].UID != "new" {
				t.Errorf("started as %q, its plan as %q", started.Execution.UID, started.PlanStatus[test.plan].UID)
			}
			if diff := cmp.Diff(before, status); diff != "" {
				t.Errorf("Start changed its input:\n%s", diff)
			}
		})
	}
}
