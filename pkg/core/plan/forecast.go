package plan

import (
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Coming is an execution that will start, and why.
type Coming struct {
	kudo.Execution
	Cause Cause
	// Changed are the parameters with changed values since the previous execution, in the package's order; empty for the first execution.
	Changed []string
	// Registries is true if the image registries differ from those of the previous execution; false for the first one.
	Registries bool
	// NoRestart are the changed parameters that restart no pods (KEP-27).
	NoRestart []string
	// Restart is true if pods restart that no execution before it has restarted.
	Restart bool
	// Whole is true if the execution applies the complete OperatorVersion.
	Whole bool

	// before is the state before the execution.
	before State
}

// Cause is why an execution starts: the first difference in the order of DESIGN's table.
type Cause string

// The causes of an execution.
const (
	Installation     Cause = "Installation"
	OtherVersion     Cause = "OtherVersion"
	OtherParameters  Cause = "OtherParameters"
	OtherRegistries  Cause = "OtherImageRegistries"
	StillOwed        Cause = "StillOwed"
	RequestedByHand  Cause = "RequestedByHand"
	RemovalRequested Cause = "RemovalRequested"
)

// Forecast lists the executions that start one after the other if each completes. If Choose starts nothing, the first one waits for the end
// of the running plan. A *MissingPlanError ends the list.
func Forecast(s State) ([]Coming, error) {
	if s.Removing {
		if start := chooseCleanup(s).Start; start != nil {
			return []Coming{{Execution: *start, Cause: RemovalRequested}}, nil
		}
		return nil, nil
	}
	if s.Version == nil {
		return nil, nil
	}
	if choice, err := Choose(s); s.LastStatus.IsRunning() && (err != nil || choice.Start == nil) {
		s = s.AfterCompletion() // nothing supersedes the running plan
	}
	var forecast []Coming
	restarts := map[string]bool{} // the owed plans whose pods restart, too
	var taken []kudo.Parameter    // the changed parameters whose values the last whole plan takes, also for the plans that they trigger

	for { // terminates: each execution resolves a difference, settles an owed plan, or handles the request
		choice, err := s.next()
		if err != nil || choice.Start == nil {
			return forecast, err
		}
		coming := s.newComing(choice).withRestart(choice, restarts)
		if coming.Whole {
			taken = s.changedBy(choice.Start)
		}
		forecast = append(forecast, coming.triggeredBy(taken))
		s = s.after(choice.Start, s.Version)
	}
}

// withRestart returns the execution with its restart of pods, and updates the owed plans whose pods restart.
func (c Coming) withRestart(choice Choice, owed map[string]bool) Coming {
	for name := range AffectedPlans(choice.Start) {
		owed[name] = owed[name] || choice.Restart
	}
	c.Restart = owed[c.Plan]
	delete(owed, c.Plan)
	return c
}

// triggeredBy returns the execution of an owed plan with the changed parameters that trigger it.
func (c Coming) triggeredBy(changed []kudo.Parameter) Coming {
	if c.Cause != StillOwed {
		return c
	}
	for _, p := range changed {
		if p.Trigger == c.Plan {
			c.change(p)
		}
	}
	return c
}

// change adds a changed parameter, which is the cause of the execution.
func (c *Coming) change(p kudo.Parameter) {
	c.Cause, c.Changed = OtherParameters, append(c.Changed, p.Name)
	if !RestartsPods(p) {
		c.NoRestart = append(c.NoRestart, p.Name)
	}
}

// AfterCompletion returns the state after the last execution has completed.
func (s State) AfterCompletion() State { return s.after(s.Last, s.LastVersion) }

// after returns the state after an execution of version has completed.
func (s State) after(execution *kudo.Execution, version *kudo.OperatorVersionSpec) State {
	status := s.completedStatus(*execution, version)
	s.Last, s.LastStatus, s.LastVersion, s.Whole = status.Execution, kudo.Complete, version, status.Whole
	return s
}

// completedStatus returns the status of the Instance after an execution of version has completed.
func (s State) completedStatus(execution kudo.Execution, version *kudo.OperatorVersionSpec) kudo.InstanceStatus {
	status := kudo.InstanceStatus{
		Execution: &execution, Whole: s.Whole, HandledRequests: s.Handled,
		PlanStatus: map[string]kudo.PlanStatus{execution.Plan: {Name: execution.Plan, Status: kudo.Complete, UID: execution.UID}},
	}
	if execution.Plan == kudo.CleanupPlan {
		status.Whole = nil
	}
	return recordEnd(status, version, "")
}

// newComing returns the execution and why it starts after the last one.
func (s State) newComing(choice Choice) Coming {
	start := *choice.Start
	c := Coming{Execution: start, Cause: RequestedByHand, before: s}
	if at := owedIndex(start.Owed, start.Plan); at >= 0 {
		c.Whole = start.Owed[at].Whole
	}
	if s.Last == nil {
		c.Cause = Installation
		return c
	}
	for _, p := range s.changedBy(&start) {
		c.change(p)
	}
	c.Registries = !slices.Equal(s.Last.ImageRegistries, start.ImageRegistries)
	switch {
	case s.isOtherVersion():
		c.Cause = OtherVersion
	case len(c.Changed) == 0 && c.Registries:
		c.Cause = OtherRegistries
	case len(c.Changed) == 0 && start.UID == "":
		c.Cause = StillOwed
	}
	return c
}

// changedBy returns the parameters whose values an execution changes; none for the first execution.
func (s State) changedBy(start *kudo.Execution) []kudo.Parameter {
	if s.Last == nil {
		return nil
	}
	return changedParameters(s.Version.Parameters, s.lastValues(), valuesIn(start))
}

// CompletedStatus returns the status of an Instance once the forecast execution of version has completed.
func (c Coming) CompletedStatus(version *kudo.OperatorVersionSpec) kudo.InstanceStatus {
	return c.before.completedStatus(c.Execution, version)
}
