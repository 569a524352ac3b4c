package plans

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tandem-addons/tandem/pkg/sandbox"
)

// scenarios returns all scenarios, those that require OCM's programs separately.
func scenarios() (all, ofOCM []scenario) {
	return []scenario{lifecycle(), chain(), tree(), restore(), jobs(), chart(), detach(), backup(), commands(), certificates(), order(), drift(), windows(), returning(), following()}, []scenario{rollout()}
}

// Environment variables of TestPlans.
const (
	// onlyPlans selects plans by their names, or the beginnings of their names, with a semicolon between them.
	onlyPlans = "FAULTS_PLAN"
	// partOf selects a part of the plans, such as 2/7. A part is the same in every run, and all parts together contain every plan.
	partOf = "FAULTS_PART"
	// budget is the time after the start of the test in which runs may start, such as 4m; all plans are tried if it is empty.
	budget = "FAULTS_BUDGET"
	// seedOf is the seed of the order of the plans and of what is drawn; the day if it is empty.
	seedOf = "FAULTS_SEED"
	// worldsOf is the number of worlds that try plans at the same time; two if it is empty.
	worldsOf = "FAULTS_WORLDS"
)

// TestPlans learns the writes of each scenario from runs without faults, and then tries each fault.
func TestPlans(t *testing.T) {
	all, ofOCM := scenarios()
	if !slices.ContainsFunc(slices.Concat(all, ofOCM), scenario.isWanted) {
		t.Fatalf("no scenario has a plan that is named %q", os.Getenv(onlyPlans))
	}
	tryAll(t, all, int(number(t, worldsOf, "2")), func(name string) *world { return newWorld(t, name, true) })
}

// TestRollouts does the same in a world with OCM.
func TestRollouts(t *testing.T) {
	_, all := scenarios()
	programs, err := sandbox.FindOCM(os.Getenv)
	if err != nil {
		t.Logf("scenario %s is omitted: %v", all[0].name, err)
		return
	}
	tryAll(t, all, 1, func(name string) *world { return newOCMWorld(t, "ocm-"+name, programs) })
}

// tryAll tries the selected plans of the offered scenarios, in n worlds.
func tryAll(t *testing.T, offered []scenario, n int, start func(name string) *world) {
	t.Helper()
	wanted := slices.DeleteFunc(offered, func(s scenario) bool { return !s.isWanted() })
	if len(wanted) == 0 {
		return
	}
	began, end := time.Now(), end(t)
	seed := number(t, seedOf, time.Now().UTC().Format("20060102"))
	var worlds []*world
	for i := range n {
		worlds = append(worlds, start(fmt.Sprintf("world%d", i)))
	}
	t.Logf("%d worlds started after %.0fs", len(worlds), time.Since(began).Seconds())
	all := learnAll(t, worlds, shuffle(wanted, seed), half(began, end))
	selected := choose(t, all.plans(seed), seed)
	t.Logf("seed %d: %d places, %d plans, %d selected, learned after %.0fs", seed, all.places(), len(all.plans(seed)), len(selected),
		time.Since(began).Seconds())
	pending := newQueue(selected, end)
	var group errgroup.Group
	for _, w := range worlds {
		group.Go(func() error {
			for batch := pending.next(); batch != nil; batch = pending.next() {
				if err := w.try(t, all[batch[0].Place.Scenario].clean, pending, batch); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Errorf("a world cannot continue: %v", err)
	}
	t.Log(pending.report())
}

// number returns the number of an environment variable.
func number(t *testing.T, variable, otherwise string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv(variable), otherwise), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// end returns the end of the budget, which begins now; zero if there is none.
func end(t *testing.T) time.Time {
	t.Helper()
	limit, err := time.ParseDuration(cmp.Or(os.Getenv(budget), "0"))
	if err != nil {
		t.Fatalf("%s: %v", budget, err)
	}
	if limit == 0 {
		return time.Time{}
	}
	return time.Now().Add(limit)
}

// half returns the middle between two times; zero if there is no end.
func half(began, end time.Time) time.Time {
	if end.IsZero() {
		return end
	}
	return began.Add(end.Sub(began) / 2)
}

// shuffle returns the scenarios in an order that depends on the seed only.
func shuffle(scenarios []scenario, seed uint64) []scenario {
	return slices.SortedFunc(slices.Values(scenarios), func(a, b scenario) int { return cmp.Compare(position(seed, a.name), position(seed, b.name)) })
}

// choose returns the plans to try in their order.
func choose(t *testing.T, plans []Plan, seed uint64) []Plan {
	t.Helper()
	names, part := strings.Split(os.Getenv(onlyPlans), ";"), cmp.Or(os.Getenv(partOf), "1/1")
	var k, n uint64
	if _, err := fmt.Sscanf(part, "%d/%d", &k, &n); err != nil || k < 1 || k > n {
		t.Fatalf("%s must be a part such as 2/7, got %q", partOf, part)
	}
	selected := slices.DeleteFunc(Part(Shuffle(plans, seed), k, n), func(p Plan) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return name == "" || strings.HasPrefix(p.String()+"/", name+"/") })
	})
	if len(selected) == 0 {
		t.Fatalf("no plan of part %s is named %q, or begins with it", part, names)
	}
	return selected
}

// lessons holds what was learned about each scenario, by name.
type lessons map[string]lesson

// lesson is a run of a scenario without a fault, and its distinct writes.
type lesson struct {
	clean  *run
	places []Place
}

func (l lessons) plans(seed uint64) []Plan {
	var plans []Plan
	for _, name := range slices.Sorted(maps.Keys(l)) {
		plans = append(plans, Plans(l[name].places, seed)...)
	}
	return plans
}

func (l lessons) places() int {
	n := 0
	for _, one := range l {
		n += len(one.places)
	}
	return n
}

// isWanted reports whether plans of the scenario may be selected.
func (s scenario) isWanted() bool {
	only := os.Getenv(onlyPlans)
	return only == "" || slices.ContainsFunc(strings.Split(only, ";"), func(name string) bool { return strings.HasPrefix(name+"/", s.name+"/") })
}

// learnAll learns the scenarios in all worlds at the same time, and prepares all worlds for them. After the end, it begins only the first
// scenario of each world; a zero end means no limit.
func learnAll(t *testing.T, worlds []*world, wanted []scenario, end time.Time) lessons {
	t.Helper()
	learned := make([]lesson, len(wanted))
	var group errgroup.Group
	for at, w := range worlds {
		group.Go(func() error {
			for i, s := range wanted {
				if err := s.prepare(t.Context(), w); err != nil {
					return err
				}
				late := !end.IsZero() && time.Now().After(end) && i >= len(worlds)
				if i%len(worlds) != at || late {
					continue
				}
				var err error
				if learned[i], err = w.learn(t.Context(), s); err != nil {
					return fmt.Errorf("scenario %s without a fault: %w", s.name, err)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	all := lessons{}
	for i, s := range wanted {
		if learned[i].clean == nil {
			t.Logf("scenario %s: not learned", s.name)
			continue
		}
		all[s.name] = learned[i]
		for _, place := range learned[i].places {
			t.Log(place)
		}
	}
	return all
}

// learn runs a scenario twice without a fault. Both runs must be the same.
func (w *world) learn(ctx context.Context, s scenario) (lesson, error) {
	first, err := w.play(ctx, s, s.name+"0", nil)
	if err != nil {
		return lesson{}, err
	}
	second, err := w.play(ctx, s, s.name+"1", first)
	return lesson{clean: first, places: Distinct(slices.Concat(first.places, second.places))}, err
}

// try tries plans in one run. It returns an error if the world cannot try another one.
func (w *world) try(t *testing.T, clean *run, pending *queue, batch []Plan) error {
	began := time.Now()
	r, err := w.play(t.Context(), clean.scenario, w.runName(), clean, batch...)
	pending.record(batch, r.results)
	took := time.Since(began).Seconds()
	for _, p := range batch {
		t.Logf("%-11s %s", cmp.Or(r.results[p], untried), p)
	}
	t.Logf("%s: %s with %d faults in %.1fs, %.1fs each", r.name, clean.scenario.name, len(batch), took, took/float64(len(batch)))
	if err == nil {
		return nil
	}
	folder, logs := w.keepLogs(r.name)
	t.Errorf("%s of %s differs: %v\nits faults: %s\nlogs: %s, %v", r.name, clean.scenario.name, err, names(r.firedPlans()), folder, logs)
	if err := w.clear(context.WithoutCancel(t.Context()), r); err != nil {
		return fmt.Errorf("clearing after a plan that failed: %w", err)
	}
	if len(r.firedPlans()) > 1 {
		return w.blame(t, clean, r)
	}
	return nil
}

// blame tries the last fault of a failed run alone, to determine whether the earlier faults contributed.
func (w *world) blame(t *testing.T, clean, r *run) error {
	fired := r.firedPlans()
	alone, err := w.play(t.Context(), clean.scenario, w.runName(), clean, fired[len(fired)-1])
	if err == nil {
		t.Logf("%s: the last fault of %s alone causes no difference", alone.name, r.name)
		return nil
	}
	t.Logf("%s: the last fault of %s alone: %v", alone.name, r.name, err)
	return w.clear(context.WithoutCancel(t.Context()), alone)
}

// runName returns a new name of a run.
func (w *world) runName() string {
	w.runs++
	return fmt.Sprintf("%s-run%d", w.name, w.runs)
}

// firedPlans returns the plans whose faults have happened, in their order.
func (r *run) firedPlans() []Plan {
	var fired []Plan
	for i, a := range r.scenario.actions {
		if p := r.planFor(actionName(i, a)); p != nil && (r.results[*p] == passed || r.results[*p] == failed) {
			fired = append(fired, *p)
		}
	}
	return fired
}
