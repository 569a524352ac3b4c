package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/test/bench/spread"
)

func TestRatiosAreOfTheSameRound(t *testing.T) {
	side := func(seconds float64, requests int, cpu, children float64) cost {
		return cost{Seconds: seconds, Requests: requests, ClientCPUSeconds: cpu, ChildrenCPUSeconds: children}
	}
	r := &report{Instances: 100, Concurrency: 8, Rounds: []round{
		{Agent: side(5, 50, 1, 1), Helm: side(10, 100, 8, 0)},
		{Agent: side(9, 50, 2, 2), Helm: side(10, 200, 8, 0)},
		{Agent: side(14, 90, 3, 1), Helm: side(20, 100, 8, 0)},
	}}
	r.summarize()
	want := &ratios{
		Seconds:    spread.Range{Median: 0.7, Min: 0.5, Max: 0.9},
		Requests:   spread.Range{Median: 0.5, Min: 0.25, Max: 0.9},
		CPUSeconds: spread.Range{Median: 0.5, Min: 0.25, Max: 0.5},
	}
	if diff := cmp.Diff(want, r.Ratios); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Memory = []memory{{Kind: charts, Packages: 20, MB: map[string]levels{"addon-agent": {Idle: 60, Peak: 240, Rest: 90, Restarted: 80}}}}
	var out strings.Builder
	r.Print(&out)
	printed := strings.Join(strings.Fields(out.String()), " ")
	for _, part := range []string{
		"no limit of the rate", "addon-agent 5.0 50 1.0 1.0", "Helm 10.0 100 8.0", "seconds 0.70 (0.50 to 0.90)", "charts 20 addon-agent 60 240 90 80",
	} {
		if !strings.Contains(printed, part) {
			t.Errorf("%q is not in\n%s", part, out.String())
		}
	}
}

func TestAReportWithoutRoundsHasNoRatios(t *testing.T) {
	r := &report{}
	if r.summarize(); r.Ratios != nil {
		t.Errorf("ratios %v of nothing", r.Ratios)
	}
}
