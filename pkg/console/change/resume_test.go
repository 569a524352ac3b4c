package change

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/test/sample"
)

// resumable returns an Instance whose plan has failed at the second of two steps.
func resumable(status kudo.ExecutionStatus, change ...func(*kudo.Instance)) progress.View {
	v := sample.ViewOf("deploy", status, change...)
	v.Version.Spec.Tasks = []kudo.Task{{Name: "first"}, {Name: "second"}}
	v.Version.Spec.Plans["deploy"] = kudo.Plan{Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{sample.Step("first"), sample.Step("second")}}}}
	if ran, exists := v.Instance.Status.PlanStatus["deploy"]; exists {
		ran.Phases = []kudo.PhaseStatus{{Name: "main", Steps: []kudo.StepStatus{
			{Name: "first", Status: kudo.Complete, Tasks: []kudo.TaskStatus{{Name: "first", Status: kudo.Complete, Rendered: "digest"}}},
			{Name: "second", Status: kudo.FatalError, Tasks: []kudo.TaskStatus{{Name: "second", Status: kudo.FatalError}}},
		}}}
		v.Instance.Status.PlanStatus["deploy"] = ran
	}
	v.Instance.Spec.OperatorVersion.Name = "kafka-3.9.0-1.0.0"
	return v
}

func TestAReturnedVersionIsTriedAgain(t *testing.T) {
	back := resumable(kudo.Complete, func(i *kudo.Instance) {
		i.Status.Returned = &kudo.Return{From: "2", To: "1", Plan: "deploy", Execution: "failed"}
	})
	got, err := Resume(back, "", "new", nil)
	if want := (kudo.PlanExecution{PlanName: "deploy", UID: "new", Resume: "failed"}); err != nil || got.Spec.PlanExecution != want {
		t.Errorf("requested %+v, error %v", got.Spec.PlanExecution, err)
	}
	if diff := cmp.Diff([]string{"main/first", "main/second"}, got.Steps); diff != "" || len(got.Warnings) > 0 {
		t.Errorf("(-want +got):\n%s\nwarnings %q", diff, got.Warnings)
	}
	if _, err := Resume(back, "backup", "new", nil); err == nil {
		t.Error("another plan is resumed")
	}
	back = resumable(kudo.FatalError, func(i *kudo.Instance) { i.Status.Returned = back.Instance.Status.Returned })
	back.Instance.Spec.OperatorVersion.Name = "kafka-4.0.0"
	if got, err := Resume(back, "", "new", nil); err != nil || got.Spec.PlanExecution.Resume != "ran" || len(got.Warnings) > 0 {
		t.Errorf("a failed return is not resumed: %+v, %v, %q", got.Spec.PlanExecution, err, got.Warnings)
	}
}

func TestResume(t *testing.T) {
	const runs = `run the whole plan with 'kubectl addon plan run kafka deploy --cluster cluster1'`
	const at = `Instance "kafka" on cluster "cluster1"`
	for sentence, c := range map[string]struct {
		view progress.View
		plan string
		err  string
	}{
		"a failed plan":          {view: resumable(kudo.FatalError)},
		"a failed plan, by name": {view: resumable(kudo.FatalError), plan: "deploy"},
		"another plan":           {view: resumable(kudo.FatalError), plan: "backup", err: `plan "backup" of ` + at + ` cannot be resumed: plan "deploy" has run since; run the whole plan with 'kubectl addon plan run kafka backup --cluster cluster1'`},
		"a complete plan":        {view: resumable(kudo.Complete), err: `nothing to resume: plan "deploy" of ` + at + " is complete; " + runs},
		"a running plan":         {view: resumable(kudo.InProgress), err: `plan "deploy" of ` + at + ` is running; wait for its end with 'kubectl addon plan wait kafka --cluster cluster1'`},
		"no plan":                {view: resumable(kudo.FatalError, func(i *kudo.Instance) { i.Status.Execution = nil }), err: "nothing to resume: no plan of " + at + " has run yet"},
		"another version": {view: resumable(kudo.FatalError, func(i *kudo.Instance) { i.Status.Execution.OperatorVersion.Name = "older" }),
			err: `plan "deploy" of ` + at + ` cannot be resumed: its OperatorVersion has changed since, from "older" to "kafka-3.9.0-1.0.0"; ` + runs},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := Resume(c.view, c.plan, "new", nil)
			if c.err != "" {
				if diff := cmp.Diff(c.err, fmt.Sprint(err)); diff != "" {
					t.Error(diff)
				}
				return
			}
			want := kudo.PlanExecution{PlanName: "deploy", UID: "new", Resume: "ran"}
			if err != nil || got.Spec.PlanExecution != want {
				t.Errorf("requested %+v, error %v", got.Spec.PlanExecution, err)
			}
			if diff := cmp.Diff([][]string{{"main/first"}, nil, {"main/second"}}, [][]string{got.Skipped, got.Reruns, got.Steps}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
