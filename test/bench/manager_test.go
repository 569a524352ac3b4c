package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseUsage(t *testing.T) {
	const stat = "42 (addon) manager) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 1 1 1\n"
	const status = "Name:\taddon-manager\nVmPeak:\t  999 kB\nVmHWM:\t   65536 kB\nVmRSS:\t    2048 kB\nThreads:\t9\n"
	got, err := parseUsage(stat, status)
	if err != nil {
		t.Fatal(err)
	}
	want := usage{cpu: 3 * time.Second, peak: 64 << 20, resident: 2 << 20}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(usage{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := parseUsage("42 (x) S 1", status); err == nil {
		t.Error("a line that ends too soon is accepted")
	}
}

func TestParseWork(t *testing.T) {
	const leading = "leader_election_master_status{name=\"tandem-addon-manager\"} 1\n"
	const counters = "# TYPE workqueue_depth gauge\n" +
		"controller_runtime_reconcile_total{controller=\"addon\",result=\"success\"} 3\n" +
		"controller_runtime_reconcile_total{controller=\"dependency\",result=\"success\"} 4e+06\n"
	for name, tc := range map[string]struct {
		text string
		want work
		idle bool
	}{
		"nothing yet":                          {"", work{}, false},
		"standing by":                          {counters, work{reconciled: 4000003}, false},
		"leading with nothing in a queue":      {leading + counters, work{leads: true, reconciled: 4000003}, true},
		"leading before anything had its turn": {leading, work{leads: true}, false},
		"with objects that wait": {
			leading + counters + "workqueue_depth{controller=\"addon\",name=\"addon\",priority=\"0\"} 7\n",
			work{leads: true, reconciled: 4000003, queued: 7}, false,
		},
		"with an object that is worked on": {
			leading + counters + "controller_runtime_active_workers{controller=\"addon\"} 1\n",
			work{leads: true, reconciled: 4000003, queued: 1}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseWork(strings.NewReader(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(work{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.idle() != tc.idle {
				t.Errorf("idle is %t", got.idle())
			}
		})
	}
}
