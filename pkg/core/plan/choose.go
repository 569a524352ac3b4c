package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/former"
	"github.com/tandem-addons/tandem/pkg/core/resume"
)

// Choice is the action for a State. The zero value means that nothing is started or stopped.
type Choice struct {
	// Adopt is true if the desired OperatorVersion replaces that of the last execution, which was deleted and re-created with equal content, or
	// if references of sensitive parameters are recorded again, without a change of their values.
	Adopt bool

	// Start is the execution to start, without a uid unless the request has one (a manually requested plan). It supersedes a running
	// execution.
	Start *kudo.Execution

	// Version is the OperatorVersion of Start.
	Version *kudo.OperatorVersionSpec

	// Restart is true if the changes that Start takes require a restart of pods (KEP-27), and RestartCharts if a changed parameter requests that
	// itself: otherwise pods of charts restart where the chart changes them.
	Restart, RestartCharts bool

	// Before is the OperatorVersion of the execution before Start; nil if there is none, or if it is lost.
	Before *kudo.OperatorVersionSpec

	// Returned is the return that is in force once Start has started.
	Returned *kudo.Return

	// ChangedBy is who has changed the values that Start takes, and RequestedBy who has requested it, for the history; empty if that is not known.
	ChangedBy, RequestedBy string

	// Cancel is true if the running execution is to be cancelled.
	Cancel bool

	// Remove is true if the applied objects of the Instance are to be removed, whatever else runs.
	Remove bool
}

// Choose compares the desired state with the reached one (DESIGN §5, "Which plan runs"). It is level-triggered: it does not depend on the
// last edit. A *MissingPlanError means that the plan to run does not exist, a *SuspendedError that the Instance is suspended, a *ClosedError that a
// maintenance window is closed, an *UnresolvedError
// that the plan waits for values, an *UnsupportedError for another version of Kubernetes.
func Choose(s State) (Choice, error) {
	switch {
	case s.Last != nil && s.Sensitive.Rebased != nil:
		return Choice{Adopt: true}, nil
	case s.isLeaving():
		return chooseOnLeave(s), nil
	case s.isRecreated():
		return Choice{Adopt: true}, nil
	case s.isCancelled():
		return Choice{Cancel: true}, nil
	case s.Version == nil:
		return Choice{}, nil
	}
	choice, err := s.next()
	if err != nil || choice.Start == nil || mustWait(s, choice.Start.Plan) {
		return Choice{}, err
	}
	return s.unlessHeld(choice)
}

// unlessHeld returns the choice to start an execution, or the error of what it waits for.
func (s State) unlessHeld(choice Choice) (Choice, error) {
	if held := s.obstacle(choice); held != nil {
		var err error
		if choice, err = s.insteadOfHeld(); err != nil || choice.Start == nil {
			return Choice{}, cmp.Or(err, held)
		}
	}
	choice.Before, choice.Returned = s.LastVersion, cmp.Or(choice.Returned, s.Returned)
	return choice, nil
}

// insteadOfHeld returns the return to the former version if it can start while another start is held: a change that waits does not keep what has failed.
func (s State) insteadOfHeld() (Choice, error) {
	if !s.returns() {
		return Choice{}, nil
	}
	back, err := s.startReturn()
	if err != nil || s.obstacle(back) != nil {
		return Choice{}, err
	}
	return back, nil
}

// obstacle returns what an execution waits for before it starts; nil if it starts. One that applies the former version again uses no values of the spec, and
// waits for no maintenance window if it was known when the failed one started that the Instance returns.
func (s State) obstacle(choice Choice) error {
	if choice.Start.Return {
		s.Sensitive.Unresolved = ""
	}
	if choice.Start.Return && s.Last.Returns {
		s.Closed = ""
	}
	if held := s.holdError(choice.Start.Plan); held != nil {
		return held
	}
	if why := s.versionProblem(choice); why != "" {
		return &UnsupportedError{Plan: choice.Start.Plan, Reason: why}
	}
	if s.Sensitive.Unresolved != "" {
		return &UnresolvedError{Plan: choice.Start.Plan, Reason: s.Sensitive.Unresolved}
	}
	return nil
}

// UnsupportedError reports that a plan cannot start because the package does not support the Kubernetes version of the cluster.
type UnsupportedError struct{ Plan, Reason string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("plan %q waits: %s: upgrade the cluster, or use another version of the package", e.Plan, e.Reason)
}

// versionProblem returns which version of Kubernetes the execution to start requires and the cluster lacks; empty if that starts. Only the package and
// the charts that the plan applies count.
func (s State) versionProblem(choice Choice) string {
	if s.KubernetesVersion == "" || !compatibility.IsConstrained(choice.Version) {
		return ""
	}
	return compatibility.Problem(choice.Version, ChartsOf(choice.Version, choice.Start.Plan, choice.Start.Parameters), s.KubernetesVersion)
}

// ChartsOf returns the charts that a plan of a version applies with these parameters; those of all plans if its name is empty.
func ChartsOf(version *kudo.OperatorVersionSpec, plan string, parameters map[string]string) []string {
	var charts []string
	for _, placed := range Everywhere(version) {
		if plan != "" && placed.Plan != plan || placed.Task.Kind != kudo.TaskHelm {
			continue
		}
		if action, err := TaskActionOf(placed.Task, version, parameters); err == nil && action == ApplyChart {
			charts = append(charts, placed.Task.Spec.Chart)
		}
	}
	return charts
}

// Unsupported returns why the next plan waits for another version of Kubernetes; empty if it does not.
func Unsupported(s State) string {
	if unsupported := s.unsupported(); unsupported != nil {
		return unsupported.Error()
	}
	return ""
}

// unsupported returns why the next plan does not start on this cluster, whatever runs; nil if it is for another reason, or if it starts.
func (s State) unsupported() *UnsupportedError {
	s.LastStatus, s.Suspended, s.Closed = kudo.Complete, false, ""
	_, err := Choose(s)
	var unsupported *UnsupportedError
	errors.As(err, &unsupported)
	return unsupported
}

// isCancelled reports whether the running execution is to be cancelled.
func (s State) isCancelled() bool {
	return s.Last != nil && s.Request.Cancel && s.Request.UID == s.Last.UID && s.LastStatus.IsRunning()
}

// Due returns the plan that starts next, regardless of what it has to wait for; empty if there is none or if it does not exist.
func Due(s State) string {
	if start := due(s); start != nil {
		return start.Plan
	}
	return ""
}

// DueForReady is Due without plans that do not influence condition Ready: manually requested ones that are not owed. The cleanup plan does,
// because it owes another deployment.
func DueForReady(s State) string {
	start := due(s)
	if start == nil || start.UID != "" && start.Plan != kudo.CleanupPlan && owedIndex(start.Owed, start.Plan) < 0 {
		return ""
	}
	return start.Plan
}

// due returns the execution of Due, nil if there is none.
func due(s State) *kudo.Execution {
	if s.isLeaving() || s.Version == nil {
		return nil
	}
	choice, _ := s.next() // without a start if the plan does not exist
	return choice.Start
}

// MissingPlan returns the plan that starts next, manual requests aside, if the desired OperatorVersion lacks it; empty otherwise.
func MissingPlan(s State) string {
	s.Request = kudo.PlanExecution{}
	var missing *MissingPlanError
	if s.isLeaving() || s.Version == nil {
		return ""
	}
	if _, err := s.next(); errors.As(err, &missing) {
		return missing.Plan
	}
	return ""
}

// chooseOnLeave chooses for an Instance that is being removed, or that an ancestor's removal stops: only its cleanup plan may run.
func chooseOnLeave(s State) Choice {
	if s.Removing || s.Stage == StageCleanup {
		return chooseCleanup(s)
	}
	return Choice{}
}

// IsClean reports whether no cleanup plan has to run, or to complete, before the objects of an Instance are removed.
func IsClean(s State) bool { return chooseCleanup(s).Remove }

// chooseCleanup runs the cleanup plan of the last execution to completion before objects are removed. It supersedes any running plan. A
// manually requested cleanup plan does not count: it has the uid of a request.
func chooseCleanup(s State) Choice {
	if s.Last == nil || s.LastVersion == nil || s.SkipsCleanup {
		return Choice{Remove: true}
	}
	if _, exists := s.LastVersion.Plans[kudo.CleanupPlan]; !exists {
		return Choice{Remove: true}
	}
	if s.Last.Plan == kudo.CleanupPlan && s.Last.UID != s.Last.Request && s.LastStatus != kudo.FatalError {
		return Choice{Remove: s.LastStatus == kudo.Complete}
	}
	start := *s.Last
	start.Plan = kudo.CleanupPlan
	start.UID, start.Resume, start.Return = "", "", false
	start.Owed = owedAfterCleanup(s.LastVersion, s.Last.Owed)
	return Choice{Start: &start, Version: s.LastVersion}
}

// mustWait reports whether a running plan blocks another one. A change that selects the running plan restarts it. A change that selects
// another plan waits, unless the running one is in ERROR or cannot continue because its OperatorVersion is lost. A value that was in the
// spec when the running plan started is not a change: if one edit triggers two plans, the second waits for the end of the first, whatever
// its outcome.
func mustWait(s State, plan string) bool {
	if s.Last == nil || !s.LastStatus.IsRunning() || s.Last.Plan == plan || s.LastVersion == nil {
		return false
	}
	return s.LastStatus != kudo.Error || !s.isEdited()
}

// isEdited reports whether the spec, or a value that it refers to, has changed since the last execution started.
func (s State) isEdited() bool {
	if s.Generation != s.Last.Generation || s.Version == nil {
		return s.Generation != s.Last.Generation
	}
	return slices.ContainsFunc(s.Version.Parameters, func(p kudo.Parameter) bool { return p.IsSensitive() && differs(&p, s.lastValues(), s.desiredValues()) })
}

// next returns what starts next, in the order of DESIGN's table: the first difference between the desired state and the last execution,
// then a return to the former version, then an owed plan, then a manual request. It is the zero value if there is none.
func (s State) next() (Choice, error) {
	if s.Last == nil || s.isOtherVersion() {
		return s.withRequest(s.startWhole(""))
	}
	changed := changesOf(s.Version.Parameters, s.lastValues(), s.desiredValues())
	switch {
	case !changed.isEmpty() && s.owedWhole() != "":
		return s.withResume(s.startWhole(s.owedWhole()))
	case !changed.isEmpty():
		return s.withResume(s.startTriggered(changed))
	case s.returns():
		return s.startReturn()
	case !s.LastStatus.IsRunning() && s.firstOwed() != "":
		return s.withResume(s.startOwed(s.firstOwed()))
	case s.isRequested():
		return s.startRequested()
	default:
		return Choice{}, nil
	}
}

// startWhole starts a plan that applies the complete desired OperatorVersion, with all current values: the named one, or the whole plan.
func (s State) startWhole(name string) (Choice, error) {
	if name == "" {
		var err error
		if name, err = s.wholePlan(); err != nil {
			return Choice{}, err
		}
	}
	var changed []kudo.Parameter
	restart := true
	if s.Last != nil {
		changed = changedParameters(s.Version.Parameters, s.lastValues(), s.desiredValues())
		restart = s.isOtherVersion() || slices.ContainsFunc(changed, RestartsPods)
	}
	choice, err := s.start(name, s.desiredValues(), s.owedAfterStart(name, changed), restart)
	choice.RestartCharts = slices.ContainsFunc(changed, forcesRestart)
	return choice, err
}

// withRequest returns the start of the failed version after a return. If it is requested to try it again, the execution has the uid of the request.
func (s State) withRequest(choice Choice, err error) (Choice, error) {
	if err == nil && s.Again != "" {
		choice.Start.UID, choice.Start.Request = s.Again, s.Again
	}
	return choice, err
}

// mustReturn reports whether another version than the former one has failed, and the Instance returns in that case.
func (s State) mustReturn() bool {
	return s.failedPlan() != "" && (s.Failure.Record == nil || !sameReference(s.Failure.Record.OperatorVersion, s.Last.OperatorVersion))
}

// returns reports whether the Instance returns to the former version now.
func (s State) returns() bool { return s.mustReturn() && s.returnProblem() == "" }

// returnProblem returns why the Instance, whose version has failed, does not return, and the way out; empty if it does.
func (s State) returnProblem() string {
	if problem := s.Failure.Problem(); problem != "" {
		return problem
	}
	back, err := s.startReturn()
	if err != nil {
		return err.Error()
	}
	return s.versionProblem(back)
}

// failedPlan returns the plan that applies the complete OperatorVersion if it has failed, or if the Instance was not healthy for long enough after it; empty if
// neither is the case, or if the Instance does not return then.
func (s State) failedPlan() string {
	if !s.Returns || s.Last == nil || s.Returned != nil || s.LastStatus.IsRunning() {
		return ""
	}
	if i := slices.IndexFunc(s.Last.Owed, func(o kudo.OwedPlan) bool { return o.Whole && o.Outcome == kudo.OwedFailed }); i >= 0 {
		return s.Last.Owed[i].Plan
	}
	if s.SoakFailure == "" || !s.isWhole() {
		return ""
	}
	name, _ := s.wholePlan() // it exists: it was applied
	return name
}

// startReturn starts the plan that applies the former version, with its values, after the version of the last execution has failed.
func (s State) startReturn() (Choice, error) {
	back, record := s, s.Failure.Record
	if record == nil || s.Failure.Former == nil || s.Failure.Version == nil {
		return Choice{}, nil
	}
	back.Version, back.Reference, back.Cluster = s.Failure.Former, record.OperatorVersion, record.Cluster
	back.Parameters, back.Sensitive.From, back.Registries = record.Parameters, record.ParametersFrom, record.ImageRegistries
	back.KubernetesVersion = cmp.Or(s.KubernetesVersion, record.KubernetesVersion)
	choice, err := back.startWhole("")
	if err != nil {
		return Choice{}, err
	}
	choice.Start.Return = true
	choice.Returned = &kudo.Return{
		OperatorVersion: s.Last.OperatorVersion, From: s.Failure.Version.Version, To: back.Version.Version, Plan: s.failedPlan(), Cause: s.SoakFailure,
		Content: ContentDigest(s.Failure.Version), Wanted: former.StartedDigest(s.Last),
	}
	return choice, nil
}

// startTriggered starts the next triggered plan with the values of the parameters that trigger it, and with the image registries if they do. The
// others keep their values until the plan has ended.
func (s State) startTriggered(changed changes) (Choice, error) {
	name, err := s.triggeredPlan(changed.triggers())
	if err != nil {
		return Choice{}, err
	}
	with := s.lastValues()
	with.Registries = s.registriesFor(name)
	values := maps.Clone(s.Last.Parameters)
	if values == nil {
		values = map[string]string{}
	}
	restart, forces := false, false
	for _, p := range changed.parameters {
		if triggered, _ := TriggeredPlan(s.Version, p); triggered != name {
			continue
		}
		if value, given := s.Parameters[p.Name]; given {
			values[p.Name] = value
		} else {
			delete(values, p.Name)
		}
		if p.IsSensitive() {
			with.From = withFrom(with.From, s.Sensitive.From, p.Name)
		}
		restart, forces = restart || RestartsPods(p), forces || forcesRestart(p)
	}
	owed := s.Last.Owed
	if s.isEdited() {
		owed = resetOwed(owed) // otherwise the values are of the edit for which it failed
	}
	with.Given = values
	choice, err := s.start(name, with, addOwed(owed, kudo.OwedPlan{Plan: name}), restart)
	choice.RestartCharts = forces
	return choice, err
}

// registriesFor returns the image registries with which a triggered plan runs: only the plan that they start takes others.
func (s State) registriesFor(plan string) []kudo.ImageRegistry {
	if name, err := TriggeredPlan(s.Version, kudo.Parameter{}); err != nil || name != plan {
		return s.Last.ImageRegistries
	}
	return s.Registries
}

// triggeredPlan returns the plan of the first changed parameter, in the package's order. If any changed parameter triggers the running
// plan, it returns that plan: it is restarted, whatever other plans are queued.
func (s State) triggeredPlan(changed []kudo.Parameter) (string, error) {
	if s.LastStatus.IsRunning() {
		for _, p := range changed {
			if plan, err := TriggeredPlan(s.Version, p); err == nil && plan == s.Last.Plan {
				return plan, nil
			}
		}
	}
	return TriggeredPlan(s.Version, changed[0])
}

// isRequested reports whether there is a manual plan request that has not run yet. A request with the uid of the last execution requests
// nothing: it is left over from a request to cancel that execution.
func (s State) isRequested() bool {
	return s.hasRequest() && s.ResumeProblem() == ""
}

// hasRequest reports whether there is a manual plan request that has not run yet, whether it can run or not.
func (s State) hasRequest() bool {
	return s.Request.PlanName != "" && s.Request.UID != "" && !s.Request.Cancel && !s.isHandled(s.Request.UID)
}

// ResumeProblem returns why the request to resume an execution, which has not run yet, starts nothing; empty if there is none, or if it can run.
func (s State) ResumeProblem() string {
	if s.Request.Resume == "" || s.Version == nil || !s.hasRequest() || s.Again != "" {
		return ""
	}
	return resume.Problem(resume.Request{
		Plan: s.Request.PlanName, Resume: s.Request.Resume, Last: s.Last, Status: s.LastResult, OtherVersion: s.Last != nil && s.isOtherVersion(),
	})
}

// withResume returns the start of a plan that changed values or a retry are the reason for. If it is requested to resume this plan, that execution does so.
func (s State) withResume(choice Choice, err error) (Choice, error) {
	if err == nil && choice.Start.Plan == s.Request.PlanName && s.Request.Resume != "" && s.isRequested() {
		choice.Start.Request, choice.Start.Resume = s.Request.UID, s.Request.Resume
	}
	return choice, err
}

// startOwed starts a plan that is owed, for the first time or as a retry.
func (s State) startOwed(name string) (Choice, error) {
	owed := s.Last.Owed[owedIndex(s.Last.Owed, name)]
	started := kudo.OwedPlan{Plan: name, Retries: owed.Retries}
	if owed.Outcome != "" {
		started.Retries++
	}
	return s.start(name, s.lastValues(), addOwed(s.Last.Owed, started), false)
}

// startRequested starts the manually requested plan. A plan that applies the complete OperatorVersion is owed from its start.
func (s State) startRequested() (Choice, error) {
	name, owed := s.Request.PlanName, s.Last.Owed
	switch {
	case s.appliesAll(name):
		owed = addOwed(owed, kudo.OwedPlan{Plan: name, Whole: true, Retries: retriesOf(owed, name)})
	case owedIndex(owed, name) >= 0:
		owed = addOwed(owed, kudo.OwedPlan{Plan: name, Retries: retriesOf(owed, name)})
	}
	choice, err := s.start(name, s.lastValues(), owed, false)
	if err != nil {
		return Choice{}, &MissingPlanError{Plan: name, Requested: true}
	}
	choice.Start.UID, choice.Start.Request, choice.Start.Resume = s.Request.UID, s.Request.UID, s.Request.Resume
	return choice, nil
}

// recordFacts records the facts of the cluster in an execution that starts. A plan that applies the complete OperatorVersion, or that parameters
// without a trigger start, takes the current ones. Others, such as a backup, continue with those of the objects that exist.
func (s State) recordFacts(started *kudo.Execution) {
	started.Cluster, started.KubernetesVersion = s.Cluster.DeepCopy(), ""
	if facts.UseCapabilities(s.Version) {
		started.KubernetesVersion = s.KubernetesVersion
	}
	if s.Last == nil || s.appliesAll(started.Plan) {
		return
	}
	if name, err := TriggeredPlan(s.Version, kudo.Parameter{}); err == nil && name == started.Plan {
		return
	}
	started.Cluster = cmp.Or(s.Last.Cluster, started.Cluster)
	started.KubernetesVersion = cmp.Or(s.Last.KubernetesVersion, started.KubernetesVersion)
}

// start returns the start of a plan of the desired version with values. The cleanup plan removes what was applied, so the OperatorVersion has
// to be deployed again.
func (s State) start(name string, values Values, owed []kudo.OwedPlan, restart bool) (Choice, error) {
	if _, exists := s.Version.Plans[name]; !exists {
		return Choice{}, &MissingPlanError{Plan: name}
	}
	if name == kudo.CleanupPlan {
		owed = owedAfterCleanup(s.Version, owed)
	}
	started := &kudo.Execution{
		Plan: name, Generation: s.Generation, OperatorVersion: s.Reference, DependencyVersion: dependency.VersionOf(s.Version),
		Dependencies: s.Version.Dependencies,
		Parameters:   values.Given, ParametersFrom: values.From, ImageRegistries: values.Registries, Owed: owed, Returns: s.Returns,
	}
	if s.Last != nil {
		started.Request = s.Last.Request
	}
	s.recordFacts(started)
	return Choice{Start: started, Version: s.Version, Restart: restart}, nil
}
