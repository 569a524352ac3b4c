package plans

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/test/faults/proxy"
)

const (
	// settleTimeout is how long an action may take to settle on a busy machine. After several failures within two minutes, such as those of an
	// earlier run, client-go lists objects again after up to a minute, twice if the first list fails. convergence is how long the clusters may
	// then differ from those of the run without a fault: longer than any pause of the programs.
	settleTimeout, convergence = 4 * time.Minute, controller.MaxRetryInterval + time.Minute
	// still is the time without requests and events of any program after which the clusters are settled. learning is the same for the runs
	// without a fault, with which all others are compared.
	still, learning = 150 * time.Millisecond, time.Second
)

// scenario is what a user does, action by action.
type scenario struct {
	name    string
	actions []action
	// open names the actions that the last action cannot directly follow.
	open []string
	// prepare creates what the scenario requires, once for all runs.
	prepare func(context.Context, *world) error
	// reset undoes the changes that a failed run has made to the world itself; nil if there are none.
	reset func(context.Context, *world) error
	// pause is how long the programs may do nothing before they continue; zero if they do not pause.
	pause time.Duration
	// repairs names the actions whose writes to applied objects are no steps: what another writer has changed is put back.
	repairs []string
	// kinds are the kinds of objects whose state is compared after every action.
	onHub, onCluster []kind
}

// action is one action of a user, and when its effect is complete.
type action struct {
	name    string
	do      func(context.Context, *run) error
	settled func(context.Context, *run) error
}

// actionName returns the name of an action in plans.
func actionName(i int, a action) string { return fmt.Sprintf("%d-%s", i+1, a.name) }

// run is one run of a scenario, with at most one fault in each action. After each action, the clusters must be the same as without a fault:
// the next action begins as if there had been none.
type run struct {
	*world
	scenario scenario
	plans    []Plan
	// clean is the run without faults; nil in that run itself.
	clean *run
	// name is the prefix of the names of all objects of the run, and its namespace on the managed cluster.
	name string

	// Set while an action is in progress; guarded by the world's mutex.
	action string
	begin  map[string]string // by API server: the resource version before the action
	fault  *fault            // of the action; nil if there is none

	places []Place
	hooks  []string // of charts that have ended since the action began

	writes   []*proxy.Write
	local    []*proxy.Write       // of the agent to its own cluster
	deleted  map[string]time.Time // since when add-ons with dependencies are deleted, for earlyRemovals
	outcomes []outcome            // of each action
	results  map[Plan]result

	// shortened is true if actions were omitted.
	shortened bool
}

// outcome is what the actions up to one have led to.
type outcome struct {
	state state
	tally map[string]int
}

// play plays the scenario to its last plan and then its last action, or to the first difference from the clean run.
func (w *world) play(ctx context.Context, s scenario, name string, clean *run, plans ...Plan) (*run, error) {
	r := &run{world: w, scenario: s, plans: plans, clean: clean, name: name, results: map[Plan]result{}}
	w.note("run %s of %s: %v", name, s.name, plans)
	r.collect()
	r.writes, r.local = nil, nil // of the run before
	last := len(s.actions) - 1
	planned := last
	for ; planned >= 0 && len(plans) > 0 && r.planFor(actionName(planned, s.actions[planned])) == nil; planned-- {
	}
	var played string // the action before
	for i, a := range s.actions {
		if i > planned && i < last && !slices.Contains(s.open, played) {
			r.shortened = true
			continue
		}
		played = a.name
		if err := r.perform(ctx, i, a); err != nil {
			return r, fmt.Errorf("action %s: %w", r.action, err)
		}
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.run = nil
	return r, nil
}

// planFor returns the plan for an action; nil if there is none.
func (r *run) planFor(action string) *Plan {
	i := slices.IndexFunc(r.plans, func(p Plan) bool { return p.Place.Action == action })
	if i < 0 {
		return nil
	}
	return &r.plans[i]
}

// perform performs an action, and records the result of its plan.
func (r *run) perform(ctx context.Context, i int, a action) error {
	if err := r.enter(ctx, actionName(i, a)); err != nil {
		return err
	}
	if err := a.do(ctx, r); err != nil {
		return err
	}
	err := r.complete(ctx, i, a)
	r.conclude(err == nil)
	return err
}

// complete waits until the effect of an action is complete, and the same as in the clean run.
func (r *run) complete(ctx context.Context, i int, a action) error {
	began := time.Now()
	if err := eventually(ctx, settleTimeout, func(ctx context.Context) error { return r.rest(ctx, a) }); err != nil {
		r.collect()
		return fmt.Errorf("it does not settle: %w; the last writes: %v", err, r.last(20))
	}
	if r.shortened { // the clean run has more actions before this one
		return nil
	}
	settled := time.Since(began)
	var different error
	err := eventually(ctx, convergence, func(ctx context.Context) error {
		if err := r.rest(ctx, a); err != nil {
			return errors.Join(different, err)
		}
		different = r.compare(ctx, i)
		return different
	})
	r.note("action %s settled after %.2fs, and was compared until %.2fs", r.action, settled.Seconds(), time.Since(began).Seconds())
	return err
}

// enter begins an action.
func (r *run) enter(ctx context.Context, action string) error {
	begin := map[string]string{}
	for server, c := range r.clients() {
		version, err := versionOf(ctx, c)
		if err != nil {
			return err
		}
		begin[server] = version
	}
	r.note("action %s", action)
	r.world.mutex.Lock()
	defer r.world.mutex.Unlock()
	r.action, r.begin, r.fault, r.hooks, r.world.run = action, begin, nil, nil, r
	if p := r.planFor(action); p != nil {
		r.fault = newFault(*p, begin)
	}
	return nil
}

// rest returns an error unless the action's effect is complete, no fault is in progress, and no program has anything to do. It first thaws
// a held view.
func (r *run) rest(ctx context.Context, a action) error {
	held := r.thaw(ctx)
	if err := a.settled(ctx, r); err != nil {
		return err
	}
	if held {
		return errors.New("a fault is in progress")
	}
	while := still
	if r.clean == nil {
		while = learning + r.scenario.pause
	}
	for _, p := range r.programs {
		if !p.idle(ctx, while) {
			return fmt.Errorf("%s is busy", p.name)
		}
	}
	return nil
}

// compare returns an error that describes how the action's outcome differs from that of the clean run, and keeps an outcome without
// differences.
func (r *run) compare(ctx context.Context, i int) error {
	r.collect()
	found, err := r.state(ctx)
	if err != nil {
		return err
	}
	got := outcome{found, Tally(r.writes, r.name)}
	problems, err := r.violations(ctx)
	if err != nil {
		return err
	}
	if r.clean != nil {
		want := r.clean.outcomes[i]
		if difference := cmp.Diff(want.state, got.state); difference != "" {
			problems = append(problems, "the state differs (- without a fault, + with it):\n"+difference)
		}
		problems = append(problems, Differences(want.tally, got.tally)...)
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n"))
	}
	if err := r.reviews(ctx); err != nil {
		return err
	}
	r.outcomes = append(r.outcomes, got)
	return nil
}

// conclude records the result of the action's plan.
func (r *run) conclude(same bool) {
	r.world.mutex.Lock()
	defer r.world.mutex.Unlock()
	switch {
	case r.fault == nil:
	case !same:
		r.results[r.fault.Plan] = failed
	case r.fault.victim == nil:
		r.results[r.fault.Plan] = unmet
	default:
		r.results[r.fault.Plan] = passed
	}
}

// thaw ends a fault if its program has completed its reaction, and reports whether a fault is still in progress.
func (r *run) thaw(ctx context.Context) bool {
	r.world.mutex.Lock()
	f := r.fault
	fired := f != nil && f.victim != nil
	r.world.mutex.Unlock()
	return fired && !f.end(ctx)
}

// last returns the last writes.
func (r *run) last(n int) []string {
	var writes []string
	for _, written := range r.writes[max(0, len(r.writes)-n):] {
		writes = append(writes, "\n"+written.Received.Format("05.000 ")+written.String())
	}
	return writes
}

// collect adds the writes since the last call.
func (r *run) collect() {
	for _, p := range r.programs {
		for server, link := range p.links {
			for _, written := range link.Journal() {
				r.writes = append(r.writes, written)
				if server == "cluster" && !written.IsDryRun && !r.isRepair(written) {
					r.local = append(r.local, written)
				}
			}
		}
	}
	slices.SortStableFunc(r.writes, func(a, b *proxy.Write) int { return a.Received.Compare(b.Received) })
}

// isRepair reports whether a write of the agent since the last call of collect puts back what another writer has changed.
func (r *run) isRepair(written *proxy.Write) bool {
	_, action, _ := strings.Cut(r.action, "-")
	return slices.Contains(r.scenario.repairs, action) && written.Group != kudo.GroupVersion.Group
}
