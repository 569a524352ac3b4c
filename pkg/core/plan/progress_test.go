package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// world simulates a cluster that runs tasks: each takes some passes, and may fail.
type world struct {
	random  *rand.Rand
	left    map[plan.Task]int
	fails   map[plan.Task]kudo.ExecutionStatus
	started []plan.Task
}

func (w *world) carryOut(task plan.Task) plan.Outcome {
	left, seen := w.left[task]
	if !seen {
		w.started = append(w.started, task)
		left = w.random.IntN(3)
	}
	if status, fails := w.fails[task]; fails {
		return plan.Outcome{Status: status, Message: "broken"}
	}
	w.left[task] = left - 1
	if left > 0 {
		return plan.Outcome{Status: kudo.InProgress, Message: fmt.Sprintf("%d left", left)}
	}
	return plan.Outcome{Status: kudo.Complete}
}

// play runs a plan to its end, or until nothing changes any more. Only the status is kept between two passes: every pass is a restart.
func play(t *testing.T, spec kudo.Plan, w *world) kudo.PlanStatus {
	t.Helper()
	status := plan.Begin("deploy", spec, "x", noon)
	still := 0
	for pass := 0; !status.Status.IsTerminal() && still < 5; pass++ {
		if pass > 10_000 {
			t.Fatal("the plan does not settle")
		}
		tasks := plan.Next(spec, status)
		if len(tasks) == 0 {
			t.Fatalf("nothing is left to do, and yet the plan is %s", status.Status)
		}
		checkTurns(t, spec, status, tasks)
		outcomes := map[plan.Task]plan.Outcome{}
		for _, task := range tasks {
			outcomes[task] = w.carryOut(task)
		}
		before := *status.DeepCopy()
		next := plan.Record(spec, status, outcomes, noon)
		if !reflect.DeepEqual(before, status) {
			t.Fatalf("Record changed its input:\n%s", cmp.Diff(before, status))
		}
		again := plan.Record(spec, next, outcomes, noon.Add(time.Hour))
		if !reflect.DeepEqual(next, again) {
			t.Fatalf("Record is not idempotent:\n%s", cmp.Diff(next, again))
		}
		checkKept(t, before, next)
		still++
		if !reflect.DeepEqual(before, next) {
			still = 0
		}
		status = next
	}
	return status
}

// checkTurns asserts serial order: no task is next while a task before it in serial order is incomplete.
func checkTurns(t *testing.T, spec kudo.Plan, status kudo.PlanStatus, tasks []plan.Task) {
	t.Helper()
	for _, at := range tasks {
		for p := range at.Phase {
			if spec.Strategy != kudo.Parallel && status.Phases[p].Status != kudo.Complete {
				t.Fatalf("task %v has its turn before phase %d is complete", at, p)
			}
		}
		for s := range at.Step {
			if spec.Phases[at.Phase].Strategy != kudo.Parallel && status.Phases[at.Phase].Steps[s].Status != kudo.Complete {
				t.Fatalf("task %v has its turn before step %d is complete", at, s)
			}
		}
		for k := range at.Task {
			if status.Phases[at.Phase].Steps[at.Step].Tasks[k].Status != kudo.Complete {
				t.Fatalf("task %v has its turn before task %d is complete", at, k)
			}
		}
		if status.Phases[at.Phase].Steps[at.Step].Tasks[at.Task].Status == kudo.Complete {
			t.Fatalf("task %v has its turn again", at)
		}
	}
}

// checkKept asserts that complete parts stay complete.
func checkKept(t *testing.T, before, after kudo.PlanStatus) {
	t.Helper()
	for p, phase := range before.Phases {
		for s, step := range phase.Steps {
			for k, task := range step.Tasks {
				if task.Status == kudo.Complete && after.Phases[p].Steps[s].Tasks[k].Status != kudo.Complete {
					t.Fatalf("task %d/%d/%d was complete and is %s", p, s, k, after.Phases[p].Steps[s].Tasks[k].Status)
				}
			}
		}
	}
}

// randomPlan returns a plan of random shape, including empty phases and steps.
func randomPlan(random *rand.Rand) kudo.Plan {
	strategy := func() kudo.Ordering { return []kudo.Ordering{"", kudo.Serial, kudo.Parallel}[random.IntN(3)] }
	spec := kudo.Plan{Strategy: strategy()}
	for p := range random.IntN(4) {
		phase := kudo.Phase{Name: fmt.Sprint("p", p), Strategy: strategy()}
		for s := range random.IntN(4) {
			step := kudo.Step{Name: fmt.Sprint("s", s)}
			for k := range random.IntN(3) {
				step.Tasks = append(step.Tasks, fmt.Sprint("t", k))
			}
			phase.Steps = append(phase.Steps, step)
		}
		spec.Phases = append(spec.Phases, phase)
	}
	return spec
}

func TestEveryPlanIsCarriedOutToItsEndEachTaskOnce(t *testing.T) {
	for seed := range uint64(500) {
		w := &world{random: rand.New(rand.NewPCG(seed, 1)), left: map[plan.Task]int{}}
		spec := randomPlan(w.random)
		status := play(t, spec, w)
		if status.Status != kudo.Complete || status.Message != "" {
			t.Fatalf("seed %d: the plan ends as %s %q", seed, status.Status, status.Message)
		}
		want := 0
		for _, phase := range spec.Phases {
			for _, step := range phase.Steps {
				want += len(step.Tasks)
			}
		}
		if len(w.started) != want {
			t.Fatalf("seed %d: %d tasks were started, of %d", seed, len(w.started), want)
		}
	}
}

func TestAPendingTaskSaysWhatMustBeGoneBefore(t *testing.T) {
	spec := kudo.Plan{Phases: []kudo.Phase{{Name: "p", Steps: []kudo.Step{{Name: "s", Tasks: []string{"a", "b"}}}}}}
	status := plan.Begin("deploy", spec, "uid", time.Unix(0, 0))
	status = plan.Record(spec, status, map[plan.Task]plan.Outcome{{}: {Status: kudo.Complete}}, time.Unix(1, 0))
	status = plan.Record(spec, status, map[plan.Task]plan.Outcome{{Task: 1}: {Status: kudo.Pending, Message: "a Job goes"}}, time.Unix(2, 0))
	want := `phase "p": step "s": task "b": a Job goes`
	if status.Status != kudo.InProgress || status.Message != want {
		t.Errorf("got %s %q, want %s %q", status.Status, status.Message, kudo.InProgress, want)
	}
	if diff := cmp.Diff([]plan.Task{{Task: 1}}, plan.Next(spec, status)); diff != "" {
		t.Errorf("its turn lasts (-want +got)\n%s", diff)
	}
}

func TestAFailureStopsWhatComesAfterIt(t *testing.T) {
	for seed := range uint64(500) {
		for _, failure := range []kudo.ExecutionStatus{kudo.Error, kudo.FatalError} {
			w := &world{random: rand.New(rand.NewPCG(seed, 2)), left: map[plan.Task]int{}}
			spec := randomPlan(w.random)
			broken, found := firstTask(spec)
			if !found {
				continue
			}
			w.fails = map[plan.Task]kudo.ExecutionStatus{broken: failure}
			status := play(t, spec, w)
			if status.Status != failure {
				t.Fatalf("seed %d: the plan ends as %s, want %s", seed, status.Status, failure)
			}
			place := spec.Phases[broken.Phase]
			want := fmt.Sprintf("phase %q: step %q: task %q: broken", place.Name, place.Steps[broken.Step].Name, "t0")
			if status.Message != want {
				t.Fatalf("seed %d: message %q, want %q", seed, status.Message, want)
			}
			if failure == kudo.FatalError && len(plan.Next(spec, status)) > 0 {
				t.Fatalf("seed %d: a plan that ended goes on", seed)
			}
			if spec.Strategy == kudo.Parallel {
				continue
			}
			for _, task := range w.started {
				if task.Phase > broken.Phase {
					t.Fatalf("seed %d: task %v was started after %v had failed", seed, task, broken)
				}
			}
		}
	}
}

func firstTask(spec kudo.Plan) (plan.Task, bool) {
	for p, phase := range spec.Phases {
		for s, step := range phase.Steps {
			if len(step.Tasks) > 0 {
				return plan.Task{Phase: p, Step: s}, true
			}
		}
	}
	return plan.Task{}, false
}

func TestParallelStepsHaveTheirTurnsTogether(t *testing.T) {
	step := func(name string) kudo.Step { return kudo.Step{Name: name, Tasks: []string{"a", "b"}} }
	spec := kudo.Plan{Strategy: kudo.Parallel, Phases: []kudo.Phase{
		{Name: "one", Strategy: kudo.Parallel, Steps: []kudo.Step{step("x"), step("y")}},
		{Name: "two", Steps: []kudo.Step{step("x"), step("y")}},
	}}
	status := plan.Begin("deploy", spec, "x", noon)
	want := []plan.Task{{Phase: 0, Step: 0}, {Phase: 0, Step: 1}, {Phase: 1, Step: 0}}
	if diff := cmp.Diff(want, plan.Next(spec, status)); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func TestTheTimestampMovesOnlyWithTheState(t *testing.T) {
	spec := kudo.Plan{Phases: []kudo.Phase{{Name: "p", Steps: []kudo.Step{{Name: "s", Tasks: []string{"t"}}}}}}
	status := plan.Begin("deploy", spec, "x", noon)
	waiting := map[plan.Task]plan.Outcome{{}: {Status: kudo.InProgress, Message: "waits"}}
	status = plan.Record(spec, status, waiting, noon.Add(time.Minute))
	status = plan.Record(spec, status, waiting, noon.Add(time.Hour))
	if got := status.LastUpdatedTimestamp.Time; !got.Equal(noon.Add(time.Minute)) {
		t.Errorf("lastUpdatedTimestamp is %s", got)
	}
}

func TestAnEmptyPlanIsCompleteAtOnce(t *testing.T) {
	if status := plan.Begin("deploy", kudo.Plan{}, "x", noon); status.Status != kudo.Complete {
		t.Errorf("it is %s", status.Status)
	}
}

func TestACancelledPlanHasEnded(t *testing.T) {
	spec := kudo.Plan{Phases: []kudo.Phase{{Name: "p", Steps: []kudo.Step{{Name: "s", Tasks: []string{"t"}}}}}}
	status := plan.Cancel(plan.Begin("deploy", spec, "x", noon), noon)
	if status.Status != kudo.FatalError || len(plan.Next(spec, status)) != 0 {
		t.Errorf("it is %s, and %v would go on", status.Status, plan.Next(spec, status))
	}
}

func TestWhatHasEndedStaysAsItIs(t *testing.T) {
	spec := kudo.Plan{Phases: []kudo.Phase{{Name: "p", Steps: []kudo.Step{{Name: "s", Tasks: []string{"t", "u"}}}}}}
	record := func(status kudo.PlanStatus, outcome kudo.ExecutionStatus) kudo.PlanStatus {
		return plan.Record(spec, status, map[plan.Task]plan.Outcome{{}: {Status: outcome}}, noon.Add(time.Hour))
	}
	started := plan.Begin("deploy", spec, "x", noon)
	for name, ended := range map[string]kudo.PlanStatus{
		"a plan that was cancelled": plan.Cancel(started, noon),
		"a plan that has failed":    record(started, kudo.FatalError),
		"a task that is complete":   record(started, kudo.Complete),
	} {
		if diff := cmp.Diff(ended, record(ended, kudo.Error)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// FuzzNormalize normalizes arbitrary statuses and runs their executions to the end.
func FuzzNormalize(f *testing.F) {
	for seed := range uint64(30) {
		spec := randomPlan(rand.New(rand.NewPCG(seed, 1)))
		status := plan.Begin("deploy", spec, "x", noon)
		for range seed % 4 {
			outcomes := map[plan.Task]plan.Outcome{}
			for _, task := range plan.Next(spec, status) {
				outcomes[task] = plan.Outcome{Status: kudo.Complete}
			}
			status = plan.Record(spec, status, outcomes, noon)
		}
		encoded, err := json.Marshal(status)
		if err != nil {
			f.Fatal(err)
		}
		for other := range uint64(5) {
			f.Add(seed+other, string(encoded))
		}
	}
	for _, odd := range []string{`{}`, `{"uid":"x","status":"COMPLETE"}`, `{"uid":"x","status":"IN_PROGRESS","phases":[{},{},{"steps":[{},{}]}]}`} {
		f.Add(uint64(1), odd)
	}
	f.Fuzz(func(t *testing.T, seed uint64, encoded string) {
		var recorded kudo.PlanStatus
		if json.Unmarshal([]byte(encoded), &recorded) != nil {
			return
		}
		spec := randomPlan(rand.New(rand.NewPCG(seed, 1)))
		before := *recorded.DeepCopy()
		status := plan.Normalize("deploy", spec, recorded, "x", noon)
		if diff := cmp.Diff(before, recorded); diff != "" {
			t.Fatalf("Normalize changed its input:\n%s", diff)
		}
		if diff := cmp.Diff(status, plan.Normalize("deploy", spec, status, "x", noon.Add(time.Hour))); diff != "" {
			t.Fatalf("what fits is changed:\n%s", diff)
		}
		if ours := recorded.UID == "x" && recorded.Status.IsTerminal(); ours && status.Status != recorded.Status {
			t.Fatalf("what has ended as %s goes on as %s", recorded.Status, status.Status)
		}
		for pass := 0; !status.Status.IsTerminal(); pass++ {
			plan.Deadline(spec, status)
			outcomes := map[plan.Task]plan.Outcome{}
			for _, task := range plan.Next(spec, status) {
				outcomes[task] = plan.Outcome{Status: kudo.Complete}
			}
			if status = plan.Record(spec, status, outcomes, noon); pass > 1000 {
				t.Fatalf("it does not end: %+v", status)
			}
		}
	})
}

func TestAStatusOfAnotherShapeKeepsWhatIsRecordedUnderTheSameNames(t *testing.T) {
	step := func(name string, tasks ...string) kudo.Step { return kudo.Step{Name: name, Tasks: tasks} }
	phases := func(steps ...kudo.Step) kudo.Plan {
		return kudo.Plan{Phases: []kudo.Phase{{Name: "main", Steps: steps}}}
	}
	recorded := phases(step("one", "a"), step("two", "b"))
	started := plan.Begin("deploy", recorded, "x", noon)
	started = plan.Record(recorded, started, map[plan.Task]plan.Outcome{{}: {Status: kudo.Complete}}, noon)

	for name, c := range map[string]struct {
		spec   kudo.Plan
		uid    types.UID
		status kudo.ExecutionStatus
		next   []plan.Task
	}{
		"its own shape":               {recorded, "x", kudo.InProgress, []plan.Task{{Step: 1}}},
		"a step more at the end":      {phases(step("one", "a"), step("two", "b"), step("three", "c")), "x", kudo.InProgress, []plan.Task{{Step: 1}}},
		"a step more at the front":    {phases(step("zero", "z"), step("one", "a")), "x", kudo.InProgress, []plan.Task{{}}},
		"a task more in what is done": {phases(step("one", "a", "c"), step("two", "b")), "x", kudo.InProgress, []plan.Task{{Task: 1}}},
		"a step less":                 {phases(step("one", "a")), "x", kudo.Complete, nil},
		"nothing in common":           {phases(step("ten", "t")), "x", kudo.Pending, []plan.Task{{}}},
		"another execution's":         {recorded, "y", kudo.Pending, []plan.Task{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			status := plan.Normalize("deploy", c.spec, started, c.uid, noon)
			if status.Status != c.status || status.UID != c.uid {
				t.Errorf("want %s of %s, got %s of %s", c.status, c.uid, status.Status, status.UID)
			}
			if diff := cmp.Diff(c.next, plan.Next(c.spec, status)); diff != "" {
				t.Errorf("whose turn it is (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessagesAloneAreNoProgress(t *testing.T) {
	running := func(edit func(*kudo.InstanceStatus, *kudo.TaskStatus)) kudo.InstanceStatus {
		task := kudo.TaskStatus{Name: "server", Status: kudo.InProgress, Message: "0 of 2 replicas available"}
		status := kudo.InstanceStatus{Execution: &kudo.Execution{UID: "x", Plan: "deploy"}}
		edit(&status, &task)
		deploy := kudo.PlanStatus{Name: "deploy", UID: "x", Status: kudo.InProgress, Message: task.Message, LastUpdatedTimestamp: &metav1.Time{Time: noon}}
		deploy.Phases = []kudo.PhaseStatus{{Name: "main", Status: kudo.InProgress, Message: task.Message, Steps: []kudo.StepStatus{
			{Name: "first", Status: kudo.InProgress, Message: task.Message, Tasks: []kudo.TaskStatus{task}},
		}}}
		status.PlanStatus = map[string]kudo.PlanStatus{"deploy": deploy, "backup": {Name: "backup", Status: kudo.NeverRun}}
		status.Conditions = append(status.Conditions, plan.RunningCondition(deploy))
		return status
	}
	for name, c := range map[string]struct {
		change       func(*kudo.InstanceStatus, *kudo.TaskStatus)
		onlyMessages bool
	}{
		"nothing":              {func(*kudo.InstanceStatus, *kudo.TaskStatus) {}, true},
		"what is waited for":   {func(_ *kudo.InstanceStatus, t *kudo.TaskStatus) { t.Message = "1 of 2 replicas available" }, true},
		"the result of a task": {func(_ *kudo.InstanceStatus, t *kudo.TaskStatus) { t.Status = kudo.Complete }, false},
		"what is listed":       {func(s *kudo.InstanceStatus, _ *kudo.TaskStatus) { s.Inventory = []kudo.InventoryEntry{{Name: "a"}} }, false},
		"which execution runs": {func(s *kudo.InstanceStatus, _ *kudo.TaskStatus) { s.Execution.UID = "y" }, false},
		"another condition": {func(s *kudo.InstanceStatus, _ *kudo.TaskStatus) {
			s.Conditions = []metav1.Condition{{Type: "Resolved"}}
		}, false},
		"that nothing has run ever": {func(s *kudo.InstanceStatus, _ *kudo.TaskStatus) { s.Execution = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := running(func(*kudo.InstanceStatus, *kudo.TaskStatus) {}), running(c.change)
			untouched := after.DeepCopy()
			if onlyMessages := plan.OnlyMessagesDiffer(before, after); onlyMessages != c.onlyMessages {
				t.Errorf("want %v, got %v", c.onlyMessages, onlyMessages)
			}
			if diff := cmp.Diff(untouched, &after); diff != "" {
				t.Errorf("the input was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnExecutionWaitsOnceAllNextTasksAreObservedInProgress(t *testing.T) {
	first, second := plan.Task{Step: 0}, plan.Task{Step: 1}
	for name, test := range map[string]struct {
		outcomes map[plan.Task]plan.Outcome
		waits    bool
	}{
		"both are in progress":                     {map[plan.Task]plan.Outcome{first: {Status: kudo.InProgress}, second: {Status: kudo.InProgress}}, true},
		"one has not run yet":                      {map[plan.Task]plan.Outcome{first: {Status: kudo.InProgress}}, false},
		"one has failed and is retried":            {map[plan.Task]plan.Outcome{first: {Status: kudo.InProgress}, second: {Status: kudo.Error}}, false},
		"one waits for the inventory to be stored": {map[plan.Task]plan.Outcome{first: {Status: kudo.InProgress}, second: {Status: kudo.Pending}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.AllInProgress([]plan.Task{first, second}, test.outcomes); got != test.waits {
				t.Errorf("got %v", got)
			}
		})
	}
}
