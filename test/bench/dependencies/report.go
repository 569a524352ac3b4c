package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"

	"k8s.io/utils/ptr"

	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/bench/process"
	"github.com/tandem-addons/tandem/test/bench/spread"
	"github.com/tandem-addons/tandem/test/bench/version"
)

// Targets of a hub with two cores and 1,000 clusters × 20 add-ons.
const (
	targetRatio        = 1.25
	targetMilliseconds = 100.0
)

// result is the result of a scenario. Pointers are nil if a number does not apply.
type result struct {
	// Seconds and BareLoopSeconds are medians if there are several pairs.
	Seconds         float64       `json:"seconds"`
	BareLoopSeconds *float64      `json:"bareLoopSeconds,omitempty"`
	Ratio           *spread.Range `json:"ratio,omitempty"`
	Pairs           []pair        `json:"pairs,omitempty"`
	// StandbyCPUSeconds is the CPU time of addon-manager standing by beside the bare loop.
	StandbyCPUSeconds *float64 `json:"standbyCPUSeconds,omitempty"`
	Writes            int      `json:"writes"`
	WritesNeeded      int      `json:"writesNeeded"`
	Conflicts         int      `json:"conflicts"`
	Events            int      `json:"events"`
	CPUSeconds        float64  `json:"cpuSeconds"`
	PeakMemoryMB      float64  `json:"peakMemoryMB"`
	P50Milliseconds   *float64 `json:"p50Milliseconds,omitempty"`
	P99Milliseconds   *float64 `json:"p99Milliseconds,omitempty"`
	// Reaction and Write are the two parts of that time: until the API server receives the verdict's write, and until it has answered it.
	// FleetWrite is Write for the verdicts of the fleet meanwhile, in busyClusterFlip.
	Reaction   *spread.Spread `json:"reaction,omitempty"`
	Write      *spread.Spread `json:"write,omitempty"`
	FleetWrite *spread.Spread `json:"fleetWrite,omitempty"`
	// CPUSecondsOf is the CPU time of the other programs: the API server, etcd, and the benchmark.
	CPUSecondsOf map[string]float64 `json:"cpuSecondsOf,omitempty"`

	// wrong lists unexpected requests: surplus writes and failures.
	wrong []audit.Entry
	// resident is the memory at the end, in bytes.
	resident int64
}

// newResult returns the result of an observation and the resource usage.
func newResult(o *observation, used usage) result {
	r := result{
		Seconds: o.seconds(), Writes: len(o.sent), WritesNeeded: len(o.due), Conflicts: o.conflicts, Events: o.events,
		CPUSeconds: used.CPU.Seconds(), PeakMemoryMB: used.PeakMB(),
		CPUSecondsOf: used.seconds(),
		wrong:        append(append([]audit.Entry(nil), o.surplus...), o.failed...), resident: used.Resident,
	}
	r.spread(o.latencies())
	return r
}

func (r *result) spread(l latencies) {
	if len(l.whole) > 0 {
		found := spread.Of(l.whole)
		r.P50Milliseconds, r.P99Milliseconds = &found.P50, &found.P99
		r.Reaction, r.Write = ptr.To(spread.Of(l.reaction)), ptr.To(spread.Of(l.write))
	}
}

// pair holds the times of addon-manager and of the following bare loop for the same change.
type pair struct {
	Seconds         float64 `json:"seconds"`
	BareLoopSeconds float64 `json:"bareLoopSeconds"`
}

// flips sums up pairs.
type flips struct {
	whole         *observation
	latencies     latencies
	pairs         []pair
	used, stoodBy usage
	needed        int
}

func newFlips() *flips { return &flips{whole: expect(nil, nil)} }

// add adds a pair: what was observed of addon-manager, and the bare loop's seconds.
func (f *flips) add(o *observation, used usage, bare float64, stoodBy usage) {
	f.whole.join(o)
	f.latencies.join(o.latencies())
	f.needed += len(o.due)
	f.pairs = append(f.pairs, pair{Seconds: o.seconds(), BareLoopSeconds: bare})
	f.used = f.used.with(used.cpuOf)
	f.used.Usage = process.Usage{CPU: f.used.CPU + used.CPU, Peak: max(f.used.Peak, used.Peak), Resident: used.Resident}
	f.stoodBy.CPU += stoodBy.CPU
}

// result returns the result of all pairs.
func (f *flips) result() result {
	r := newResult(f.whole, f.used)
	r.WritesNeeded = f.needed
	r.spread(f.latencies)
	r.compare(f.pairs, f.stoodBy)
	return r
}

// compare adds the times of all pairs to the result.
func (r *result) compare(pairs []pair, stoodBy usage) {
	var seconds, bare, ratios []float64
	for _, p := range pairs {
		seconds, bare, ratios = append(seconds, p.Seconds), append(bare, p.BareLoopSeconds), append(ratios, p.Seconds/p.BareLoopSeconds)
	}
	r.Pairs, r.Seconds, r.BareLoopSeconds = pairs, spread.Over(seconds).Median, ptr.To(spread.Over(bare).Median)
	r.Ratio, r.StandbyCPUSeconds = ptr.To(spread.Over(ratios)), ptr.To(stoodBy.CPU.Seconds())
}

// report holds the results of a run.
type report struct {
	Clusters             int      `json:"clusters"`
	AddOns               int      `json:"addons"`
	ManagedClusterAddOns int      `json:"managedClusterAddOns"`
	Cores                int      `json:"cores"`
	Versions             versions `json:"versions"`
	Limits               limits   `json:"limits"`
	// Memory of addon-manager per 10,000 ManagedClusterAddOns, including its base usage: at rest, and the peak of all scenarios.
	RestingMemoryMBPer10000 float64 `json:"restingMemoryMBPer10000"`
	PeakMemoryMBPer10000    float64 `json:"peakMemoryMBPer10000"`

	// The scenarios; nil if not measured.
	FleetFlip            *result `json:"fleetFlip,omitempty"`
	SharedDependencyFlip *result `json:"sharedDependencyFlip,omitempty"`
	ClusterFlip          *result `json:"clusterFlip,omitempty"`
	BusyClusterFlip      *result `json:"busyClusterFlip,omitempty"`
	Restart              *result `json:"restart,omitempty"`
	Rest                 *result `json:"rest,omitempty"`
}

type versions struct {
	AddonManager string `json:"addonManager"`
	Kubernetes   string `json:"kubernetes"`
	Go           string `json:"go"`
}

// describe adds the measured versions and the machine.
func (b *bench) describe(r *report) error {
	r.Cores, r.ManagedClusterAddOns, r.Versions.Go = runtime.NumCPU(), b.fleet.size(), runtime.Version()
	var err error
	if r.Versions.AddonManager, err = version.Of(b.program); err != nil {
		return err
	}
	r.Versions.Kubernetes, err = version.OfServer(b.hub.server.Config)
	return err
}

// weigh updates the memory of addon-manager after a scenario.
func (b *bench) weigh(r *report) error {
	now, err := b.manager.usage()
	if err != nil {
		return err
	}
	tens := float64(r.ManagedClusterAddOns) / 10000
	r.RestingMemoryMBPer10000 = float64(now.Resident) / (1 << 20) / tens
	for _, row := range r.rows() {
		r.PeakMemoryMBPer10000 = max(r.PeakMemoryMBPer10000, row.PeakMemoryMB/tens)
	}
	return nil
}

// place is where a report holds the result of a scenario.
type place struct {
	name   string
	result **result
}

// places returns the places of all scenarios.
func (r *report) places() []place {
	return []place{
		{"fleetFlip", &r.FleetFlip}, {"sharedDependencyFlip", &r.SharedDependencyFlip}, {"clusterFlip", &r.ClusterFlip},
		{"busyClusterFlip", &r.BusyClusterFlip}, {"restart", &r.Restart}, {"rest", &r.Rest},
	}
}

// add adds the result of the scenario of that name.
func (r *report) add(name string, found *result) {
	for _, place := range r.places() {
		if place.name == name {
			*place.result = found
		}
	}
}

// scenarioNames returns the names of all scenarios.
func scenarioNames() []string {
	var names []string
	for _, place := range new(report).places() {
		names = append(names, place.name)
	}
	return names
}

// row is the result of a measured scenario.
type row struct {
	name string
	*result
}

// rows returns the results of the measured scenarios.
func (r *report) rows() []row {
	var rows []row
	for _, place := range r.places() {
		if *place.result != nil {
			rows = append(rows, row{place.name, *place.result})
		}
	}
	return rows
}

// Print writes the report as a table.
func (r *report) Print(out io.Writer) {
	fmt.Fprintf(out, "%d clusters × %d add-ons = %d ManagedClusterAddOns; %d cores; addon-manager %s, Kubernetes %s\n",
		r.Clusters, r.AddOns, r.ManagedClusterAddOns, r.Cores, r.Versions.AddonManager, r.Versions.Kubernetes)
	fmt.Fprintf(out, "limits of addon-manager and of the bare loop: %s, %d workers\n", &r.Limits.Limits, r.Limits.Concurrency)
	fmt.Fprintf(out, "seconds and ratio: medians of all pairs\n\n")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tpairs\tseconds\tbare loop\tratio\tmin\tmax\twrites\tneeded\tconflicts\tevents\tCPU s\tpeak MB\tp50 ms\tp99 ms\t")
	for _, row := range r.rows() {
		lowest, median, highest := row.ratio()
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%.2f\t%.0f\t%s\t%s\t\n", row.name, len(row.Pairs), row.Seconds,
			orDash(row.BareLoopSeconds, 2), orDash(median, 2), orDash(lowest, 2), orDash(highest, 2), row.Writes, row.WritesNeeded, row.Conflicts, row.Events, row.CPUSeconds, row.PeakMemoryMB,
			orDash(row.P50Milliseconds, 1), orDash(row.P99Milliseconds, 1))
	}
	w.Flush()
	r.printDetails(out)
	fmt.Fprintf(out, "\nmemory for each 10,000 ManagedClusterAddOns: %.0f MB at rest, %.0f MB at the peak\n",
		r.RestingMemoryMBPer10000, r.PeakMemoryMBPer10000)
	for _, row := range r.rows() {
		row.target(out)
	}
}

// printDetails writes a table of what the verdicts waited for, and one of the CPU time of each program.
func (r *report) printDetails(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nmilliseconds\treaction p50\tp99\tmax\twrite p50\tp99\tmax\tfleet's write p50\tp99\tmax\t")
	for _, row := range r.rows() {
		if row.Reaction != nil {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", row.name, cells(row.Reaction), cells(row.Write), cells(row.FleetWrite))
		}
	}
	w.Flush()
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nCPU seconds\tkube-apiserver\tetcd\tbenchmark\t")
	for _, row := range r.rows() {
		of := row.CPUSecondsOf
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t\n", row.name, of["kube-apiserver"], of["etcd"], of[benchmark])
	}
	w.Flush()
}

// cells returns the cells of a distribution in a table.
func cells(s *spread.Spread) string {
	if s == nil {
		return "-\t-\t-"
	}
	return fmt.Sprintf("%.1f\t%.1f\t%.1f", s.P50, s.P99, s.Max)
}

// target prints whether a scenario reaches its target.
func (r row) target(out io.Writer) {
	switch {
	case r.Ratio != nil:
		printTarget(out, "ratio of "+r.name, targetRatio, r.Ratio.Median)
	case r.P99Milliseconds != nil:
		printTarget(out, "p99 of "+r.name+" in ms", targetMilliseconds, *r.P99Milliseconds)
	}
}

func printTarget(out io.Writer, name string, want, got float64) {
	fmt.Fprintf(out, "target: %s at most %v: %.2f, %s\n", name, want, got, map[bool]string{true: "reached", false: "missed"}[got <= want])
}

// ratio returns the range of the ratio; nil if there is none.
func (r *result) ratio() (lowest, median, highest *float64) {
	if r.Ratio == nil {
		return nil, nil, nil
	}
	return &r.Ratio.Min, &r.Ratio.Median, &r.Ratio.Max
}

func orDash(number *float64, digits int) string {
	if number == nil {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, *number)
}

// shownWrong is the number of requests of a kind that are printed.
const shownWrong = 5

// Violations returns the violated invariants: exactly the necessary writes, no conflicts, no other failures. Speed is not an invariant.
func (r *report) Violations() error {
	var broken []error
	for _, row := range r.rows() {
		if row.Writes != row.WritesNeeded {
			broken = append(broken, fmt.Errorf("%s: %d writes, %d needed", row.name, row.Writes, row.WritesNeeded))
		}
		if row.Conflicts > 0 {
			broken = append(broken, fmt.Errorf("%s: %d conflicts", row.name, row.Conflicts))
		}
		for i := range row.wrong[:min(shownWrong, len(row.wrong))] {
			broken = append(broken, fmt.Errorf("%s: not wanted: %s", row.name, &row.wrong[i]))
		}
	}
	return errors.Join(broken...)
}
