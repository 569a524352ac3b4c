package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"

	"github.com/tandem-addons/tandem/test/bench/process"
	"github.com/tandem-addons/tandem/test/bench/program"
	"github.com/tandem-addons/tandem/test/bench/spread"
	"github.com/tandem-addons/tandem/test/bench/version"
)

// targetMilliseconds is the 99th-percentile target from the start of a step to the existence of its child.
const targetMilliseconds = 2000.0

// report holds the results of a run.
type report struct {
	Parents      int            `json:"parents"`
	ChildrenEach int            `json:"childrenEach"`
	Namespaces   int            `json:"namespaces"`
	Cores        int            `json:"cores"`
	Versions     versions       `json:"versions"`
	Limits       program.Limits `json:"limits"`

	Deploy    deployment `json:"deploy"`
	Rest      rest       `json:"rest"`
	Update    update     `json:"update"`
	Uninstall uninstall  `json:"uninstall"`
}

type versions struct {
	AddonManager string `json:"addonManager"`
	AddonAgent   string `json:"addonAgent"`
	Kubernetes   string `json:"kubernetes"`
}

// scenario holds the results of a change of the fleet.
type scenario struct {
	Seconds float64 `json:"seconds"`
	Manager load    `json:"addonManager"`
	Agent   load    `json:"addonAgent"`

	// wrong lists failed writes, and Instances that have run an unexpected number of plans.
	wrong []string
}

// load holds the writes and resource usage of a program until everything had settled.
type load struct {
	Writes       int     `json:"writes"`
	Conflicts    int     `json:"conflicts"`
	CPUSeconds   float64 `json:"cpuSeconds"`
	PeakMemoryMB float64 `json:"peakMemoryMB"`
}

func newLoad(w writes, used process.Usage) load {
	return load{Writes: w.all, Conflicts: w.conflicts, CPUSeconds: used.CPU.Seconds(), PeakMemoryMB: used.PeakMB()}
}

// deployment is the scenario that creates all children.
type deployment struct {
	scenario
	Children int `json:"children"`
	// StepToChild is the time from the record of a child's step in progress to the existence of the child, including the report in between.
	StepToChild   spread.Spread `json:"stepToChild"`
	StepToReport  spread.Spread `json:"stepToReport"`
	ReportToChild spread.Spread `json:"reportToChild"`
}

type rest struct {
	Seconds float64 `json:"seconds"`
	Writes  int     `json:"writes"`

	wrong []string
}

// update is the scenario in which parents change a parameter of one child each.
type update struct {
	scenario
	ChildrenReached int `json:"childrenReached"`
	ChildrenRun     int `json:"childrenRun"`
}

type uninstall struct {
	scenario
	// Left lists the objects that remain on either cluster.
	Left []string `json:"left"`
}

// newScenario returns the results of an observation in which each of the Instances must run one plan, and no other Instance any.
func newScenario(o *observation, ran []string, managerUsed, agentUsed process.Usage) scenario {
	s := scenario{
		Seconds: o.ended.Sub(o.began).Seconds(), Manager: newLoad(o.manager, managerUsed), Agent: newLoad(o.agent, agentUsed),
		wrong: slices.Concat(o.manager.failed, o.agent.failed),
	}
	got, want := o.ran(), map[string]int{}
	for _, name := range ran {
		want[name] = 1
	}
	for _, name := range slices.Sorted(maps.Keys(union(got, want))) {
		if got[name] != want[name] {
			s.wrong = append(s.wrong, fmt.Sprintf("Instance %q ran %d plans, want %d", name, got[name], want[name]))
		}
	}
	return s
}

func union(a, b map[string]int) map[string]int {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

// describe adds the measured versions and the machine.
func (b *bench) describe(r *report) (err error) {
	r.Parents, r.ChildrenEach, r.Namespaces = b.fleet.parents, b.fleet.children, b.fleet.namespaces
	r.Cores, r.Limits = runtime.NumCPU(), b.limits
	if r.Versions.AddonManager, err = version.Of(filepath.Join(b.programs, "addon-manager")); err != nil {
		return err
	}
	if r.Versions.AddonAgent, err = version.Of(filepath.Join(b.programs, "addon-agent")); err != nil {
		return err
	}
	r.Versions.Kubernetes, err = version.OfServer(b.Hub.Config())
	return err
}

// Print writes the report as tables.
func (r *report) Print(out io.Writer) {
	fmt.Fprintf(out, "%d parents with %d children each in %d namespaces; %d cores; addon-manager %s, addon-agent %s, Kubernetes %s\n",
		r.Parents, r.ChildrenEach, r.Namespaces, r.Cores, r.Versions.AddonManager, r.Versions.AddonAgent, r.Versions.Kubernetes)
	fmt.Fprintf(out, "limits of addon-agent towards the hub: %s\n\n", &r.Limits)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\t\taddon-manager\t\t\t\taddon-agent\t\t\t\t")
	fmt.Fprintln(w, "\tseconds\twrites\tconflicts\tCPU s\tpeak MB\twrites\tconflicts\tCPU s\tpeak MB\t")
	for _, row := range r.scenarios() {
		fmt.Fprintf(w, "%s\t%.1f\t", row.name, row.Seconds)
		for _, l := range []load{row.Manager, row.Agent} {
			fmt.Fprintf(w, "%d\t%d\t%.1f\t%.0f\t", l.Writes, l.Conflicts, l.CPUSeconds, l.PeakMemoryMB)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintf(out, "\n%d children, in ms:\n", r.Deploy.Children)
	fmt.Fprintln(w, "\tp50\tp99\tmax\t")
	for _, row := range []struct {
		name string
		spread.Spread
	}{{"step to child", r.Deploy.StepToChild}, {"step to report", r.Deploy.StepToReport}, {"report to child", r.Deploy.ReportToChild}} {
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f\t\n", row.name, row.P50, row.P99, row.Max)
	}
	w.Flush()
	fmt.Fprintf(out, "\nrest: %d writes in %.0f s\n", r.Rest.Writes, r.Rest.Seconds)
	fmt.Fprintf(out, "update: %d children reached, %d ran a plan\n", r.Update.ChildrenReached, r.Update.ChildrenRun)
	fmt.Fprintf(out, "uninstall: %d objects left\n", len(r.Uninstall.Left))
	fmt.Fprintf(out, "target: p99 of step to child in ms at most %v: %.0f, %s\n", targetMilliseconds, r.Deploy.StepToChild.P99,
		map[bool]string{true: "reached", false: "missed"}[r.Deploy.StepToChild.P99 <= targetMilliseconds])
}

// named is a scenario with its name.
type named struct {
	name string
	*scenario
}

func (r *report) scenarios() []named {
	return []named{{"deploy", &r.Deploy.scenario}, {"update", &r.Update.scenario}, {"uninstall", &r.Uninstall.scenario}}
}

// shownWrong is the number of problems of a kind that are printed.
const shownWrong = 5

// Violations returns the violated invariants: every child exists, each Instance runs the expected plans and no other, no write fails, there
// are no writes at rest, and nothing remains at the end. Speed is not an invariant.
func (r *report) Violations() error {
	var broken []error
	for _, row := range r.scenarios() {
		broken = append(broken, first(row.name, row.wrong)...)
	}
	if want := r.Parents * r.ChildrenEach; r.Deploy.Children != want {
		broken = append(broken, fmt.Errorf("deploy: %d children are there whose step was seen to begin, want %d", r.Deploy.Children, want))
	}
	if r.Update.ChildrenRun != r.Update.ChildrenReached {
		broken = append(broken, fmt.Errorf("update: %d children ran a plan, want %d", r.Update.ChildrenRun, r.Update.ChildrenReached))
	}
	if r.Rest.Writes > 0 {
		broken = append(broken, fmt.Errorf("rest: %d writes", r.Rest.Writes))
	}
	broken = append(broken, first("rest", r.Rest.wrong)...)
	return errors.Join(append(broken, first("uninstall: left", r.Uninstall.Left)...)...)
}

// first returns the first problems as errors.
func first(what string, wrong []string) []error {
	var found []error
	for _, line := range wrong[:min(shownWrong, len(wrong))] {
		found = append(found, fmt.Errorf("%s: %s", what, line))
	}
	return found
}
