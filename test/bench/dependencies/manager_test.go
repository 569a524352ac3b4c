package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
		"nothing yet":                     {"", work{}, false},
		"on standby":                      {counters, work{reconciled: 4000003}, false},
		"leading with nothing in a queue": {leading + counters, work{leads: true, reconciled: 4000003}, true},
		"leading before any reconcile":    {leading, work{leads: true}, false},
		"with objects that wait": {
			leading + counters + "workqueue_depth{controller=\"addon\",name=\"addon\",priority=\"0\"} 7\n",
			work{leads: true, reconciled: 4000003, queued: 7}, false,
		},
		"with objects that wait for those": {
			leading + counters + "addon_queue_backlog{controller=\"addon\"} 7\n",
			work{leads: true, reconciled: 4000003, queued: 7}, false,
		},
		"leading before most objects are reconciled": {
			leading + "controller_runtime_reconcile_total{controller=\"addon\",result=\"success\"} 999\n", work{leads: true, reconciled: 999}, false,
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
			if got.idle(1000) != tc.idle {
				t.Errorf("idle is %t", got.idle(1000))
			}
		})
	}
}
