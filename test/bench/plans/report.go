package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tandem-addons/tandem/test/bench/program"
	"github.com/tandem-addons/tandem/test/bench/spread"
	"github.com/tandem-addons/tandem/test/bench/stage"
	"github.com/tandem-addons/tandem/test/bench/version"
)

// row is the result of deploying a number of Instances at the same time, several times by addon-agent and by the bare client in turn. All
// but the ratio are from the pair of runs with the median ratio.
type row struct {
	run
	Ratio spread.Range `json:"ratio"`
	Pairs []pair       `json:"pairs"`
}

// pair holds the times of a run of addon-agent and the following one of the bare client.
type pair struct {
	Seconds           float64 `json:"seconds"`
	BareClientSeconds float64 `json:"bareClientSeconds"`
}

// ratio returns how many times longer addon-agent takes.
func (p pair) ratio() float64 { return p.Seconds / p.BareClientSeconds }

// newRow summarizes runs of the same number of Instances.
func newRow(runs []run) row {
	var ratios []float64
	r := row{}
	for _, run := range runs {
		ratios, r.Pairs = append(ratios, run.ratio()), append(r.Pairs, run.pair)
	}
	sorted := slices.SortedFunc(slices.Values(runs), func(a, b run) int { return cmp.Compare(a.ratio(), b.ratio()) })
	r.run, r.Ratio = sorted[len(sorted)/2], spread.Over(ratios)
	return r
}

// run is the result of a pair of runs.
type run struct {
	Instances int `json:"instances"`
	Steps     int `json:"steps"`
	pair
	StepsPerSecond     float64 `json:"stepsPerSecond"`
	Requests           int     `json:"requests"`
	BareClientRequests int     `json:"bareClientRequests"`
	RequestsPerStep    float64 `json:"requestsPerStep"`
	PeakMemoryMB       float64 `json:"peakMemoryMB"`
	// HubRequests are those of addon-agent to the hub.
	HubRequests int `json:"hubRequests"`
	// CPUSeconds and BareClientCPUSeconds are of all programs of both clusters, and of the benchmark.
	CPUSeconds           stage.CPU `json:"cpuSeconds"`
	BareClientCPUSeconds stage.CPU `json:"bareClientCPUSeconds"`
	// RequestsByKind counts the requests by purpose.
	RequestsByKind map[string]int `json:"requestsByKind"`
	// Trace lists all requests of the deployment of a single Instance.
	Trace   []traced `json:"trace,omitempty"`
	Removal removal  `json:"removal"`
}

// removal is the result of deleting all Instances on the hub.
type removal struct {
	// Seconds until no Instance is left on the hub.
	Seconds float64 `json:"seconds"`
	// Requests of addon-agent to the managed cluster.
	Requests int `json:"requests"`
	// HubRequests are those of addon-agent to the hub.
	HubRequests int       `json:"hubRequests"`
	CPUSeconds  stage.CPU `json:"cpuSeconds"`
}

func newRun(instances int, d deployed, bare replay, removed removal) run {
	r := run{
		Instances: instances, Steps: instances * steps(deploy),
		pair:     pair{Seconds: d.ended.Sub(d.began).Seconds(), BareClientSeconds: bare.ended.Sub(bare.began).Seconds()},
		Requests: d.total(), BareClientRequests: bare.requests, RequestsByKind: d.requests, PeakMemoryMB: d.usage.PeakMB(),
		HubRequests: d.toHub, CPUSeconds: d.cpu, BareClientCPUSeconds: bare.cpu, Removal: removed,
	}
	if instances == 1 {
		r.Trace = trace(d.log)
	}
	r.StepsPerSecond = float64(r.Steps) / r.Seconds
	r.RequestsPerStep = float64(r.Requests) / float64(r.Steps)
	return r
}

// report holds the results of a run.
type report struct {
	Cores      int            `json:"cores"`
	AddonAgent string         `json:"addonAgent"`
	Kubernetes string         `json:"kubernetes"`
	Runs       int            `json:"runs"`
	Limits     program.Limits `json:"limits"`
	Rows       []row          `json:"rows"`
	Rest       []resting      `json:"rest,omitempty"`
}

// describe returns a report with the measured versions and the machine.
func (b *bench) describe() (*report, error) {
	r := &report{Cores: runtime.NumCPU(), Runs: b.runs, Limits: b.limits}
	var err error
	if r.AddonAgent, err = version.Of(filepath.Join(b.programs, "addon-agent")); err != nil {
		return nil, err
	}
	r.Kubernetes, err = version.OfServer(b.Managed.Config())
	return r, err
}

// kinds of requests in the order of the report.
var kinds = []string{objectWrites, objectReads, statusWrites, instanceReads, mirror, events, caches, discoveries}

// Print writes the report as tables.
func (r *report) Print(out io.Writer) {
	if len(r.Rest) > 0 {
		r.printRest(out)
		return
	}
	fmt.Fprintf(out, "addon-agent %s, Kubernetes %s, %d cores; of %d pairs of runs the one with the median ratio\n",
		r.AddonAgent, r.Kubernetes, r.Cores, r.Runs)
	fmt.Fprintf(out, "limits of addon-agent and of the bare client: %s\n\n", &r.Limits)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "instances\tseconds\tbare client\tratio\tmin\tmax\tsteps/s\trequests\tbare client\tper step\tpeak MB\tremoval\trequests\t")
	for _, row := range r.Rows {
		fmt.Fprintf(w, "%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t%d\t%d\t%.1f\t%.0f\t%.2f\t%d\t\n", row.Instances, row.Seconds,
			row.BareClientSeconds, row.Ratio.Median, row.Ratio.Min, row.Ratio.Max, row.StepsPerSecond, row.Requests,
			row.BareClientRequests, row.RequestsPerStep, row.PeakMemoryMB, row.Removal.Seconds, row.Removal.Requests)
	}
	w.Flush()
	fmt.Fprintf(out, "\nrequests per step:\n")
	fmt.Fprintf(w, "instances\t%s\t\n", strings.Join(kinds, "\t"))
	for _, row := range r.Rows {
		fmt.Fprintf(w, "%d\t", row.Instances)
		for _, kind := range kinds {
			fmt.Fprintf(w, "%.2f\t", float64(row.RequestsByKind[kind])/float64(row.Steps))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	r.printCosts(out)
	r.printTraces(out)
}

// printRest writes what is requested and computed at rest.
func (r *report) printRest(out io.Writer) {
	fmt.Fprintf(out, "addon-agent %s, Kubernetes %s, %d cores\n\n", r.AddonAgent, r.Kubernetes, r.Cores)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "drift\tinstances\tcharts\tobjects\tminutes\trequests\tdry runs\twrites\tto the hub\taddon-agent CPU s\tall CPU s\t")
	for _, m := range r.Rest {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.0f\t%d\t%d\t%d\t%d\t%.1f\t%.1f\t\n", m.Drift, m.Instances, m.Charts, m.Objects, m.Minutes, m.Requests,
			m.DryRuns, m.Writes, m.HubRequests, m.CPUSeconds[stage.Managed+"/addon-agent"], m.CPUSeconds.Total())
	}
	w.Flush()
}

// printCosts writes the requests to the hub and the CPU seconds of each program.
func (r *report) printCosts(out io.Writer) {
	for _, row := range r.Rows {
		fmt.Fprintf(out, "\nCPU seconds with %d instances (requests to the hub: %d, and %d for the removal):\n",
			row.Instances, row.HubRequests, row.Removal.HubRequests)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "program\taddon-agent\tbare client\tremoval\t")
		for _, name := range slices.Sorted(maps.Keys(row.CPUSeconds)) {
			fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t\n", name, row.CPUSeconds[name], row.BareClientCPUSeconds[name], row.Removal.CPUSeconds[name])
		}
		fmt.Fprintf(w, "all\t%.2f\t%.2f\t%.2f\t\n", row.CPUSeconds.Total(), row.BareClientCPUSeconds.Total(), row.Removal.CPUSeconds.Total())
		w.Flush()
	}
}

// printTraces writes the requests of single Instances.
func (r *report) printTraces(out io.Writer) {
	for _, row := range r.Rows {
		if len(row.Trace) == 0 {
			continue
		}
		fmt.Fprintf(out, "\nrequests of one Instance:\n")
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "at ms\ttook ms\tkind\trequest")
		for _, request := range row.Trace {
			fmt.Fprintf(w, "%.1f\t%.1f\t%s\t%s %s\n", request.AtMS, request.TookMS, request.Kind, request.Verb, request.Object)
		}
		w.Flush()
	}
}

// Violations returns nil: a failed run has no report.
func (r *report) Violations() error { return nil }
