package inflight

import (
	"math"
	"time"
)

const (
	// minLimit and maxLimit bound the limit. Latencies with up to minLimit requests in flight are the base with which others are compared.
	minLimit, maxLimit = 8, 256
	// start is the limit before anything is known.
	start = 32
	// The limit is adapted after this many requests that began since the last time, and after this time.
	samples = 20
	period  = 100 * time.Millisecond
	// tolerance is how many times longer than its base the latency may be: a request waits at most about as long as it is executed.
	tolerance = 2.0
	// outlier bounds what a single kind of requests counts, in multiples of its base.
	outlier = 4.0
	// smoothing is the weight of a new measurement of the base.
	smoothing = 0.3
	// remeasure is the maximum age of the base: then the limit is minLimit for the time of one measurement.
	remeasure = time.Minute
)

// adaptation is a limit and the observations from which it is adapted.
type adaptation struct {
	limit float64
	// before is the limit before the current measurement of the base; 0 if there is none.
	before float64
	// base holds the latency of each kind of requests with few requests in flight; measured is when it was last measured.
	base     map[string]time.Duration
	measured time.Time

	// The observations since the last decision: the latencies of each kind, their number, the most requests in flight, and whether a
	// request had to wait.
	since     time.Time
	latencies map[string]*latency
	completed int
	used      int
	reached   bool
}

// latency is the sum of the latencies of requests.
type latency struct {
	total time.Duration
	count int
}

func newAdaptation() adaptation {
	return adaptation{limit: start, base: map[string]time.Duration{}, latencies: map[string]*latency{}}
}

// requests returns the limit.
func (a *adaptation) requests() int { return int(a.limit) }

// add adds a request that has ended, and adapts the limit when there are enough. Requests that began before the last decision were subject to
// another limit and do not count.
func (a *adaptation) add(r Request) {
	if r.Result == Failed || r.Began.Before(a.since) {
		return
	}
	a.used = max(a.used, r.inFlight)
	if r.Result == Throttled {
		a.decide(r.Ended, math.Min(a.limit, float64(a.used))/2)
		return
	}
	if a.latencies[r.Kind] == nil {
		a.latencies[r.Kind] = &latency{}
	}
	a.latencies[r.Kind].total += r.Ended.Sub(r.Began)
	a.latencies[r.Kind].count++
	a.completed++
	if a.completed >= samples && r.Ended.Sub(a.since) >= period {
		next := a.next(r.Ended)
		a.learn(r.Ended)
		a.decide(r.Ended, next)
	}
}

// next returns the limit that follows from the observations.
func (a *adaptation) next(now time.Time) float64 {
	switch {
	case a.before > 0: // the measurement is complete
		next := a.before
		a.before = 0
		return next
	case a.used > minLimit && now.Sub(a.measured) >= remeasure:
		a.before = a.limit
		return minLimit
	case a.slowdown() > tolerance:
		return math.Min(a.limit, float64(a.used)) * 0.9
	case a.reached:
		return a.limit + math.Sqrt(a.limit)
	}
	return a.limit
}

// slowdown returns by which factor the latency exceeds its base, on average over all requests.
func (a *adaptation) slowdown() float64 {
	sum := 0.0
	for kind, l := range a.latencies {
		factor := 1.0
		if base := a.base[kind]; base > 0 {
			factor = math.Min(float64(l.mean())/float64(base), outlier)
		}
		sum += factor * float64(l.count)
	}
	return sum / float64(a.completed)
}

// learn updates the base of the observed kinds. With many requests in flight, only lower latencies count.
func (a *adaptation) learn(now time.Time) {
	few := a.used <= minLimit
	if few || a.measured.IsZero() {
		a.measured = now
	}
	for kind, l := range a.latencies {
		base, known := a.base[kind]
		switch mean := l.mean(); {
		case !known || mean < base:
			a.base[kind] = mean
		case few:
			a.base[kind] = base + time.Duration(smoothing*float64(mean-base))
		}
	}
}

func (l *latency) mean() time.Duration { return l.total / time.Duration(l.count) }

// decide sets the limit and starts new observations.
func (a *adaptation) decide(now time.Time, limit float64) {
	a.limit = math.Max(minLimit, math.Min(limit, maxLimit))
	a.since, a.completed, a.used, a.reached = now, 0, 0, false
	clear(a.latencies)
}
