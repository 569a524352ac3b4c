package plan

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/parameter"
)

// State is the desired state of an Instance, together with its last execution.
type State struct {
	// Version is the OperatorVersion that the Instance's spec names, nil if it does not exist, and Reference its identity on the hub.
	Version   *kudo.OperatorVersionSpec
	Reference corev1.ObjectReference

	// Generation is the Instance's generation on the hub.
	Generation int64

	// Parameters are the parameters in the Instance's spec.
	Parameters map[string]string

	// Request is the Instance's spec.planExecution.
	Request kudo.PlanExecution

	// Removing is true if the Instance is to be removed.
	Removing bool

	// Last is the last started execution, nil if there is none, and LastStatus its status.
	Last       *kudo.Execution
	LastStatus kudo.ExecutionStatus

	// LastVersion is the OperatorVersion of Last, nil if it is lost. It provides the cleanup plan.
	LastVersion *kudo.OperatorVersionSpec
}

// Choice is the action for a State. The zero value means that nothing is started or stopped.
type Choice struct {
	// Start is the execution to start, without a uid unless the request has one (a manually requested plan). It supersedes a running
	// execution.
	Start *kudo.Execution

	// Version is the OperatorVersion of Start.
	Version *kudo.OperatorVersionSpec

	// Cancel is true if the running execution is to be cancelled.
	Cancel bool

	// Remove is true if the applied objects of the Instance are to be removed, whatever else runs.
	Remove bool
}

// Due reports whether the choice starts an execution or a removal.
func (c Choice) Due() bool { return c.Start != nil || c.Remove }

// MissingPlanError reports that an OperatorVersion lacks the plan to run.
type MissingPlanError struct{ Plan string }

func (e *MissingPlanError) Error() string {
	return fmt.Sprintf("the OperatorVersion has no plan %q", e.Plan)
}

// Choose compares the desired state with the last execution (DESIGN §5, "Which plan runs"). It is level-triggered: it does not depend on
// the last edit. A *MissingPlanError means that the plan to run does not exist.
func Choose(w State) (Choice, error) {
	if w.Removing {
		return chooseCleanup(w), nil
	}
	if w.Last != nil && w.Request.Cancel && w.Request.UID == w.Last.UID && w.LastStatus.Running() {
		return Choice{Cancel: true}, nil
	}
	if w.Version == nil {
		return Choice{}, nil
	}
	start, err := chooseStart(w)
	if err != nil || start == nil {
		return Choice{}, err
	}
	if mustWait(w, start.Plan) {
		return Choice{}, nil
	}
	return Choice{Start: start, Version: w.Version}, nil
}

// Due returns the plan that the desired state requires next, regardless of what it has to wait for; empty if there is none or if it does
// not exist.
func Due(w State) string {
	if w.Removing || w.Version == nil {
		return ""
	}
	start, err := chooseStart(w)
	if err != nil || start == nil {
		return ""
	}
	return start.Plan
}

// chooseCleanup runs the cleanup plan of the last execution to completion before objects are removed. It supersedes any running plan. A
// manually requested cleanup plan does not count: it has the uid of a request.
func chooseCleanup(w State) Choice {
	if w.Last == nil || w.LastVersion == nil {
		return Choice{Remove: true}
	}
	if _, exists := w.LastVersion.Plans[kudo.CleanupPlan]; !exists {
		return Choice{Remove: true}
	}
	if w.Last.Plan == kudo.CleanupPlan && w.Last.UID != w.Last.Request && w.LastStatus != kudo.FatalError {
		return Choice{Remove: w.LastStatus == kudo.Complete}
	}
	start := *w.Last
	start.Plan = kudo.CleanupPlan
	start.UID = ""
	return Choice{Start: &start, Version: w.LastVersion}
}

// mustWait reports whether a running plan blocks another one. A change that selects the running plan restarts it. A change that selects
// another plan waits, unless the running one is in ERROR or cannot continue because its OperatorVersion is lost. A value that was in the
// spec when the running plan started is not a change: if one edit triggers two plans, the second waits for the end of the first, whatever
// its outcome.
func mustWait(w State, plan string) bool {
	if w.Last == nil || !w.LastStatus.Running() || w.Last.Plan == plan || w.LastVersion == nil {
		return false
	}
	return w.LastStatus != kudo.Error || w.Last.Generation == w.Generation
}

// chooseStart returns the execution for the first difference between the desired state and the last execution; nil if there is none.
func chooseStart(w State) (*kudo.Execution, error) {
	start, err := w.difference()
	if err != nil || start == nil {
		return nil, err
	}
	if _, exists := w.Version.Plans[start.Plan]; !exists {
		return nil, &MissingPlanError{Plan: start.Plan}
	}
	return start, nil
}

// difference returns the execution for the first difference, in the order of DESIGN's table.
func (w State) difference() (*kudo.Execution, error) {
	if w.Last == nil {
		return w.execution(kudo.DeployPlan, w.Parameters, true), nil
	}
	if !sameVersion(w.Reference, w.Last.OperatorVersion) {
		plan, err := firstPlan(w.Version, kudo.UpgradePlan, kudo.UpdatePlan, kudo.DeployPlan)
		return w.execution(plan, w.Parameters, true), err
	}
	if changed := changedParameters(w.Version.Parameters, w.Last.Parameters, w.Parameters); len(changed) > 0 {
		return w.update(changed)
	}
	if w.requested() {
		start := w.execution(w.Request.PlanName, w.Last.Parameters, false)
		start.UID, start.Request = w.Request.UID, w.Request.UID
		return start, nil
	}
	return nil, nil
}

// requested reports whether there is a manual plan request that has not run yet. A request with the uid of the last execution requests
// nothing: it is left over from a request to cancel that execution.
func (w State) requested() bool {
	request := w.Request
	return request.PlanName != "" && request.UID != "" && !request.Cancel && request.UID != w.Last.Request && request.UID != w.Last.UID
}

// update starts the next plan with the values of the parameters that trigger it. The other parameters keep their values until the plan has
// ended.
func (w State) update(changed []kudo.Parameter) (*kudo.Execution, error) {
	plan, err := w.turn(changed)
	if err != nil {
		return nil, err
	}
	values := maps.Clone(w.Last.Parameters)
	if values == nil {
		values = map[string]string{}
	}
	restart := false
	for _, p := range changed {
		if triggered, _ := TriggeredPlan(w.Version, p); triggered != plan {
			continue
		}
		if value, given := w.Parameters[p.Name]; given {
			values[p.Name] = value
		} else {
			delete(values, p.Name)
		}
		restart = restart || p.ForcePodRestart == nil || bool(*p.ForcePodRestart)
	}
	return w.execution(plan, values, restart), nil
}

// turn returns the plan of the first changed parameter, in the package's order. If any changed parameter triggers the running plan, it
// returns that plan: it is restarted, whatever other plans are queued.
func (w State) turn(changed []kudo.Parameter) (string, error) {
	if w.LastStatus.Running() {
		for _, p := range changed {
			if plan, err := TriggeredPlan(w.Version, p); err == nil && plan == w.Last.Plan {
				return plan, nil
			}
		}
	}
	return TriggeredPlan(w.Version, changed[0])
}

// execution returns an execution of plan with values. It inherits the pending restarts of the last one.
func (w State) execution(plan string, values map[string]string, restart bool) *kudo.Execution {
	started := &kudo.Execution{
		Plan:            plan,
		Generation:      w.Generation,
		OperatorVersion: w.Reference,
		Parameters:      values,
		RestartPending:  restart,
	}
	if w.Last != nil {
		started.RestartPending = restart || w.Last.RestartPending
		started.Request = w.Last.Request
	}
	return started
}

// sameVersion compares identities: an OperatorVersion that was deleted and re-created is a different one.
func sameVersion(a, b corev1.ObjectReference) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name && a.UID == b.UID
}

// Trigger is a plan and the changed parameters that trigger it.
type Trigger struct {
	Plan       string
	Parameters []string
}

// Triggers lists the plans that the parameters with a changed effective value trigger, in the package's order. It omits a parameter without
// a trigger, which may change along with any other, as in KUDO.
func Triggers(definitions []kudo.Parameter, before, after map[string]string) []Trigger {
	var triggers []Trigger
	places := map[string]int{}
	for _, p := range changedParameters(definitions, before, after) {
		if p.Trigger == "" {
			continue
		}
		at, known := places[p.Trigger]
		if !known {
			at, triggers = len(triggers), append(triggers, Trigger{Plan: p.Trigger})
			places[p.Trigger] = at
		}
		triggers[at].Parameters = append(triggers[at].Parameters, p.Name)
	}
	return triggers
}

// changedParameters lists the parameters with a changed effective value, in the package's order.
func changedParameters(definitions []kudo.Parameter, before, after map[string]string) []kudo.Parameter {
	var changed []kudo.Parameter
	for i := range definitions {
		if p := &definitions[i]; parameter.InForce(p, before) != parameter.InForce(p, after) {
			changed = append(changed, *p)
		}
	}
	return changed
}

// TriggeredPlan returns the plan that a change of p runs. A *MissingPlanError means that it does not exist.
func TriggeredPlan(version *kudo.OperatorVersionSpec, p kudo.Parameter) (string, error) {
	if p.Trigger != "" {
		return firstPlan(version, p.Trigger)
	}
	return firstPlan(version, kudo.UpdatePlan, kudo.DeployPlan)
}

// firstPlan returns the first of names that exists. Its error names the last.
func firstPlan(version *kudo.OperatorVersionSpec, names ...string) (string, error) {
	for _, name := range names {
		if _, exists := version.Plans[name]; exists {
			return name, nil
		}
	}
	last := names[len(names)-1]
	return last, &MissingPlanError{Plan: last}
}
