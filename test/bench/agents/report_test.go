package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// sampleReport returns a report of two agents that rested for half an hour.
func sampleReport() *report {
	return &report{Agents: 2, Scenarios: []*scenario{
		{Name: "connect", WatchTimeoutSeconds: 450},
		{
			Name: "rest", Observed: 1800, SentKBEach: 5, ReceivedKBEach: 10,
			Agents: load{ByKind: map[string]int{"patch leases": 60, "watch instances": 8}},
		},
		{Name: "outage", Agents: load{Failed: 3}},
	}}
}

func TestTheCostAtRestIsHourly(t *testing.T) {
	want := hourly{requests: 60, watches: 16, sentKB: 10, receivedKB: 20} // the watches by the time that they last
	if diff := cmp.Diff(want, sampleReport().hourly(), cmp.AllowUnexported(hourly{}), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBroken(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(*report)
		want   string
	}{
		"nothing, although requests fail in an outage": {func(*report) {}, ""},
		"a request fails":      {func(r *report) { r.of("connect").Agents.Failed = 1 }, "connect: 1 requests of agents failed"},
		"something is written": {func(r *report) { r.of("rest").Seconds = 3 }, "rest: something was written"},
		"a wave begins early": {
			func(r *report) { r.of("connect").Early = []string{"bench-0002", "bench-0003"} },
			"connect: 2 clusters began before all earlier waves had ended, such as bench-0002",
		},
		"the removal leaves objects": {func(r *report) { r.Left = []string{"ConfigMap bench-0001/a"} }, "removal: left ConfigMap bench-0001/a"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := sampleReport()
			test.change(r)
			err := r.Violations()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
