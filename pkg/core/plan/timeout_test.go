package plan_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

func within(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// twoSteps returns a plan of two phases. The first has two steps, each with one task.
func twoSteps(change func(*kudo.Plan)) kudo.Plan {
	step := func(name string) kudo.Step { return kudo.Step{Name: name, Tasks: []string{"t"}} }
	spec := kudo.Plan{Phases: []kudo.Phase{
		{Name: "one", Steps: []kudo.Step{step("a"), step("b")}},
		{Name: "two", Steps: []kudo.Step{step("c")}},
	}}
	change(&spec)
	return spec
}

func TestTimeouts(t *testing.T) {
	const waiting = `phase "one": step "a": task "t": waits for c`
	plans := map[string]func(*kudo.Plan){
		"none":     func(*kudo.Plan) {},
		"plan":     func(p *kudo.Plan) { p.Timeout = within(5 * time.Minute) },
		"phase":    func(p *kudo.Plan) { p.Phases[0].Timeout = within(5 * time.Minute) },
		"step":     func(p *kudo.Plan) { p.Phases[0].Steps[0].Timeout = within(5 * time.Minute) },
		"later":    func(p *kudo.Plan) { p.Phases[0].Steps[1].Timeout = within(time.Second) },
		"nothing":  func(p *kudo.Plan) { p.Timeout = within(0) },
		"parallel": func(p *kudo.Plan) { p.Strategy, p.Phases[1].Timeout = kudo.Parallel, within(5*time.Minute) },
	}
	for name, test := range map[string]struct {
		of      string
		outcome plan.Outcome // of the first task
		after   time.Duration
		want    kudo.ExecutionStatus
		message string
	}{
		"without a timeout, a plan waits for ever": {
			of: "none", outcome: waits, after: 1000 * time.Hour, want: kudo.InProgress, message: waiting},
		"a timeout of nothing is none": {
			of: "nothing", outcome: waits, after: 1000 * time.Hour, want: kudo.InProgress, message: waiting},
		"a plan has time until then, to the second": {
			of: "plan", outcome: waits, after: 5 * time.Minute, want: kudo.InProgress, message: waiting},
		"a plan that runs longer has failed, and says what it waited for": {
			of: "plan", outcome: waits, after: 5*time.Minute + time.Second, want: kudo.FatalError,
			message: `timed out after 5m0s: ` + waiting},
		"so has a phase": {
			of: "phase", outcome: waits, after: 5*time.Minute + time.Second, want: kudo.FatalError,
			message: `phase "one": timed out after 5m0s: step "a": task "t": waits for c`},
		"and a step": {
			of: "step", outcome: waits, after: 5*time.Minute + time.Second, want: kudo.FatalError,
			message: `phase "one": step "a": timed out after 5m0s: task "t": waits for c`},
		"one that is tried again and again has, too": {
			of: "step", outcome: plan.Outcome{Status: kudo.Error, Message: "is refused"}, after: time.Hour, want: kudo.FatalError,
			message: `phase "one": step "a": timed out after 5m0s: task "t": is refused`},
		"a permanent failure keeps its own message": {
			of: "step", outcome: plan.Outcome{Status: kudo.FatalError, Message: "is broken"}, after: time.Hour, want: kudo.FatalError,
			message: `phase "one": step "a": task "t": is broken`},
		"a step that is found complete is complete, however late": {
			of: "step", outcome: plan.Outcome{Status: kudo.Complete}, after: time.Hour, want: kudo.InProgress},
		"which does not give its plan more time": {
			of: "plan", outcome: plan.Outcome{Status: kudo.Complete}, after: time.Hour, want: kudo.FatalError, message: "timed out after 5m0s"},
		"the timeout of a step begins when the step starts": {
			of: "later", outcome: plan.Outcome{Status: kudo.Complete}, after: time.Hour, want: kudo.InProgress},
		"what runs side by side has its time from the start": {
			of: "parallel", outcome: waits, after: time.Hour, want: kudo.FatalError, message: `phase "two": timed out after 5m0s`},
	} {
		t.Run(name, func(t *testing.T) {
			spec := twoSteps(plans[test.of])
			status := plan.Begin("deploy", spec, "x", noon)
			got := plan.Record(spec, status, map[plan.Task]plan.Outcome{{}: test.outcome}, noon.Add(test.after))
			if got.Status != test.want || got.Message != test.message {
				t.Errorf("want %s %q, got %s %q", test.want, test.message, got.Status, got.Message)
			}
		})
	}
}

var waits = plan.Outcome{Status: kudo.InProgress, Message: "waits for c"}

func TestStartedTimestampIsWhenItsTurnCame(t *testing.T) {
	spec := twoSteps(func(*kudo.Plan) {})
	status := plan.Begin("deploy", spec, "x", noon.Add(300*time.Millisecond))
	times := func() []string {
		var found []string
		for _, at := range []*metav1.Time{status.StartedTimestamp, status.Phases[0].StartedTimestamp, status.Phases[0].Steps[0].StartedTimestamp,
			status.Phases[0].Steps[1].StartedTimestamp, status.Phases[1].StartedTimestamp} {
			if at == nil {
				found = append(found, "")
				continue
			}
			found = append(found, at.Format("15:04:05.0"))
		}
		return found
	}
	if diff := cmp.Diff([]string{"12:00:00.0", "12:00:00.0", "12:00:00.0", "", ""}, times()); diff != "" {
		t.Errorf("at the start (-want +got):\n%s", diff)
	}
	status = plan.Record(spec, status, map[plan.Task]plan.Outcome{{}: {Status: kudo.Complete}}, noon.Add(time.Minute))
	if diff := cmp.Diff([]string{"12:00:00.0", "12:00:00.0", "12:00:00.0", "12:01:00.0", ""}, times()); diff != "" {
		t.Errorf("when the first step is complete (-want +got):\n%s", diff)
	}
}

// A pass at every deadline ends everything that would wait forever, and no execution ends before its deadline.
func TestADeadlineEndsWhatNeverComes(t *testing.T) {
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 3))
		spec := randomPlan(random)
		spec.Timeout = within(time.Duration(1+random.IntN(1000)) * time.Millisecond)
		for p := range spec.Phases {
			spec.Phases[p].Timeout = within(time.Duration(random.IntN(3)) * time.Second)
			for s := range spec.Phases[p].Steps {
				spec.Phases[p].Steps[s].Timeout = within(time.Duration(random.IntN(3)) * time.Second)
			}
		}
		now := noon.Add(time.Duration(random.IntN(1000)) * time.Millisecond)
		status := plan.Begin("deploy", spec, "x", now)
		if status.Status == kudo.Complete {
			continue
		}
		outcomes := map[plan.Task]plan.Outcome{}
		for _, task := range plan.Next(spec, status) {
			outcomes[task] = waits
		}
		deadline := plan.Deadline(spec, status)
		early := plan.Record(spec, status, outcomes, deadline.Add(-time.Nanosecond))
		if early.Status.IsTerminal() || !plan.Deadline(spec, early).Equal(deadline) {
			t.Fatalf("seed %d: it is %s before its deadline %s, and then has %s", seed, early.Status, deadline, plan.Deadline(spec, early))
		}
		late := plan.Record(spec, early, nil, deadline)
		if late.Status != kudo.FatalError || !strings.Contains(late.Message, "timed out after") {
			t.Fatalf("seed %d: at its deadline it is %s %q", seed, late.Status, late.Message)
		}
		if left := unfinishedParts(late); len(left) > 0 {
			t.Fatalf("seed %d: it has ended, and not: %v", seed, left)
		}
		if at := plan.Deadline(spec, late); !at.IsZero() {
			t.Fatalf("seed %d: it has ended, and yet has a deadline at %s", seed, at)
		}
		if deadline.Sub(now) < time.Millisecond {
			t.Fatalf("seed %d: the deadline is %s after the start", seed, deadline.Sub(now))
		}
	}
}
