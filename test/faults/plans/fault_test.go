package plans

import (
	"context"
	"sync"
	"time"

	"github.com/tandem-addons/tandem/test/faults/proxy"
)

const (
	// digestTime is how long a program with a stale view must be idle before its reaction to that view counts as complete. If it is never
	// idle, the view is held for maxDigestTime after the program has connected.
	digestTime, maxDigestTime = 250 * time.Millisecond, 2500 * time.Millisecond
	// outage is how long a link is cut, and delay how long a write is delayed.
	outage, delay = 250 * time.Millisecond, time.Second
)

// fault is the fault of a plan, which happens once.
type fault struct {
	Plan
	begin map[string]string // by API server: the resource version before the action

	// Set by the write that the plan names; guarded by the world's mutex.
	victim *program

	recovered chan struct{} // closed when the program runs again, or another effect of the fault is over
	connected time.Time     // when the program had watches again; zero before
	ended     bool
}

func newFault(p Plan, begin map[string]string) *fault {
	return &fault{Plan: p, begin: begin, recovered: make(chan struct{})}
}

// at returns the fault of a write at a place. The world's mutex is held.
func (f *fault) at(place Place, by *program, server string) proxy.Fault {
	if f == nil || f.victim != nil || f.Place != place {
		return proxy.Fault{}
	}
	f.victim = by
	done := sync.OnceFunc(func() { close(f.recovered) })
	link := by.links[server]
	restart := func() {
		by.stop()
		_ = by.start() // without it, the run does not settle
		done()
	}
	switch f.Pattern {
	case Before:
		return proxy.Fault{Before: restart}
	case After:
		return proxy.Fault{After: restart}
	case Stale:
		return proxy.Fault{After: func() {
			by.stop()
			link.Freeze(f.begin[server])
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
			time.AfterFunc(outage, func() { link.Mend(); done() })
		}}
	case Slow:
		done()
		return proxy.Fault{Delay: delay}
	default:
		done()
		if f.Code == 504 {
			return proxy.Fault{Replace: f.Code}
		}
		return proxy.Fault{Refuse: f.Code}
	}
}

// end ends a fault that has fired, if its program has completed its reaction, and reports whether the fault has ended.
func (f *fault) end(ctx context.Context) bool {
	if f.ended {
		return true
	}
	select {
	case <-f.recovered:
	default:
		return false
	}
	if (f.Pattern == Stale || f.Pattern == Lost) && !f.isDigested(ctx) {
		return false
	}
	for _, link := range f.victim.links {
		link.Thaw(f.Pattern == Lost)
	}
	f.ended = true
	return true
}

// isDigested reports whether the program has completed its reaction to a stale view.
func (f *fault) isDigested(ctx context.Context) bool {
	if !f.victim.isConnected() {
		return false
	}
	if f.connected.IsZero() {
		f.connected = time.Now()
	}
	return time.Since(f.connected) > maxDigestTime || f.victim.idle(ctx, digestTime)
}
