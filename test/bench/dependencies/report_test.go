package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/bench/process"
)

// sample returns the report of a run without problems.
func sample() *report {
	r := &report{Clusters: 2, AddOns: 10, ManagedClusterAddOns: 20, Cores: 2}
	r.Limits = limits{QPS: 200, Burst: 400, Concurrency: 10}
	r.FleetFlip = result{Seconds: 1.1, Writes: 2, WritesNeeded: 2}
	r.FleetFlip.compare(1, process.Usage{CPU: time.Second})
	r.SharedDependencyFlip = result{Seconds: 1.3, Writes: 8, WritesNeeded: 8}
	r.SharedDependencyFlip.compare(1, process.Usage{CPU: time.Second})
	return r
}

func TestReportSaysWhetherTargetsAreReached(t *testing.T) {
	var out strings.Builder
	sample().Print(&out)
	for _, want := range []string{
		"2 clusters × 10 add-ons = 20 ManagedClusterAddOns",
		"target: ratio of fleetFlip at most 1.25: 1.10, reached",
		"target: ratio of sharedDependencyFlip at most 1.25: 1.30, missed",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}

func TestReportInJSONHasAnObjectForEachScenario(t *testing.T) {
	text, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"seconds": 1.1, "bareLoopSeconds": 1.0, "ratio": 1.1, "standbyCPUSeconds": 1.0, "writes": 2.0, "writesNeeded": 2.0, "conflicts": 0.0, "events": 0.0,
		"cpuSeconds": 0.0, "peakMemoryMB": 0.0,
	}
	if diff := cmp.Diff(want, got["fleetFlip"]); diff != "" {
		t.Errorf("fleetFlip (-want +got):\n%s", diff)
	}
	for _, row := range sample().rows() {
		if got[row.name] == nil {
			t.Errorf("there is no %s", row.name)
		}
	}
}

func TestInvariants(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*report)
		want   string
	}{
		"exactly the writes that are needed hold": {func(*report) {}, ""},
		"a ratio beyond the target breaks none":   {func(r *report) { r.FleetFlip.compare(0.1, process.Usage{}) }, ""},
		"a write too many breaks one":             {func(r *report) { r.ClusterFlip.Writes = 1 }, "clusterFlip: 1 writes, 0 needed"},
		"a conflict breaks one":                   {func(r *report) { r.FleetFlip.Conflicts = 1 }, "fleetFlip: 1 conflicts"},
		"a write after a restart breaks one":      {func(r *report) { r.Restart.Writes = 1 }, "restart: 1 writes, 0 needed"},
		"a request that failed breaks one and is told": {
			func(r *report) { r.Rest.wrong = []audit.Entry{logged(judge, "a", 403, 0, 1)} },
			"rest: not wanted: patch  by " + judge + ": 403",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := sample()
			tc.change(r)
			text := ""
			if err := r.Broken(); err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(tc.want, text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
