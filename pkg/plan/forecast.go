package plan

import (
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Coming is an execution that will start, and why.
type Coming struct {
	kudo.Execution
	Cause Cause
	// Changed are the parameters with changed values since the previous execution, in the package's order; empty for the first execution.
	Changed []string
	// NoRestart are the changed parameters that restart no pods (KEP-27).
	NoRestart []string
}

// Cause is why an execution starts: the first difference in the order of DESIGN's table.
type Cause string

// The causes of an execution.
const (
	Installation     Cause = "Installation"
	OtherVersion     Cause = "OtherVersion"
	OtherParameters  Cause = "OtherParameters"
	RequestedByHand  Cause = "RequestedByHand"
	RemovalRequested Cause = "RemovalRequested"
)

// Forecast lists the executions that start one after the other if each completes. If Choose starts nothing, the first one waits for the end
// of the running plan. A *MissingPlanError ends the list.
func Forecast(w State) ([]Coming, error) {
	if w.Removing {
		if start := chooseCleanup(w).Start; start != nil {
			return []Coming{{Execution: *start, Cause: RemovalRequested}}, nil
		}
		return nil, nil
	}
	if w.Version == nil {
		return nil, nil
	}
	if choice, err := Choose(w); err != nil || choice.Start == nil {
		w.LastStatus = kudo.Complete // nothing supersedes a running plan
	}
	var forecast []Coming
	for { // terminates: each execution resolves a difference
		start, err := chooseStart(w)
		if err != nil || start == nil {
			return forecast, err
		}
		forecast = append(forecast, w.coming(*start))
		last := *start
		last.RestartPending = false
		w.Last, w.LastStatus, w.LastVersion = &last, kudo.Complete, w.Version
	}
}

// coming returns the execution and why it starts after the last one.
func (w State) coming(start kudo.Execution) Coming {
	c := Coming{Execution: start, Cause: RequestedByHand}
	if w.Last == nil {
		c.Cause = Installation
		return c
	}
	for _, p := range changedParameters(w.Version.Parameters, w.Last.Parameters, start.Parameters) {
		c.Cause, c.Changed = OtherParameters, append(c.Changed, p.Name)
		if p.ForcePodRestart != nil && !bool(*p.ForcePodRestart) {
			c.NoRestart = append(c.NoRestart, p.Name)
		}
	}
	if !sameVersion(start.OperatorVersion, w.Last.OperatorVersion) {
		c.Cause = OtherVersion
	}
	return c
}
