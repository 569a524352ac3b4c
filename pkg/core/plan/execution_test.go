package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
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

func TestEarlyTasks(t *testing.T) {
	for name, test := range map[string]struct {
		kinds    []string // of the tasks of three serial steps
		outcomes []kudo.ExecutionStatus
		early    bool
	}{
		"nothing was waited for":                       {[]string{"Apply", "Apply", "Pipe"}, []kudo.ExecutionStatus{kudo.Complete}, true},
		"the second step may run ahead as well":        {[]string{"Apply", "Delete", "Apply"}, []kudo.ExecutionStatus{kudo.Complete, kudo.Complete}, true},
		"an enabled feature":                           {[]string{"Toggle", "Toggle", "Apply"}, []kudo.ExecutionStatus{kudo.Complete}, true},
		"a task that does nothing":                     {[]string{"Dummy", "Apply", "Apply"}, []kudo.ExecutionStatus{kudo.Complete}, true},
		"objects are not healthy yet":                  {[]string{"Apply", "Apply", "Apply"}, []kudo.ExecutionStatus{kudo.InProgress}, false},
		"a failed task":                                {[]string{"Apply", "Apply", "Apply"}, []kudo.ExecutionStatus{kudo.Error}, false},
		"a plan that has ended":                        {[]string{"Apply", "Apply", "Apply"}, []kudo.ExecutionStatus{kudo.FatalError}, false},
		"a complete plan":                              {[]string{"Apply", "Apply", "Apply"}, []kudo.ExecutionStatus{kudo.Complete, kudo.Complete, kudo.Complete}, false},
		"a pod that produced files has to be recorded": {[]string{"Pipe", "Apply", "Apply"}, []kudo.ExecutionStatus{kudo.Complete}, false},
		"before a pod that produces files":             {[]string{"Apply", "Pipe", "Apply"}, []kudo.ExecutionStatus{kudo.Complete}, false},
		"a child is requested with the step before":    {[]string{"Apply", "KudoOperator", "Apply"}, []kudo.ExecutionStatus{kudo.Complete}, true},
		"while a child is waited for":                  {[]string{"Apply", "KudoOperator", "Apply"}, []kudo.ExecutionStatus{kudo.Complete, kudo.InProgress}, false},
		"a child has to be recorded":                   {[]string{"KudoOperator", "Apply", "Apply"}, []kudo.ExecutionStatus{kudo.Complete}, false},
		"a child is requested with the child before":   {[]string{"KudoOperator", "KudoOperator", "Apply"}, []kudo.ExecutionStatus{kudo.Complete}, true},
		"a child that is complete at once as well":     {[]string{"KudoOperator", "KudoOperator", "KudoOperator"}, []kudo.ExecutionStatus{kudo.Complete, kudo.Complete}, true},
		"two children have to be recorded":             {[]string{"KudoOperator", "KudoOperator", "Apply"}, []kudo.ExecutionStatus{kudo.Complete, kudo.Complete}, false},
		"a task that does nothing, after a child":      {[]string{"KudoOperator", "Dummy", "Apply"}, []kudo.ExecutionStatus{kudo.Complete}, false},
		"before a task that cannot run":                {[]string{"Apply", "Unknown", "Apply"}, []kudo.ExecutionStatus{kudo.Complete}, false},
	} {
		t.Run(name, func(t *testing.T) {
			spec, _ := threeSteps(kudo.Pending)
			version := &kudo.OperatorVersionSpec{
				Plans:      map[string]kudo.Plan{"deploy": spec},
				Parameters: []kudo.Parameter{{Name: "ON", Type: kudo.BooleanType, Default: ptr.To("true")}},
			}
			for i, kind := range test.kinds {
				task := kudo.Task{Name: []string{"one", "two", "three"}[i], Kind: kind}
				task.Spec.Parameter = "ON"
				version.Tasks = append(version.Tasks, task)
			}
			status := kudo.InstanceStatus{
				Execution:  &kudo.Execution{UID: "x", Plan: "deploy"},
				PlanStatus: map[string]kudo.PlanStatus{"deploy": plan.Begin("deploy", spec, "x", noon)},
			}
			before := *status.DeepCopy()
			var got []plan.Task
			for step, outcome := range test.outcomes {
				outcomes := map[plan.Task]plan.Outcome{{Step: step}: {Status: outcome}}
				status = observationOf(version).Advance(status, outcomes)
				got = plan.EarlyTasks(version, status, outcomes)
			}
			var want []plan.Task
			if test.early {
				want = []plan.Task{{Step: len(test.outcomes)}}
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before.PlanStatus["deploy"].Status, kudo.Pending); diff != "" {
				t.Errorf("the input was changed: %s", diff)
			}
		})
	}
}

func TestAheadWaitsForAllParallelTasks(t *testing.T) {
	spec := kudo.Plan{Phases: []kudo.Phase{
		{Name: "p", Strategy: kudo.Parallel, Steps: []kudo.Step{{Name: "a", Tasks: []string{"a"}}, {Name: "b", Tasks: []string{"b"}}}},
		{Name: "q", Steps: []kudo.Step{{Name: "c", Tasks: []string{"a"}}}},
	}}
	version := &kudo.OperatorVersionSpec{
		Plans: map[string]kudo.Plan{"deploy": spec},
		Tasks: []kudo.Task{{Name: "a", Kind: kudo.TaskApply}, {Name: "b", Kind: kudo.TaskApply}},
	}
	status := kudo.InstanceStatus{
		Execution:  &kudo.Execution{UID: "x", Plan: "deploy"},
		PlanStatus: map[string]kudo.PlanStatus{"deploy": plan.Begin("deploy", spec, "x", noon)},
	}
	done := plan.Outcome{Status: kudo.Complete}
	skipped := map[plan.Task]plan.Outcome{{Step: 0}: done} // the other one has failed recently
	retried := observationOf(version).Advance(status, map[plan.Task]plan.Outcome{{Step: 1}: {Status: kudo.Error}})
	if got := plan.EarlyTasks(version, observationOf(version).Advance(retried, skipped), skipped); len(got) > 0 {
		t.Errorf("a task that failed before is run ahead: %v", got)
	}
	both := map[plan.Task]plan.Outcome{{Step: 0}: done, {Step: 1}: done}
	if diff := cmp.Diff([]plan.Task{{Phase: 1}}, plan.EarlyTasks(version, observationOf(version).Advance(status, both), both)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// observationOf returns an observation of a running version at noon.
func observationOf(running *kudo.OperatorVersionSpec) plan.Observation {
	return plan.Observation{Running: running, Now: noon}
}
