package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// states formats the states of an execution's parts, one in a line.
func states(status kudo.PlanStatus) []string {
	line := func(depth int, name string, state kudo.ExecutionStatus, message string) string {
		return strings.TrimSuffix(fmt.Sprintf("%s%s %s: %s", strings.Repeat(" ", depth), name, state, message), ": ")
	}
	lines := []string{line(0, "plan", status.Status, status.Message)}
	for _, phase := range status.Phases {
		lines = append(lines, line(1, phase.Name, phase.Status, phase.Message))
		for _, step := range phase.Steps {
			lines = append(lines, line(2, step.Name, step.Status, step.Message))
			for _, task := range step.Tasks {
				lines = append(lines, line(3, task.Name, task.Status, task.Message))
			}
		}
	}
	return lines
}

// unfinishedParts returns the parts of a plan in FATAL_ERROR that still seem to run, and the plan itself if no task has ended with it.
func unfinishedParts(status kudo.PlanStatus) []string {
	if status.Status != kudo.FatalError {
		return nil
	}
	var found []string
	failed, tasks := false, false
	for _, line := range states(status) {
		state := strings.Fields(strings.TrimSuffix(line, ":"))[1]
		if state = strings.TrimSuffix(state, ":"); state == string(kudo.InProgress) || state == string(kudo.Error) {
			found = append(found, line)
		}
		isTask := strings.HasPrefix(line, "   ")
		failed, tasks = failed || isTask && state == string(kudo.FatalError), tasks || isTask && state != string(kudo.Complete)
	}
	if tasks && !failed {
		found = append(found, "no task has ended with the plan")
	}
	return found
}

func TestEveryLevelEndsWithThePlan(t *testing.T) {
	spec := kudo.Plan{Phases: []kudo.Phase{
		{Name: "one", Steps: []kudo.Step{{Name: "a", Tasks: []string{"t", "u"}}, {Name: "b", Tasks: []string{"v"}}}},
		{Name: "two", Steps: []kudo.Step{{Name: "c", Tasks: []string{"w"}}}},
	}}
	parallel := *spec.DeepCopy()
	parallel.Strategy, parallel.Phases[0].Strategy = kudo.Parallel, kudo.Parallel
	limited := *spec.DeepCopy()
	limited.Phases[0].Steps[0].Timeout = within(time.Minute)
	late := *spec.DeepCopy()
	late.Timeout = within(time.Minute)

	outcome := func(status kudo.ExecutionStatus, message string) plan.Outcome {
		return plan.Outcome{Status: status, Message: message}
	}
	done := outcome(kudo.Complete, "")
	cancel := func(status kudo.PlanStatus) kudo.PlanStatus { return plan.Cancel(status, noon) }
	pass := func(spec kudo.Plan, at time.Duration, outcomes map[plan.Task]plan.Outcome) func(kudo.PlanStatus) kudo.PlanStatus {
		return func(status kudo.PlanStatus) kudo.PlanStatus { return plan.Record(spec, status, outcomes, noon.Add(at)) }
	}
	for name, test := range map[string]struct {
		spec   kudo.Plan
		passes []func(kudo.PlanStatus) kudo.PlanStatus
		want   []string
	}{
		"a task that waits is cancelled with its plan": {spec,
			[]func(kudo.PlanStatus) kudo.PlanStatus{pass(spec, 0, map[plan.Task]plan.Outcome{{}: waits}), cancel},
			[]string{
				"plan FATAL_ERROR: cancelled",
				` one FATAL_ERROR: step "a": task "t": cancelled: waits for c`,
				`  a FATAL_ERROR: task "t": cancelled: waits for c`, "   t FATAL_ERROR: cancelled: waits for c", "   u PENDING",
				"  b PENDING", "   v PENDING", " two PENDING", "  c PENDING", "   w PENDING",
			}},
		"so is one that is retried": {spec,
			[]func(kudo.PlanStatus) kudo.PlanStatus{pass(spec, 0, map[plan.Task]plan.Outcome{{}: outcome(kudo.Error, "is refused")}), cancel},
			[]string{
				"plan FATAL_ERROR: cancelled",
				` one FATAL_ERROR: step "a": task "t": cancelled: is refused`,
				`  a FATAL_ERROR: task "t": cancelled: is refused`, "   t FATAL_ERROR: cancelled: is refused", "   u PENDING",
				"  b PENDING", "   v PENDING", " two PENDING", "  c PENDING", "   w PENDING",
			}},
		"a plan that is cancelled between two tasks ends in the next one": {spec,
			[]func(kudo.PlanStatus) kudo.PlanStatus{pass(spec, 0, map[plan.Task]plan.Outcome{{}: done}), cancel},
			[]string{
				"plan FATAL_ERROR: cancelled",
				` one FATAL_ERROR: step "a": task "u": cancelled`,
				`  a FATAL_ERROR: task "u": cancelled`, "   t COMPLETE", "   u FATAL_ERROR: cancelled",
				"  b PENDING", "   v PENDING", " two PENDING", "  c PENDING", "   w PENDING",
			}},
		"a plan that is cancelled before its first task ends in it": {spec,
			[]func(kudo.PlanStatus) kudo.PlanStatus{cancel},
			[]string{
				"plan FATAL_ERROR: cancelled",
				` one FATAL_ERROR: step "a": task "t": cancelled`,
				`  a FATAL_ERROR: task "t": cancelled`, "   t FATAL_ERROR: cancelled", "   u PENDING",
				"  b PENDING", "   v PENDING", " two PENDING", "  c PENDING", "   w PENDING",
			}},
		"a permanent failure stops what runs beside it, and says so itself": {parallel,
			[]func(kudo.PlanStatus) kudo.PlanStatus{pass(parallel, 0, map[plan.Task]plan.Outcome{
				{}: waits, {Step: 1}: outcome(kudo.FatalError, "is broken"), {Phase: 1}: outcome(kudo.Error, "is refused"),
			})},
			[]string{
				`plan FATAL_ERROR: phase "one": step "b": task "v": is broken`,
				` one FATAL_ERROR: step "b": task "v": is broken`,
				`  a FATAL_ERROR: task "t": stopped: waits for c`, "   t FATAL_ERROR: stopped: waits for c", "   u PENDING",
				`  b FATAL_ERROR: task "v": is broken`, "   v FATAL_ERROR: is broken",
				` two FATAL_ERROR: step "c": task "w": stopped: is refused`,
				`  c FATAL_ERROR: task "w": stopped: is refused`, "   w FATAL_ERROR: stopped: is refused",
			}},
		"the timeout of a step ends its task": {limited,
			[]func(kudo.PlanStatus) kudo.PlanStatus{pass(limited, time.Hour, map[plan.Task]plan.Outcome{{}: waits})},
			[]string{
				`plan FATAL_ERROR: phase "one": step "a": timed out after 1m0s: task "t": waits for c`,
				` one FATAL_ERROR: step "a": timed out after 1m0s: task "t": waits for c`,
				`  a FATAL_ERROR: timed out after 1m0s: task "t": waits for c`, "   t FATAL_ERROR: stopped: waits for c", "   u PENDING",
				"  b PENDING", "   v PENDING", " two PENDING", "  c PENDING", "   w PENDING",
			}},
		"the timeout of a plan ends what runs of it": {late,
			[]func(kudo.PlanStatus) kudo.PlanStatus{pass(late, 0, map[plan.Task]plan.Outcome{{}: done}), pass(late, time.Hour, nil)},
			[]string{
				"plan FATAL_ERROR: timed out after 1m0s",
				` one FATAL_ERROR: step "a": task "u": stopped`,
				`  a FATAL_ERROR: task "u": stopped`, "   t COMPLETE", "   u FATAL_ERROR: stopped",
				"  b PENDING", "   v PENDING", " two PENDING", "  c PENDING", "   w PENDING",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			status := plan.Begin("deploy", test.spec, "x", noon)
			for _, next := range test.passes {
				status = next(status)
			}
			if diff := cmp.Diff(test.want, states(status)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if left := unfinishedParts(status); len(left) > 0 {
				t.Errorf("not ended: %v", left)
			}
			if again := plan.Record(test.spec, status, map[plan.Task]plan.Outcome{{}: done}, noon.Add(time.Hour)); !cmp.Equal(status, again) {
				t.Errorf("it continues:\n%s", cmp.Diff(status, again))
			}
		})
	}
}
