package install

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/former"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/resume"
	"github.com/tandem-addons/tandem/pkg/text"
)

// write is a create or update of an Instance.
type write struct {
	before *Instance // nil on create
	after  Instance
}

// refusals are the rules that reject a write, in the order in which their problems are listed.
var refusals = []func(write) []string{reservedProblems, parameterProblems, immutableProblems, triggerProblems, planProblems, requestProblems}

// reservations are the rules that only warn, because the problem may resolve without another write: Resolved then reports it.
var reservations = []func(Instance) []Problem{nameRule, collisionRule, namespaceRule, versionRule, childrenRule}

// Admit validates a write of an Instance; before is nil on create. It rejects or warns about problems that the write itself adds: a write
// that leaves the spec unchanged, or of an Instance that is being deleted, passes without warnings. Outside of the namespaces of managed
// clusters, it only warns about the creation.
//
// It applies the rules of Judge to the changes. In addition it rejects an edit that triggers two plans, which Judge cannot detect.
func Admit(before *Instance, after Instance) (warnings []string, err error) {
	switch {
	case !after.Instance.DeletionTimestamp.IsZero():
		return nil, nil
	case after.Unmanaged && before == nil:
		return cannotRun(unmanagedRule(after)), nil
	case after.Unmanaged:
		return nil, nil
	}
	w := write{after: after.asChosen()}
	if before != nil {
		w.before = new(before.asChosen())
	}
	var problems []string
	for _, rule := range refusals {
		problems = append(problems, rule(w)...)
	}
	if len(problems) > 0 {
		err = fmt.Errorf("Instance %s/%s: %s", after.Instance.Namespace, after.Instance.Name,
			strings.Join(text.Limit(problems, problemLimit, "more problems"), "; "))
	}
	warnings = slices.Concat(idleCancel(w), idleResume(w), revertedEdit(w), malformedWindows(w))
	if remark := unreadable(w.after.Instance, w.after.Version, w.sets); remark != "" {
		warnings = append(warnings, remark)
	}
	if !w.choosesVersion() {
		return warnings, err
	}
	for _, rule := range reservations {
		warnings = append(warnings, cannotRun(rule(w.after))...)
	}
	return warnings, err
}

// cannotRun returns the warnings about problems that keep an Instance from running.
func cannotRun(problems []Problem) []string {
	warnings := make([]string, 0, len(problems))
	for _, problem := range problems {
		warnings = append(warnings, "the Instance cannot run yet: "+problem.Message)
	}
	return warnings
}

// choosesVersion reports whether the write changes the OperatorVersion. A child for which an earlier release chose it gets its uid.
func (w write) choosesVersion() bool {
	if w.before == nil || VersionOf(w.before.Instance) != VersionOf(w.after.Instance) {
		return true
	}
	was := w.before.Instance.VersionUID()
	return was != "" && was != w.after.Instance.VersionUID()
}

// sets reports whether the write changes the value of the parameter, or the OperatorVersion that defines it.
func (w write) sets(name string) bool {
	if w.choosesVersion() {
		return true
	}
	was, given := w.before.Instance.Spec.Parameters[name]
	is, stays := w.after.Instance.Spec.Parameters[name]
	return given != stays || was != is || referenceTo(w.before.Instance, name) != referenceTo(w.after.Instance, name)
}

// referenceTo returns where the value of a sensitive parameter is; empty if the Instance does not refer to one.
func referenceTo(i *kudo.Instance, name string) kudo.SecretKeyRef {
	at := slices.IndexFunc(i.Spec.ParametersFrom, func(f kudo.ParameterFrom) bool { return f.Name == name })
	if at < 0 {
		return kudo.SecretKeyRef{}
	}
	return i.Spec.ParametersFrom[at].SecretKeyRef
}

// setsAny reports whether the write changes the value of any parameter.
func (w write) setsAny() bool {
	return w.choosesVersion() || !SameParameters(w.before.Instance.Spec, w.after.Instance.Spec)
}

// SameParameters reports whether two specs set the same values and references of parameters, in whatever order.
func SameParameters(a, b kudo.InstanceSpec) bool {
	byName := func(x, y kudo.ParameterFrom) int { return strings.Compare(x.Name, y.Name) }
	return maps.Equal(a.Parameters, b.Parameters) &&
		slices.Equal(slices.SortedFunc(slices.Values(a.ParametersFrom), byName), slices.SortedFunc(slices.Values(b.ParametersFrom), byName))
}

// SameValues reports whether two specs set the same parameters and image registries.
func SameValues(a, b kudo.InstanceSpec) bool {
	return SameParameters(a, b) && slices.Equal(a.ImageRegistries, b.ImageRegistries)
}

// reservedProblems requires that no Instance is created for a reserved namespace. The install namespace of an existing one cannot change.
func reservedProblems(w write) []string {
	if w.before != nil {
		return nil
	}
	var problems []string
	for _, problem := range reservedRule(w.after) {
		problems = append(problems, problem.Message)
	}
	return problems
}

// parameterProblems requires that every set parameter is defined and has a value of its type, and that all required parameters are set.
func parameterProblems(w write) []string {
	if w.after.Version == nil {
		return nil
	}
	var invalid *parameter.InvalidError
	if !errors.As(parameter.Validate(&w.after.Version.Spec, w.after.Instance.Spec.Parameters, w.after.Instance.Spec.ParametersFrom), &invalid) {
		return nil
	}
	var problems []string
	for _, problem := range invalid.Problems {
		if w.sets(problem.Parameter) || (problem.Whole && w.setsAny()) {
			problems = append(problems, problem.String()+w.wayOut(problem.Parameter))
		}
	}
	return problems
}

// wayOut returns how to set another OperatorVersion, if the Instance sets a parameter that only the current one defines.
func (w write) wayOut(name string) string {
	if w.before == nil || w.before.Version == nil || !w.choosesVersion() ||
		!isDefined(w.before.Version.Spec.Parameters, name) || isDefined(w.after.Version.Spec.Parameters, name) {
		return ""
	}
	return fmt.Sprintf(" (only the current version defines it: remove it in the same change, as 'kubectl addon upgrade --unset %s' does)", text.Word(name))
}

func isDefined(definitions []kudo.Parameter, name string) bool {
	return slices.ContainsFunc(definitions, func(p kudo.Parameter) bool { return p.Name == name })
}

// immutableProblems requires that an immutable parameter keeps the value in the spec, started or not. An OperatorVersion that does not exist
// is assumed to have the same definitions as the other one, so that a missing version cannot bypass the rule.
//
// If a value that differs from the last started one got past admission, Resolved names the last started value: that change is allowed.
func immutableProblems(w write) []string {
	if w.before == nil {
		return nil
	}
	before, after := *w.before, w.after
	before.Version, after.Version = cmp.Or(before.Version, after.Version), cmp.Or(after.Version, before.Version)
	now := newSetting(after.Instance.Spec.Parameters, after.Version)
	changed := parameter.Immutable(newSetting(before.Instance.Spec.Parameters, before.Version), now)
	if before.Instance.Status.Execution != nil {
		names := map[string]bool{}
		for _, problem := range changed {
			names[problem.Parameter] = true
		}
		changed = slices.DeleteFunc(startedProblems(before, now), func(f parameter.Problem) bool { return !names[f.Parameter] })
	}
	problems := make([]string, 0, len(changed))
	for _, problem := range changed {
		problems = append(problems, problem.String())
	}
	return problems
}

// triggerProblems requires that the changes of one edit trigger one plan. A changed OperatorVersion runs its own plan, whatever else changes.
func triggerProblems(w write) []string {
	if w.after.Version == nil || w.choosesVersion() {
		return nil
	}
	triggers := plan.Triggers(w.after.Version.Spec.Parameters, plan.ValuesOf(w.before.Instance.Spec), plan.ValuesOf(w.after.Instance.Spec))
	if len(triggers) < 2 {
		return nil
	}
	named := make([]string, 0, len(triggers))
	for _, trigger := range triggers {
		named = append(named, fmt.Sprintf("%q (%s)", trigger.Plan, strings.Join(trigger.Parameters, ", ")))
	}
	return []string{fmt.Sprintf("the changed parameters trigger %d plans, %s: change the parameters of one plan at a time",
		len(triggers), strings.Join(named, " and "))}
}

// planProblems requires that the OperatorVersion has the plan that has to run because of the write.
func planProblems(w write) []string {
	var before []Problem
	if w.before != nil {
		before = planRule(*w.before)
	}
	var problems []string
	for _, problem := range planRule(w.after) {
		if !slices.Contains(before, problem) {
			problems = append(problems, problem.Message)
		}
	}
	return problems
}

// requestProblems requires that a manually requested plan exists.
func requestProblems(w write) []string {
	if !w.choosesVersion() && !w.requests() {
		return nil
	}
	var problems []string
	for _, problem := range requestRule(w.after) {
		problems = append(problems, problem.Message)
	}
	return problems
}

// requests reports whether the write requests a plan or its cancellation.
func (w write) requests() bool {
	return w.before == nil || w.before.Instance.Spec.PlanExecution != w.after.Instance.Spec.PlanExecution
}

// revertedEdit warns about an edit that the addon-manager reverts because the Instance has an owner that defines its spec.
func revertedEdit(w write) []string {
	owner := metav1.GetControllerOf(w.after.Instance)
	if w.before == nil || owner == nil || !w.setsAny() && SameValues(w.before.Instance.Spec, w.after.Instance.Spec) {
		return nil
	}
	return []string{fmt.Sprintf("the Instance is owned by %s %q, and addon-manager reverts edits of its parameters, image registries and OperatorVersion: "+
		"change the owner's configuration instead", owner.Kind, owner.Name)}
}

// malformedWindows warns about windows that never open. They are not rejected, because addon-manager passes on those of an add-on as they are.
func malformedWindows(w write) []string {
	is := w.after.Instance.Spec.Windows
	problem := WindowsProblem(is)
	if problem == "" || w.before != nil && w.before.Instance.Spec.Windows == is {
		return nil
	}
	return []string{"spec.windows is malformed, and no plan starts: " + problem}
}

// idleCancel warns about a request that cancels nothing: either the execution that it names has ended, or the request is meant to run a
// plan and still has cancel set by an earlier request, a field that KUDO's clients do not know. It is not rejected, because the execution
// may have ended a moment ago.
func idleCancel(w write) []string {
	request, status := w.after.Instance.Spec.PlanExecution, &w.after.Instance.Status
	if !request.Cancel || !w.requests() {
		return nil
	}
	if last := status.Execution; last != nil && last.UID == request.UID && status.PlanStatus[last.Plan].Status.IsRunning() {
		return nil
	}
	warning := fmt.Sprintf("nothing to cancel: no execution with uid %q is running", request.UID)
	if request.PlanName != "" {
		warning += fmt.Sprintf("; to run plan %q, set spec.planExecution.cancel to false", request.PlanName)
	}
	return []string{warning}
}

// idleResume warns about a request that resumes nothing, as far as the hub knows: what the agent has reported may be a moment old.
func idleResume(w write) []string {
	request, status := w.after.Instance.Spec.PlanExecution, w.after.Instance.Status
	switch {
	case request.Resume == "" || request.Cancel || !w.requests() || isHandled(w.after.Instance), former.IsRetry(status.Returned, request):
		return nil
	case request.PlanName == "":
		return []string{"spec.planExecution.resume has no effect without spec.planExecution.planName"}
	}
	asked := resume.Request{Plan: request.PlanName, Resume: request.Resume, Last: status.Execution}
	if asked.Last != nil {
		asked.Status = status.PlanStatus[asked.Last.Plan].Status
		asked.OtherVersion = status.Returned == nil && asked.Last.OperatorVersion.Name != w.after.Instance.Spec.OperatorVersion.Name
	}
	if problem := resume.Problem(asked); problem != "" {
		return []string{problem}
	}
	return nil
}
