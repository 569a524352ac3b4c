package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/test/bench/spread"
)

// sampleRun returns a run in which both sides took that many seconds.
func sampleRun(seconds, bare float64) run {
	return run{Instances: 1, Steps: 5, pair: pair{Seconds: seconds, BareClientSeconds: bare}}
}

func TestARowHasTheRunOfTheMedianRatioAndTheRangeOfAll(t *testing.T) {
	r := newRow([]run{sampleRun(3, 1), sampleRun(10, 5), sampleRun(4, 4), sampleRun(9, 3), sampleRun(1, 2)})
	if diff := cmp.Diff(spread.Range{Median: 2, Min: 0.5, Max: 3}, r.Ratio); diff != "" {
		t.Errorf("ratio (-want +got):\n%s", diff)
	}
	if r.Seconds != 10 || r.BareClientSeconds != 5 {
		t.Errorf("the row has %v and %v seconds, want those of the second run", r.Seconds, r.BareClientSeconds)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"seconds":10`, `"ratio":{"median":2,"min":0.5,"max":3}`, `"pairs":[{"seconds":3,"bareClientSeconds":1},{"seconds":10,`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	var out strings.Builder
	(&report{Runs: 5, Rows: []row{r}}).Print(&out)
	if !strings.Contains(out.String(), "no limit of the rate") || !strings.Contains(strings.Join(strings.Fields(out.String()), " "), "10.00 5.00 2.00 0.50 3.00") {
		t.Errorf("printed\n%s", out.String())
	}
}
