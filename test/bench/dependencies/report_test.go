package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/bench/process"
	"github.com/tandem-addons/tandem/test/bench/spread"
)

var second = usage{Usage: process.Usage{CPU: time.Second}}

// sample returns the report of a run without problems.
func sample() *report {
	r := &report{Clusters: 2, AddOns: 10, ManagedClusterAddOns: 20, Cores: 2}
	r.Limits = limits{Concurrency: 10}
	r.FleetFlip = &result{Writes: 2, WritesNeeded: 2}
	r.FleetFlip.compare([]pair{{0.5, 0.25}, {1, 2}, {3, 2}}, second)
	r.SharedDependencyFlip = &result{Writes: 8, WritesNeeded: 8}
	r.SharedDependencyFlip.compare([]pair{{1.3, 1}}, second)
	r.ClusterFlip, r.BusyClusterFlip, r.Restart, r.Rest = &result{}, &result{}, &result{}, &result{}
	return r
}

func TestReportPrintsTargets(t *testing.T) {
	var out strings.Builder
	sample().Print(&out)
	for _, want := range []string{
		"2 clusters × 10 add-ons = 20 ManagedClusterAddOns",
		"no limit of the rate, 10 workers",
		"medians of all pairs",
		"1.00       2.00   1.50  0.50  2.00",
		"target: ratio of fleetFlip at most 1.25: 1.50, missed",
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
		"seconds": 1.0, "bareLoopSeconds": 2.0, "ratio": map[string]any{"median": 1.5, "min": 0.5, "max": 2.0},
		"pairs": []any{
			map[string]any{"seconds": 0.5, "bareLoopSeconds": 0.25}, map[string]any{"seconds": 1.0, "bareLoopSeconds": 2.0},
			map[string]any{"seconds": 3.0, "bareLoopSeconds": 2.0},
		}, "standbyCPUSeconds": 1.0, "writes": 2.0, "writesNeeded": 2.0, "conflicts": 0.0, "events": 0.0,
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

func TestPairsAreSummedUp(t *testing.T) {
	f := newFlips()
	for _, bare := range []float64{0.006, 0.003} {
		o := expect([]verdict{{addOn: "b", cause: "a"}}, []string{"c"})
		o.add([]audit.Entry{writeEntry(others, "a", 200, 0, 10), writeEntry(judge, "b", 200, 12, 16)})
		f.add(o, usage{Usage: process.Usage{CPU: time.Second, Peak: 1 << 20}, cpuOf: map[string]time.Duration{"etcd": time.Second}}, bare, second)
	}
	r := f.result()
	if r.Writes != 2 || r.WritesNeeded != 2 || r.CPUSeconds != 2 || r.PeakMemoryMB != 1 || *r.StandbyCPUSeconds != 2 {
		t.Errorf("%+v, want the sums of two pairs", r)
	}
	if diff := cmp.Diff(spread.Range{Median: 1.5, Min: 1, Max: 2}, *r.Ratio); diff != "" {
		t.Errorf("ratio (-want +got):\n%s", diff)
	}
	if r.CPUSecondsOf["etcd"] != 2 || r.Reaction.P50 != 2 || r.Write.P50 != 4 {
		t.Errorf("%v, want 2 s of etcd; reaction %v and write %v, want 2 and 4 ms", r.CPUSecondsOf, r.Reaction, r.Write)
	}
	if r.Seconds != 0.006 || *r.P99Milliseconds != 6 {
		t.Errorf("%v s and p99 %v ms, want 0.006 s and 6 ms", r.Seconds, *r.P99Milliseconds)
	}
}

func TestInvariants(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*report)
		want   string
	}{
		"exactly the writes that are needed hold": {func(*report) {}, ""},
		"a ratio beyond the target breaks none":   {func(r *report) { r.FleetFlip.compare([]pair{{1, 0.1}}, usage{}) }, ""},
		"a write too many breaks one":             {func(r *report) { r.ClusterFlip.Writes = 1 }, "clusterFlip: 1 writes, 0 needed"},
		"a conflict breaks one":                   {func(r *report) { r.FleetFlip.Conflicts = 1 }, "fleetFlip: 1 conflicts"},
		"a write after a restart breaks one":      {func(r *report) { r.Restart.Writes = 1 }, "restart: 1 writes, 0 needed"},
		"a request that failed breaks one and is reported": {
			func(r *report) { r.Rest.wrong = []audit.Entry{writeEntry(judge, "a", 403, 0, 1)} },
			"rest: not wanted: patch  by " + judge + ": 403",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := sample()
			tc.change(r)
			text := ""
			if err := r.Violations(); err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(tc.want, text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
