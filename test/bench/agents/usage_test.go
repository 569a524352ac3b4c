package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/test/bench/process"
)

func TestARestartedProgramCountsFromItsStart(t *testing.T) {
	of := func(pid int, cpu time.Duration) reading {
		return reading{pid: pid, usage: process.Usage{CPU: cpu, Peak: 1 << 20}}
	}
	got := usageBetween(
		map[string]reading{"same": of(1, 5*time.Second), "restarted": of(2, 7*time.Second)},
		map[string]reading{"same": of(1, 8*time.Second), "restarted": of(3, 2*time.Second), "new": of(4, time.Second)},
	)
	want := map[string]usage{
		"same": {CPUSeconds: 3, PeakMemoryMB: 1}, "restarted": {CPUSeconds: 2, PeakMemoryMB: 1}, "new": {CPUSeconds: 1, PeakMemoryMB: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseWatches(t *testing.T) {
	const metrics = `# TYPE apiserver_longrunning_requests gauge
apiserver_longrunning_requests{group="",resource="pods",scope="cluster",subresource="",verb="WATCH",version="v1"} 3
apiserver_longrunning_requests{group="",resource="pods",scope="resource",subresource="exec",verb="CONNECT",version="v1"} 5
apiserver_longrunning_requests{group="kudo.dev",resource="instances",scope="namespace",subresource="",verb="WATCH",version="v1beta1"} 1e+03
apiserver_request_total{verb="WATCH"} 9
`
	if got, err := parseWatches(metrics); got != 1003 || err != nil {
		t.Errorf("got %d and error %v, want 1003", got, err)
	}
}
