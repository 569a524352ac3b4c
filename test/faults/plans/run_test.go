package plans

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tandem-addons/tandem/test/faults/proxy"
)

// scenario is what a user does, action by action.
type scenario struct {
	name    string
	actions []action
	// prepare creates what the scenario requires, once for all runs.
	prepare func(context.Context, *world) error
	// kinds are the kinds of objects whose state is compared after every action.
	onHub, onCluster []kind
}

// action is one action of a user, and when its effect is complete.
type action struct {
	name    string
	do      func(context.Context, *run) error
	settled func(context.Context, *run) error
}

// run is one run of a scenario, with one fault at most.
type run struct {
	*world
	scenario scenario
	plan     *Plan
	// name is the prefix of the names of all objects of the run, and its namespace on the managed cluster.
	name string

	// Set while the run is in progress; guarded by the world's mutex.
	action string
	begin  map[string]string // by API server: the resource version before the action
	victim *program
	fired  time.Time
	begun  chan struct{} // closed when the program runs again, or what else happens is done

	writes []*proxy.Write
	local  []*proxy.Write // of the agent to its own cluster
	places []Place
	states []state // after each action
}

// fault returns the fault of a write. The world's mutex is held.
func (r *run) fault(by *program, server string, written *proxy.Write) proxy.Fault {
	place := Place{Scenario: r.scenario.name, Action: r.action, Link: by.name + "@" + server, Write: Describe(written, r.name)}
	r.places = append(r.places, place)
	if r.plan == nil || r.victim != nil || r.plan.Place != place {
		return proxy.Fault{}
	}
	r.victim, r.fired, r.begun = by, time.Now(), make(chan struct{})
	return r.faultOf(by, server)
}

// faultOf returns the plan's fault.
func (r *run) faultOf(by *program, server string) proxy.Fault {
	done := sync.OnceFunc(func() { close(r.begun) })
	link := by.links[server]
	restart := func() {
		by.stop()
		r.note("%s is started again", by.name)
		_ = by.start() // the run does not settle without it
		done()
	}
	switch r.plan.Pattern {
	case Before:
		return proxy.Fault{Before: restart}
	case After:
		return proxy.Fault{After: restart}
	case Stale:
		return proxy.Fault{After: func() {
			by.stop()
			link.Freeze(r.begin[server])
			restart()
		}}
	case Lost:
		return proxy.Fault{Meanwhile: func() {
			for _, l := range by.links {
				l.Freeze("")
			}
			done()
		}}
	case Cut:
		return proxy.Fault{After: func() {
			link.Cut()
			time.AfterFunc(still, func() { link.Mend(); done() })
		}}
	case Slow:
		done()
		return proxy.Fault{Delay: 4 * still}
	default:
		done()
		if r.plan.Code == 504 {
			return proxy.Fault{Replace: r.plan.Code}
		}
		return proxy.Fault{Refuse: r.plan.Code}
	}
}

// play plays the scenario to its end.
func (w *world) play(ctx context.Context, s scenario, name string, plan *Plan) (*run, error) {
	r := &run{world: w, scenario: s, plan: plan, name: name}
	w.note("run %s of %s: %v", name, s.name, plan)
	for i, a := range s.actions {
		if err := r.enter(ctx, fmt.Sprintf("%d-%s", i+1, a.name)); err != nil {
			return r, err
		}
		if err := a.do(ctx, r); err != nil {
			return r, fmt.Errorf("action %s: %w", r.action, err)
		}
		if err := r.settle(ctx, a); err != nil {
			r.collect()
			return r, fmt.Errorf("action %s does not settle: %w; the last writes: %v", r.action, err, r.last(20))
		}
		found, err := r.state(ctx)
		if err != nil {
			return r, err
		}
		r.states = append(r.states, found)
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.run = nil
	return r, nil
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
	r.action, r.begin, r.world.run = action, begin, r
	return nil
}

// settle waits until the action's effect is complete and nothing is written any more. A view that is held is thawed before.
func (r *run) settle(ctx context.Context, a action) error {
	return eventually(ctx, func(ctx context.Context) error {
		r.thaw()
		if err := a.settled(ctx, r); err != nil {
			return err
		}
		if !r.quiet() || r.held() {
			return errors.New("the programs still write")
		}
		r.collect()
		return nil
	})
}

// held reports whether a fault is in progress.
func (r *run) held() bool {
	r.world.mutex.Lock()
	defer r.world.mutex.Unlock()
	return r.victim != nil && !r.fired.IsZero()
}

// thaw ends a fault whose program does nothing more.
func (r *run) thaw() {
	r.world.mutex.Lock()
	defer r.world.mutex.Unlock()
	if r.victim == nil || r.fired.IsZero() {
		return
	}
	select {
	case <-r.begun:
	default:
		return
	}
	frozen := r.plan.Pattern == Stale || r.plan.Pattern == Lost
	idle := time.Since(r.fired) > 4*still && r.idle()
	if frozen && !idle && time.Since(r.fired) < longest {
		return
	}
	for _, link := range r.victim.links {
		link.Thaw(r.plan.Pattern == Lost)
	}
	r.fired = time.Time{}
	r.active = time.Now()
}

// idle reports whether the program whose view is held has started and sends no requests.
func (r *run) idle() bool {
	for _, link := range r.victim.links {
		if link.Watches() == 0 || time.Since(link.Active()) < still {
			return false
		}
	}
	return true
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
				if server == "cluster" {
					r.local = append(r.local, written)
				}
			}
		}
	}
}
