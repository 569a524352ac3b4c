package plan

import (
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Coming is an execution that is to start, and why.
type Coming struct {
	kudo.Execution
	Cause Cause
	// Changed are the parameters with another value than in the execution before, in the package's order; a first one has none.
	Changed []string
	// NoRestart are those of them whose change restarts no pods (KEP-27).
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

// Forecast lists the executions that start one after the other as long as each completes. The first has to wait for the end of the plan
// that runs where Choose starts nothing. A *MissingPlanError ends the list.
func Forecast(w Wish) ([]Coming, error) {
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
		w.LastStatus = kudo.Complete // nothing takes the place of what runs
	}
	var forecast []Coming
	for { // it ends: each execution makes up for a difference
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

// coming says why the execution starts after the last one.
func (w Wish) coming(start kudo.Execution) Coming {
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
