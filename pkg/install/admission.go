package install

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tandem-addons/tandem/pkg/parameter"
	"github.com/tandem-addons/tandem/pkg/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

// write is a write of an Instance.
type write struct {
	before *Instance // nil on create
	after  Instance
}

// refusals are what an Instance's write is refused for, in the order in which the faults are named.
var refusals = []func(write) []string{parameterFaults, immutableFaults, triggerFaults, requestFaults}

// reservations are what a write is let in with, for it may still come right without another one: Resolved says the same then.
var reservations = []func(Instance) []Obstacle{nameRule, collisionRule, namespaceRule, versionRule, childrenRule}

// Admit says what admission has against a write of an Instance; before is nil on create. Only what the write itself brings about
// is refused or warned of: one that leaves the spec as it is, and one of an Instance that is being deleted, pass in silence.
//
// It applies the rules of Judge, which looks at what stands, to what changes. What Judge cannot see, for it is about the edit, is
// that one edit triggers two plans.
func Admit(before *Instance, after Instance) (warnings []string, err error) {
	if !after.Instance.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	w := write{before: before, after: after}
	var faults []string
	for _, rule := range refusals {
		faults = append(faults, rule(w)...)
	}
	if len(faults) > 0 {
		err = fmt.Errorf("Instance %s/%s: %s", after.Instance.Namespace, after.Instance.Name, strings.Join(text.Limit(faults, faultLimit, "more faults"), "; "))
	}
	warnings = append(idleCancel(w), revertedEdit(w)...)
	if !w.choosesVersion() {
		return warnings, err
	}
	for _, rule := range reservations {
		for _, obstacle := range rule(after) {
			warnings = append(warnings, "the Instance cannot run yet: "+obstacle.Message)
		}
	}
	return warnings, err
}

// choosesVersion reports whether the write says anew which OperatorVersion is run.
func (w write) choosesVersion() bool {
	return w.before == nil || VersionOf(w.before.Instance) != VersionOf(w.after.Instance)
}

// sets reports whether the write gives the parameter another value, or another OperatorVersion to be judged by.
func (w write) sets(name string) bool {
	if w.choosesVersion() {
		return true
	}
	was, given := w.before.Instance.Spec.Parameters[name]
	is, stays := w.after.Instance.Spec.Parameters[name]
	return given != stays || was != is
}

// setsAny reports whether the write gives any parameter another value.
func (w write) setsAny() bool {
	return w.choosesVersion() || !maps.Equal(w.before.Instance.Spec.Parameters, w.after.Instance.Spec.Parameters)
}

// parameterFaults: a parameter that is set is defined, and has a value of its type; those that are required are set.
func parameterFaults(w write) []string {
	if w.after.Version == nil {
		return nil
	}
	var invalid *parameter.InvalidError
	if !errors.As(parameter.Validate(&w.after.Version.Spec, w.after.Instance.Spec.Parameters), &invalid) {
		return nil
	}
	var faults []string
	for _, fault := range invalid.Faults {
		if w.sets(fault.Parameter) || (fault.Whole && w.setsAny()) {
			faults = append(faults, fault.String())
		}
	}
	return faults
}

// immutableFaults: an immutable parameter keeps the value that the spec gives it, started or not. An OperatorVersion that does not
// exist is taken to define what the other one does, so that no way leads round this over one that is missing.
//
// Where a value got past admission that differs from what was last started, Resolved asks for the latter: that way back is open.
func immutableFaults(w write) []string {
	if w.before == nil {
		return nil
	}
	before, after := *w.before, w.after
	before.Version, after.Version = cmp.Or(before.Version, after.Version), cmp.Or(after.Version, before.Version)
	now := setting(after.Instance.Spec.Parameters, after.Version)
	changed := parameter.Immutable(setting(before.Instance.Spec.Parameters, before.Version), now)
	if before.Instance.Status.Execution != nil {
		names := map[string]bool{}
		for _, fault := range changed {
			names[fault.Parameter] = true
		}
		changed = slices.DeleteFunc(startedFaults(before, now), func(f parameter.Fault) bool { return !names[f.Parameter] })
	}
	faults := make([]string, 0, len(changed))
	for _, fault := range changed {
		faults = append(faults, fault.String())
	}
	return faults
}

// triggerFaults: what one edit changes triggers one plan. Another OperatorVersion runs a plan of its own, whatever else changes.
func triggerFaults(w write) []string {
	if w.after.Version == nil || w.choosesVersion() {
		return nil
	}
	triggers := plan.Triggers(w.after.Version.Spec.Parameters, w.before.Instance.Spec.Parameters, w.after.Instance.Spec.Parameters)
	if len(triggers) < 2 {
		return nil
	}
	named := make([]string, 0, len(triggers))
	for _, trigger := range triggers {
		named = append(named, fmt.Sprintf("%q (%s)", trigger.Plan, strings.Join(trigger.Parameters, ", ")))
	}
	return []string{fmt.Sprintf("the parameters that change trigger %d plans, %s: change those of one plan at a time",
		len(triggers), strings.Join(named, " and "))}
}

// requestFaults: a plan that is asked for by hand exists.
func requestFaults(w write) []string {
	if !w.choosesVersion() && !w.requests() {
		return nil
	}
	var faults []string
	for _, obstacle := range requestRule(w.after) {
		faults = append(faults, obstacle.Message)
	}
	return faults
}

// requests reports whether the write asks for a plan, or to cancel one.
func (w write) requests() bool {
	return w.before == nil || w.before.Instance.Spec.PlanExecution != w.after.Instance.Spec.PlanExecution
}

// revertedEdit warns of an edit that addon-manager takes back, since it is the owner that says what the Instance is.
func revertedEdit(w write) []string {
	owner := metav1.GetControllerOf(w.after.Instance)
	if w.before == nil || owner == nil || !w.setsAny() {
		return nil
	}
	return []string{fmt.Sprintf("the Instance follows %s %q, and addon-manager takes edits of its parameters and OperatorVersion back: "+
		"change what that one gives it", owner.Kind, owner.Name)}
}

// idleCancel warns of a request that cancels nothing: what it names has ended, or it is meant to ask for a plan, and an earlier request has
// left cancel behind, which KUDO's clients know nothing of. It is not refused, for an execution may have ended a moment ago.
func idleCancel(w write) []string {
	request, status := w.after.Instance.Spec.PlanExecution, &w.after.Instance.Status
	if !request.Cancel || !w.requests() {
		return nil
	}
	if last := status.Execution; last != nil && last.UID == request.UID && status.PlanStatus[last.Plan].Status.Running() {
		return nil
	}
	warning := fmt.Sprintf("nothing is cancelled: no execution with uid %q runs", request.UID)
	if request.PlanName != "" {
		warning += fmt.Sprintf("; to run plan %q, set spec.planExecution.cancel to false", request.PlanName)
	}
	return []string{warning}
}
