package main

import (
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

// cost is what it costs to install or to remove.
type cost struct {
	// Seconds from the arrival of the first request until the response to the last write.
	Seconds        float64        `json:"seconds"`
	Requests       int            `json:"requests"`
	RequestsByVerb map[string]int `json:"requestsByVerb"`
	// ClientCPUSeconds and PeakMemoryMB are of addon-agent or of Helm, and ChildrenCPUSeconds of the processes that render charts.
	ClientCPUSeconds   float64 `json:"clientCPUSeconds"`
	ChildrenCPUSeconds float64 `json:"childrenCPUSeconds,omitempty"`
	PeakMemoryMB       float64 `json:"peakMemoryMB"`
	// CPUSeconds are of all programs of both clusters; those of Helm are not among them.
	CPUSeconds stage.CPU `json:"cpuSeconds"`
}

// cpu returns the CPU time of the client and of its children.
func (c cost) cpu() float64 { return c.ClientCPUSeconds + c.ChildrenCPUSeconds }

// round is one measurement of all sides.
type round struct {
	Agent   cost `json:"addonAgent"`
	Removal cost `json:"removal"`
	Helm    cost `json:"helm"`
}

// levels is the memory of a program in MB, with its children: before there are packages, the peak while all Instances start, at rest, and at rest after
// a restart.
type levels struct {
	Idle      float64 `json:"idle"`
	Peak      float64 `json:"peak"`
	Rest      float64 `json:"rest"`
	Restarted float64 `json:"restarted"`
}

// memory is the memory of the programs with packages of a kind.
type memory struct {
	Kind     packageKind       `json:"kind"`
	Packages int               `json:"packages"`
	MB       map[string]levels `json:"mb"`
}

// ratios are those of addon-agent to Helm.
type ratios struct {
	Seconds    spread.Range `json:"seconds"`
	Requests   spread.Range `json:"requests"`
	CPUSeconds spread.Range `json:"clientCPUSeconds"`
}

// report holds the results of a run.
type report struct {
	Cores      int    `json:"cores"`
	AddonAgent string `json:"addonAgent"`
	Instances  int    `json:"instances"`
	// Concurrency is the number of releases that Helm installs at a time.
	Concurrency int            `json:"concurrency"`
	Limits      program.Limits `json:"limits"`
	Ratios      *ratios        `json:"ratios,omitempty"`
	Rounds      []round        `json:"rounds,omitempty"`
	Memory      []memory       `json:"memory,omitempty"`
}

// describe returns a report with the measured version and the machine.
func (b *bench) describe() (*report, error) {
	r := &report{Cores: runtime.NumCPU(), Instances: b.instances, Concurrency: b.concurrency, Limits: b.limits}
	var err error
	r.AddonAgent, err = version.Of(filepath.Join(b.programs, "addon-agent"))
	return r, err
}

// summarize computes the ratios of all rounds.
func (r *report) summarize() {
	if len(r.Rounds) == 0 {
		return
	}
	over := func(of func(cost) float64) spread.Range {
		var ratios []float64
		for _, round := range r.Rounds {
			ratios = append(ratios, of(round.Agent)/of(round.Helm))
		}
		return spread.Over(ratios)
	}
	r.Ratios = &ratios{
		Seconds:    over(func(c cost) float64 { return c.Seconds }),
		Requests:   over(func(c cost) float64 { return float64(c.Requests) }),
		CPUSeconds: over(cost.cpu),
	}
}

// Print writes the report as tables.
func (r *report) Print(out io.Writer) {
	fmt.Fprintf(out, "addon-agent %s, %d cores, %d Instances, %d releases at a time; limits of addon-agent and of Helm: %s\n",
		r.AddonAgent, r.Cores, r.Instances, r.Concurrency, &r.Limits)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(r.Rounds) > 0 {
		fmt.Fprintln(w, "\nclient\tseconds\trequests\tclient CPU s\tchildren CPU s\tpeak MB\tall programs CPU s\tkube-apiserver CPU s\trequests by verb\t")
	}
	for _, round := range r.Rounds {
		printCost(w, "addon-agent", round.Agent)
		printCost(w, "removal", round.Removal)
		printCost(w, "Helm", round.Helm)
	}
	w.Flush()
	if of := r.Ratios; of != nil {
		fmt.Fprintf(out, "addon-agent / Helm: seconds %s, requests %s, CPU of the client %s\n",
			rangeOf(of.Seconds), rangeOf(of.Requests), rangeOf(of.CPUSeconds))
	}
	if len(r.Memory) > 0 {
		fmt.Fprintln(w, "\nMB with packages of\tpackages\tprogram\tidle\tpeak\trest\trestarted\t")
	}
	for _, m := range r.Memory {
		for _, name := range slices.Sorted(maps.Keys(m.MB)) {
			l := m.MB[name]
			fmt.Fprintf(w, "%s\t%d\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t\n", m.Kind, m.Packages, name, l.Idle, l.Peak, l.Rest, l.Restarted)
		}
	}
	w.Flush()
}

func printCost(w io.Writer, name string, c cost) {
	var verbs []string
	for _, verb := range slices.Sorted(maps.Keys(c.RequestsByVerb)) {
		verbs = append(verbs, fmt.Sprintf("%s %d", verb, c.RequestsByVerb[verb]))
	}
	fmt.Fprintf(w, "%s\t%.1f\t%d\t%.1f\t%.1f\t%.0f\t%.1f\t%.1f\t%s\t\n", name, c.Seconds, c.Requests, c.ClientCPUSeconds, c.ChildrenCPUSeconds,
		c.PeakMemoryMB, c.CPUSeconds.Total(), c.CPUSeconds[stage.Managed+"/kube-apiserver"], strings.Join(verbs, ", "))
}

func rangeOf(r spread.Range) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", r.Median, r.Min, r.Max)
}

// Violations returns nil: a failed run has no report.
func (r *report) Violations() error { return nil }
