package plans

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scenarios returns all scenarios.
func scenarios() []scenario { return []scenario{lifecycle(), chain(), tree(), comeback()} }

// Environment variables of TestPlans.
const (
	// onePlan is the name of the only plan to run, as a failure prints it.
	onePlan = "FAULTS_PLAN"
	// budget is how long plans may start, such as 4m; all of them run if it is empty.
	budget = "FAULTS_BUDGET"
	// seedOf is the seed of the order of the plans and of what is drawn; the day if it is empty.
	seedOf = "FAULTS_SEED"
)

// TestPlans learns the writes of each scenario from runs without faults, and then runs the scenario with each fault.
func TestPlans(t *testing.T) {
	seed := seed(t)
	w := newWorld(t)
	var plans []Plan
	clean := map[string]*run{}
	for _, s := range scenarios() {
		if one := os.Getenv(onePlan); one != "" && !strings.HasPrefix(one+"/", s.name+"/") {
			continue
		}
		learned, places := w.learn(t, s)
		clean[s.name] = learned
		plans = append(plans, Plans(places, seed)...)
	}
	selected := choose(t, plans, seed)
	t.Logf("seed %d: %d places, %d plans, %d selected", seed, len(plans)/(len(patterns)+1), len(plans), len(selected))
	report := newReport(len(selected))
	for i, plan := range selected {
		if report.spent() {
			break
		}
		began := time.Now()
		got := w.try(t, clean[plan.Place.Scenario], fmt.Sprintf("run%d", i), plan)
		t.Logf("%s after %.1fs: %s", got, time.Since(began).Seconds(), plan)
		report.add(plan, got)
	}
	t.Log(report)
}

// seed returns the seed: given, or of the day.
func seed(t *testing.T) uint64 {
	t.Helper()
	text := cmp.Or(os.Getenv(seedOf), time.Now().UTC().Format("20060102"))
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", seedOf, err)
	}
	return seed
}

// choose returns the plans to run in their order.
func choose(t *testing.T, plans []Plan, seed uint64) []Plan {
	t.Helper()
	selected := Shuffle(plans, seed)
	one := os.Getenv(onePlan)
	if one == "" {
		return selected
	}
	selected = slices.DeleteFunc(selected, func(p Plan) bool { return p.String() != one && !strings.HasPrefix(p.String(), one+"/") })
	if len(selected) == 0 {
		t.Fatalf("no plan is named %q, or begins with it", one)
	}
	return selected
}

// learn runs a scenario twice without a fault. Both runs must be the same.
func (w *world) learn(t *testing.T, s scenario) (*run, []Place) {
	t.Helper()
	if err := s.prepare(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	var runs []*run
	for i := range 2 {
		r, err := w.play(t.Context(), s, fmt.Sprintf("%s%d", s.name, i), nil)
		if err != nil {
			t.Errorf("scenario %s without a fault: %v", s.name, err)
			if err := w.clear(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			return nil, nil
		}
		var first *run
		if i > 0 {
			first = runs[0]
		}
		problems, err := r.problems(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		if len(problems) > 0 {
			t.Errorf("scenario %s without a fault: %s", s.name, strings.Join(problems, "\n"))
		}
		runs = append(runs, r)
	}
	places := Distinct(slices.Concat(runs[0].places, runs[1].places))
	for _, place := range places {
		t.Log(place)
	}
	return runs[0], places
}

// result is the result of a plan.
type result string

const (
	passed   result = "passed"
	failed   result = "failed"
	unmet    result = "not reached" // the write did not happen in this run
	attempts        = 2
)

// try runs a plan, and again if its write does not happen.
func (w *world) try(t *testing.T, clean *run, name string, plan Plan) result {
	t.Helper()
	for attempt := range attempts {
		r, err := w.play(t.Context(), clean.scenario, fmt.Sprintf("%sx%d", name, attempt), &plan)
		var problems []string
		if err == nil {
			problems, err = r.problems(t.Context(), clean)
		}
		if err != nil {
			problems = append(problems, err.Error())
		}
		if len(problems) > 0 {
			w.blame(t, r, problems)
			return failed
		}
		if r.victim != nil {
			return passed
		}
	}
	return unmet
}

// blame reports a plan that failed, and makes room for the next one.
func (w *world) blame(t *testing.T, r *run, problems []string) {
	t.Helper()
	folder, err := w.keepLogs(r.name)
	t.Errorf("%s\n%s\nrun it alone: make test-faults FAULTS_PLAN='%s'\nlogs: %s, %v", r.plan, strings.Join(problems, "\n"), r.plan, folder, err)
	if err := w.clear(context.WithoutCancel(t.Context()), r); err != nil {
		t.Fatalf("clearing after a plan that failed: %v", err)
	}
}

// report counts the results of plans.
type report struct {
	began   time.Time
	limit   time.Duration
	planned int
	counts  map[string]map[result]int // by program and pattern
	unmet   []string
}

func newReport(planned int) *report {
	limit, _ := time.ParseDuration(os.Getenv(budget)) // zero is no limit
	return &report{began: time.Now(), limit: limit, planned: planned, counts: map[string]map[result]int{}}
}

func (r *report) spent() bool { return r.limit > 0 && time.Since(r.began) > r.limit }

func (r *report) add(p Plan, got result) {
	row := fmt.Sprintf("%-24s %-8s", p.Place.Link, p.Pattern)
	if r.counts[row] == nil {
		r.counts[row] = map[result]int{}
	}
	r.counts[row][got]++
	if got == unmet {
		r.unmet = append(r.unmet, p.String())
	}
}

func (r *report) String() string {
	var rows []string
	total := map[result]int{}
	for row, counts := range r.counts {
		rows = append(rows, fmt.Sprintf("%s %v", row, counts))
		for got, n := range counts {
			total[got] += n
		}
	}
	slices.Sort(rows)
	return fmt.Sprintf("%d plans planned, %v, in %s\n%s\nnot reached:\n%s", r.planned, total, time.Since(r.began).Round(time.Second),
		strings.Join(rows, "\n"), strings.Join(r.unmet, "\n"))
}
