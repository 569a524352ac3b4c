package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/bench/spread"
)

var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// request returns a request that arrives that many milliseconds after the start and takes 10 ms.
func request(at int, user, verb, resource, subresource string, code int) audit.Entry {
	e := audit.Entry{Verb: verb, RequestURI: "/apis/x?timeoutSeconds=400"}
	e.User.Username, e.ResponseStatus.Code = user, code
	e.ObjectRef.Resource, e.ObjectRef.Subresource = resource, subresource
	e.RequestReceivedTimestamp = metav1.NewMicroTime(start.Add(time.Duration(at) * time.Millisecond))
	e.StageTimestamp = metav1.NewMicroTime(e.RequestTime().Add(10 * time.Millisecond))
	return e
}

func observationOf(entries ...audit.Entry) (*observation, bool) {
	o := newObservation()
	o.began = start
	return o, o.add(entries)
}

func TestRequestsAreCounted(t *testing.T) {
	o, _ := observationOf(
		request(0, "a", "get", "", "", 200),
		request(100, "a", "patch", "instances", "status", 200),
		request(200, "b", "patch", "instances", "status", 409),
		request(1000, "b", "watch", "instances", "", 200),
		request(2000, "b", "patch", "leases", "", 429),
		request(2100, "b", "list", "instances", "", 403),
		request(2200, manager, "patch", "instances", "", 200),
		request(2300, manager, "patch", "leases", "", 200),
		request(2400, ocmAddOns, "patch", "managedclusteraddons", "status", 200),
		request(2500, ocmPlacement, "create", "placementdecisions", "", 201),
	)
	want := load{
		Requests: 6, RequestsEach: 3, PeakPerSecond: 3, Conflicts: 1, Throttled: 1, Failed: 1,
		Latency: spread.Spread{P50: 10, P99: 10, Max: 10},
		ByKind: map[string]int{
			"discovery": 1, "patch instances/status": 2, "watch instances": 1, "patch leases": 1, "list instances": 1,
		},
	}
	if diff := cmp.Diff(want, o.agents.load(2)); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	if o.manager.all != 1 {
		t.Errorf("addon-manager has %d requests, want 1, without its lease", o.manager.all)
	}
	if o.ocm.all != 2 {
		t.Errorf("OCM has %d requests, want 2", o.ocm.all)
	}
	if len(o.timeouts) != 1 || o.timeouts[0] != 400*time.Second {
		t.Errorf("the watches end after %v", o.timeouts)
	}
}

func TestOnlyWritesOfBulkWorkAreActivity(t *testing.T) {
	for sentence, test := range map[string]struct {
		entry  audit.Entry
		active bool
	}{
		"a report":               {request(0, "a", "patch", "instances", "status", 200), true},
		"a write of the manager": {request(0, manager, "create", "instances", "", 201), true},
		"a write of OCM":         {request(0, ocmAddOns, "patch", "managedclusteraddons", "status", 200), true},
		"a lease":                {request(0, "a", "patch", "leases", "", 200), false},
		"an event":               {request(0, manager, "create", "events", "", 201), false},
		"a read":                 {request(0, "a", "get", "operatorversions", "", 200), false},
		"a watch":                {request(0, "a", "watch", "instances", "", 200), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if o, active := observationOf(test.entry); active != test.active || o.ended.IsZero() == test.active {
				t.Errorf("active is %t, ended is %v", active, o.ended)
			}
		})
	}
}

func TestAnAgentIsConnectedWithItsLastWatch(t *testing.T) {
	o, _ := observationOf(
		request(100, "a", "watch", "instances", "", 429),
		request(200, "a", "watch", "instances", "", 200),
		request(300, "a", "watch", "addons", "", 200),
		request(900, "a", "watch", "addons", "", 200), // again
		request(400, "b", "watch", "instances", "", 200),
		request(500, "b", "patch", "leases", "", 200),
		request(600, "b", "patch", "leases", "", 200),
	)
	if diff := cmp.Diff([]time.Duration{310 * time.Millisecond}, o.connectTimes(2)); diff != "" {
		t.Errorf("connected (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{510 * time.Millisecond}, o.renewed.since(start)); diff != "" {
		t.Errorf("renewed (-want +got):\n%s", diff)
	}
}
