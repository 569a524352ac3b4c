package main

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/bench/spread"
)

// The users of addon-manager and of OCM's controllers on the hub.
const (
	manager      = "system:serviceaccount:tandem-system:addon-manager"
	ocmAddOns    = "system:serviceaccount:open-cluster-management-hub:addon-manager-controller-sa"
	ocmPlacement = "system:serviceaccount:open-cluster-management-hub:placement-controller-sa"
)

// observation holds the data from the hub's audit log since a point in time.
type observation struct {
	// began is when the change was requested; ended is the response to the last write by agents, addon-manager or OCM, except leases and
	// events.
	began, ended time.Time
	// ready is how long the API server took to start, after an outage.
	ready time.Duration

	agents, manager, ocm traffic
	// watching holds, by agent, when it opened its first watch of each resource; renewed when it first renewed its lease, and reported when
	// it first reported an Instance; timeouts are those of all watches.
	watching map[string]map[string]time.Time
	renewed  moments
	reported moments
	timeouts []time.Duration
	// progress follows a rollout by OCM; nil without one.
	progress *progress
}

func newObservation() *observation {
	return &observation{
		began: time.Now(), agents: newTraffic(), manager: newTraffic(), ocm: newTraffic(),
		watching: map[string]map[string]time.Time{}, renewed: moments{}, reported: moments{},
	}
}

// moments holds the first response to a request of each agent.
type moments map[string]time.Time

// note records a response.
func (m moments) note(e *audit.Entry) {
	if _, known := m[e.User.Username]; !known {
		m[e.User.Username] = e.ResponseTime()
	}
}

// since returns the times from a beginning.
func (m moments) since(began time.Time) []time.Duration {
	var times []time.Duration
	for _, at := range m {
		times = append(times, at.Sub(began))
	}
	return times
}

// add processes the new entries of the log. It reports whether some of them are writes other than leases and events.
func (o *observation) add(entries []audit.Entry) (active bool) {
	for i := range entries {
		e := &entries[i]
		switch user := e.User.Username; {
		case user == manager && e.Is("leases", ""):
			continue
		case user == manager:
			o.manager.add(e)
		case user == ocmAddOns, user == ocmPlacement:
			o.ocm.add(e)
		default:
			o.agents.add(e)
			o.learn(e)
		}
		if writes(e) && !e.Is("leases", "") && !e.Is("events", "") {
			active = true
			o.ended = e.ResponseTime()
		}
	}
	return active
}

// learn processes a request of an agent: a watch, a renewal of its lease, or a report.
func (o *observation) learn(e *audit.Entry) {
	agent := e.User.Username
	switch {
	case !e.IsSuccess():
	case e.Verb == "watch":
		if o.watching[agent] == nil {
			o.watching[agent] = map[string]time.Time{}
		}
		if _, known := o.watching[agent][e.ObjectRef.Resource]; !known {
			o.watching[agent][e.ObjectRef.Resource] = e.ResponseTime()
		}
		o.timeouts = append(o.timeouts, timeoutOf(e))
	case e.Is("leases", ""):
		o.renewed.note(e)
	case e.Is("instances", "status"):
		o.reported.note(e)
	}
}

// connectTimes returns, for each agent with that many watches, how long after the beginning it had all of them.
func (o *observation) connectTimes(watches int) []time.Duration {
	var times []time.Duration
	for _, opened := range o.watching {
		if len(opened) < watches {
			continue
		}
		var last time.Time
		for _, at := range opened {
			if at.After(last) {
				last = at
			}
		}
		times = append(times, last.Sub(o.began))
	}
	return times
}

// writes reports whether a request changes objects.
func writes(e *audit.Entry) bool {
	switch e.Verb {
	case "get", "list", "watch":
		return false
	}
	return true
}

// timeoutOf returns how long a watch lasts at most, as its client requested; 0 if it did not.
func timeoutOf(e *audit.Entry) time.Duration {
	address, err := url.Parse(e.RequestURI)
	if err != nil {
		return 0
	}
	seconds, _ := strconv.Atoi(address.Query().Get("timeoutSeconds"))
	return time.Duration(seconds) * time.Second
}

// traffic counts the requests of one or more users.
type traffic struct {
	all, conflicts, throttled, failed int
	// byKind counts requests by verb and resource; bySecond by the second of their arrival.
	byKind   map[string]int
	bySecond map[int64]int
	// took are the latencies of all requests except watches.
	took []time.Duration
}

func newTraffic() traffic { return traffic{byKind: map[string]int{}, bySecond: map[int64]int{}} }

func (t *traffic) add(e *audit.Entry) {
	t.all++
	t.byKind[kindOf(e)]++
	t.bySecond[e.RequestTime().Unix()]++
	if e.Verb != "watch" {
		t.took = append(t.took, e.ResponseTime().Sub(e.RequestTime()))
	}
	switch code := e.ResponseStatus.Code; {
	case e.Conflicts():
		t.conflicts++
	case code == http.StatusTooManyRequests:
		t.throttled++
	case code >= http.StatusInternalServerError, code == http.StatusForbidden, code == http.StatusUnauthorized:
		t.failed++
	}
}

// kindOf returns a request's verb and resource.
func kindOf(e *audit.Entry) string {
	switch {
	case e.ObjectRef.Resource == "":
		return "discovery"
	case e.ObjectRef.Subresource != "":
		return e.Verb + " " + e.ObjectRef.Resource + "/" + e.ObjectRef.Subresource
	}
	return e.Verb + " " + e.ObjectRef.Resource
}

// peak returns the largest number of requests that arrived within a second.
func (t *traffic) peak() int {
	highest := 0
	for _, count := range t.bySecond {
		highest = max(highest, count)
	}
	return highest
}

// load returns the counts for a number of users.
func (t *traffic) load(users int) load {
	return load{
		Requests: t.all, RequestsEach: float64(t.all) / float64(users), PeakPerSecond: t.peak(), ByKind: t.byKind,
		Conflicts: t.conflicts, Throttled: t.throttled, Failed: t.failed, Latency: spread.Of(t.took),
	}
}
