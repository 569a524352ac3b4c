package plan

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/parameter"
)

// Wish is what an Instance asks for, beside what was last started for it.
type Wish struct {
	// Version is the OperatorVersion that the Instance's spec asks for, nil if it is not there, and Reference its identity on the
	// hub.
	Version   *kudo.OperatorVersionSpec
	Reference corev1.ObjectReference

	// Generation of the Instance on the hub.
	Generation int64

	// Parameters of the Instance's spec.
	Parameters map[string]string

	// Request is the Instance's spec.planExecution.
	Request kudo.PlanExecution

	// Removing is true if the Instance is to be removed.
	Removing bool

	// Last is what was last started, nil if nothing ever was, and LastStatus what became of it.
	Last       *kudo.Execution
	LastStatus kudo.ExecutionStatus

	// LastVersion is the OperatorVersion of Last, nil if it is lost: the cleanup plan comes from there.
	LastVersion *kudo.OperatorVersionSpec
}

// Choice is what to do about a Wish. The zero value means that nothing is to be started or stopped.
type Choice struct {
	// Start is the execution to start, without its uid unless the uid was given (a plan run by hand). It supersedes one that
	// runs.
	Start *kudo.Execution

	// Version is what Start runs.
	Version *kudo.OperatorVersionSpec

	// Cancel is true if the running execution is to be ended.
	Cancel bool

	// Remove is true if what the Instance applied is to be removed, whatever else runs.
	Remove bool
}

// Due reports whether something is to be begun.
func (c Choice) Due() bool { return c.Start != nil || c.Remove }

// MissingPlanError reports that an OperatorVersion lacks the plan that should run.
type MissingPlanError struct{ Plan string }

func (e *MissingPlanError) Error() string {
	return fmt.Sprintf("the OperatorVersion has no plan %q", e.Plan)
}

// Choose compares what is wished for with what was last started (DESIGN §5, "Which plan runs"). It is level-triggered: it
// never asks what the last edit was. A *MissingPlanError says that the plan that should run does not exist.
func Choose(w Wish) (Choice, error) {
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

// Due is the plan that is to run next by what is wished for, whatever it may have to wait for; empty if there is none, or if it does
// not exist.
func Due(w Wish) string {
	if w.Removing || w.Version == nil {
		return ""
	}
	start, err := chooseStart(w)
	if err != nil || start == nil {
		return ""
	}
	return start.Plan
}

// chooseCleanup runs the cleanup plan to its end before anything is removed. It supersedes whatever runs, and is of what was
// last started. A cleanup plan that somebody ran by hand does not count: its uid is that of a request.
func chooseCleanup(w Wish) Choice {
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

// mustWait reports whether a running plan holds back another one. A change that selects the running plan restarts it; one that
// selects another plan waits, unless the running one is in ERROR, or cannot go on because its OperatorVersion is lost. What has
// stood in the spec since the running plan started is no change: of two plans that one edit triggers, the second waits for the
// end of the first, whatever comes of that.
func mustWait(w Wish, plan string) bool {
	if w.Last == nil || !w.LastStatus.Running() || w.Last.Plan == plan || w.LastVersion == nil {
		return false
	}
	return w.LastStatus != kudo.Error || w.Last.Generation == w.Generation
}

// chooseStart is the execution of the first difference between the wish and what was last started; nil if there is none.
func chooseStart(w Wish) (*kudo.Execution, error) {
	start, err := w.difference()
	if err != nil || start == nil {
		return nil, err
	}
	if _, exists := w.Version.Plans[start.Plan]; !exists {
		return nil, &MissingPlanError{Plan: start.Plan}
	}
	return start, nil
}

// difference finds the first difference, in the order of DESIGN's table.
func (w Wish) difference() (*kudo.Execution, error) {
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

// requested reports whether a plan is asked for by hand that was not run for it yet. The uid of what was last started asks for nothing
// either: that is what is left of a request to cancel it.
func (w Wish) requested() bool {
	request := w.Request
	return request.PlanName != "" && request.UID != "" && !request.Cancel && request.UID != w.Last.Request && request.UID != w.Last.UID
}

// update starts the plan that has its turn, with the values of the parameters that trigger it; the others keep what they had and
// have their turn when it has ended.
func (w Wish) update(changed []kudo.Parameter) (*kudo.Execution, error) {
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

// turn is the plan of the first changed parameter, in the package's order, but the running one if any of them triggers that: it
// is restarted, whatever else waits for its end.
func (w Wish) turn(changed []kudo.Parameter) (string, error) {
	if w.LastStatus.Running() {
		for _, p := range changed {
			if plan, err := TriggeredPlan(w.Version, p); err == nil && plan == w.Last.Plan {
				return plan, nil
			}
		}
	}
	return TriggeredPlan(w.Version, changed[0])
}

// execution is one of plan with values, which owes what the last one still owed.
func (w Wish) execution(plan string, values map[string]string, restart bool) *kudo.Execution {
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

// sameVersion compares identities: an OperatorVersion that was deleted and made again is another one.
func sameVersion(a, b corev1.ObjectReference) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name && a.UID == b.UID
}

// Trigger is a plan that a change of parameters names to be run, and the parameters that name it.
type Trigger struct {
	Plan       string
	Parameters []string
}

// Triggers lists the triggers of the parameters whose value in force differs, in the package's order. A parameter that names no
// trigger is not listed: as in KUDO it may change along with any other.
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

// changedParameters lists the parameters whose value in force differs, in the package's order.
func changedParameters(definitions []kudo.Parameter, before, after map[string]string) []kudo.Parameter {
	var changed []kudo.Parameter
	for i := range definitions {
		if p := &definitions[i]; parameter.InForce(p, before) != parameter.InForce(p, after) {
			changed = append(changed, *p)
		}
	}
	return changed
}

// TriggeredPlan is the plan that a change of p runs. A *MissingPlanError says that it does not exist.
func TriggeredPlan(version *kudo.OperatorVersionSpec, p kudo.Parameter) (string, error) {
	if p.Trigger != "" {
		return firstPlan(version, p.Trigger)
	}
	return firstPlan(version, kudo.UpdatePlan, kudo.DeployPlan)
}

// firstPlan is the first of names that exists. Its error names the last.
func firstPlan(version *kudo.OperatorVersionSpec, names ...string) (string, error) {
	for _, name := range names {
		if _, exists := version.Plans[name]; exists {
			return name, nil
		}
	}
	last := names[len(names)-1]
	return last, &MissingPlanError{Plan: last}
}
