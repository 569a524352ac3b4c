package inflight

import (
	"testing"
	"time"
)

// load is a number of requests of a kind with that latency, all of which began with that many in flight.
type load struct {
	kind     string
	count    int
	latency  time.Duration
	inFlight int
}

// addLoads adds loads to an adaptation, in which requests have waited, one period after the last decision.
func addLoads(a *adaptation, now time.Time, loads ...load) time.Time {
	a.since, a.reached = now, true
	for _, l := range loads {
		for range l.count {
			ended := now.Add(max(period, l.latency))
			a.add(Request{Kind: l.kind, Began: ended.Add(-l.latency), Ended: ended, inFlight: l.inFlight})
		}
	}
	return now.Add(time.Second)
}

func TestTheLimitFollowsTheLatency(t *testing.T) {
	const fast, slow = 10 * time.Millisecond, 25 * time.Millisecond
	for sentence, test := range map[string]struct {
		loads []load
		want  int
	}{
		"it grows while the latency does not":                        {[]load{{"get", 20, fast, 32}}, 37},
		"it shrinks when the latency is more than twice its base":    {[]load{{"get", 20, slow, 32}}, 28},
		"it grows while the latency is less than twice its base":     {[]load{{"get", 20, 19 * time.Millisecond, 32}}, 37},
		"it shrinks from what was used":                              {[]load{{"get", 20, slow, 20}}, 18},
		"it stays without enough observations":                       {[]load{{"get", 19, slow, 32}}, 32},
		"it never falls below the least one":                         {[]load{{"get", 20, slow, 2}}, minLimit},
		"another kind of requests has a base of its own":             {[]load{{"get", 10, fast, 32}, {"list", 10, 50 * fast, 32}}, 37},
		"one slow request among fast ones does not count much":       {[]load{{"get", 19, fast, 32}, {"patch", 1, 10 * time.Second, 32}}, 37},
		"a kind that is slower than its base counts by its requests": {[]load{{"get", 10, fast, 32}, {"patch", 10, 5 * fast, 32}}, 28},
	} {
		t.Run(sentence, func(t *testing.T) {
			a, now := newAdaptation(), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
			now = addLoads(&a, now, load{"get", 10, fast, 1}, load{"patch", 10, fast, 1})
			a.limit = start
			if addLoads(&a, now, test.loads...); a.requests() != test.want {
				t.Errorf("the limit is %d, want %d", a.requests(), test.want)
			}
		})
	}
}

func TestTheLimitIsBounded(t *testing.T) {
	a, now := newAdaptation(), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for range 100 {
		now = addLoads(&a, now, load{"get", 20, time.Millisecond, minLimit})
	}
	if a.requests() != maxLimit {
		t.Errorf("the limit is %d, want %d", a.requests(), maxLimit)
	}
}

func TestAThrottledRequestHalvesWhatIsUsedOnce(t *testing.T) {
	a, now := newAdaptation(), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	a.limit = 200
	for range 5 { // all five were sent at the same time
		a.add(Request{Kind: "get", Began: now, Ended: now.Add(time.Second), Result: Throttled, inFlight: 60})
	}
	if a.requests() != 30 {
		t.Errorf("the limit is %d, want 30", a.requests())
	}
	a.add(Request{Kind: "get", Began: now.Add(2 * time.Second), Ended: now.Add(3 * time.Second), Result: Throttled, inFlight: 24})
	if a.requests() != 12 {
		t.Errorf("after the next one the limit is %d, want 12", a.requests())
	}
}

func TestAFailedRequestDoesNotCount(t *testing.T) {
	a, now := newAdaptation(), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for range 2 * samples {
		a.add(Request{Kind: "get", Began: now, Ended: now.Add(time.Hour), Result: Failed, inFlight: 32})
	}
	if a.completed != 0 || a.requests() != start {
		t.Errorf("%d requests count, and the limit is %d", a.completed, a.requests())
	}
}

func TestTheBaseIsMeasuredAgainWithFewRequestsInFlight(t *testing.T) {
	const before, since = 10 * time.Millisecond, 30 * time.Millisecond
	a, now := newAdaptation(), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	now = addLoads(&a, now, load{"get", 20, before, 1})
	a.limit = 100
	now = addLoads(&a, now, load{"get", 20, before, 100})
	grown := a.requests()
	now = addLoads(&a, now.Add(remeasure), load{"get", 20, before, 100})
	if a.requests() != minLimit {
		t.Fatalf("for the measurement the limit is %d, want %d", a.requests(), minLimit)
	}
	now = addLoads(&a, now, load{"get", 20, since, minLimit})
	if a.requests() != grown {
		t.Errorf("afterwards the limit is %d, want %d again", a.requests(), grown)
	}
	if base := a.base["get"]; base <= before || base > since {
		t.Errorf("the base is %v, want it nearer to %v", base, since)
	}
	if addLoads(&a, now, load{"get", 20, since, 100}); a.requests() <= grown {
		t.Errorf("the limit is %d, want more than %d: the server has become slower for few requests, too", a.requests(), grown)
	}
}
