package install

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Parent holds everything on the hub that decides about the children of one Instance. It is read-only.
type Parent struct {
	Instance *kudo.Instance
	// Running is the OperatorVersion that status.execution names. If it no longer exists, Running is nil and Wanted is the one that the
	// spec names, unless that does not exist either.
	Running, Wanted *kudo.OperatorVersion
	// Instances are all Instances of the cluster.
	Instances []kudo.Instance
	// Candidates are the OperatorVersions of the Operators that children may run.
	Candidates []kudo.OperatorVersion
	// Files is the work that is left for the parameter files of the children; nil for a budget of this decision.
	Files *render.Budget
}

// ChildStep is the action for one child. The zero value of each field means no action.
type ChildStep struct {
	// Current is the existing child; nil if it does not exist.
	Current *kudo.Instance
	// Apply is the desired child; Rerun is the plan of the child to run again.
	Apply *kudo.Instance
	Rerun *kudo.PlanExecution
	// Delete is true if the child is to be deleted; Force is true if its applied objects are not waited for.
	Delete, Force bool
	// Status is reported to the agent after the action; nothing is reported without a State. It has neither uid nor generation if the child
	// is to be applied or its plan is to run again.
	Status kudo.ChildStatus
}

// OnlyPins reports whether the step only adds the uid of the child's OperatorVersion, which earlier releases did not store.
func (s ChildStep) OnlyPins() bool {
	if s.Current == nil || s.Apply == nil || s.Current.Spec.OperatorVersion.UID != "" {
		return false
	}
	unpinned := *s.Apply
	unpinned.Spec.OperatorVersion.UID = ""
	return matchesChild(s.Current, &unpinned)
}

// Decides reports whether a step changes a child, or reports something that the hub has not reported to the agent before.
func (p Parent) Decides(step ChildStep) bool {
	return step.Apply != nil || step.Rerun != nil || step.Delete || step.Status.State != p.reportedStatus(step.Status).State
}

// IsStale reports whether the decision about the children of a parent, as read from a cache, no longer holds for the parent as it is: nil
// if it does not exist. Its children belong to the execution that it runs, and each is applied once per execution. After a start, a stale
// cache may show an older execution, by which a child would be deleted that a later one has created.
func IsStale(cached, current *kudo.Instance) bool {
	if current == nil || current.UID != cached.UID || current.DeletionTimestamp.IsZero() != cached.DeletionTimestamp.IsZero() {
		return true
	}
	last, started := cached.Status.Execution, current.Status.Execution
	return (last == nil) != (started == nil) || last != nil && last.UID != started.UID ||
		!equality.Semantic.DeepEqual(cached.Status.Children, current.Status.Children)
}

// Children decides about the children of an Instance (KEP-29): about each child with a task that the agent reports as in progress, about
// children without a task in the version once its plan is complete, and about all children once everything else of a deleted Instance is
// removed.
func Children(p Parent) []ChildStep {
	if p.Files == nil {
		p.Files = render.NewFileBudget()
	}
	switch {
	case !p.Instance.DeletionTimestamp.IsZero():
		return p.removal()
	case p.Instance.Status.Execution == nil:
		return nil
	case p.Running == nil:
		return p.failLostVersion()
	}
	var steps []ChildStep
	for _, placed := range p.childTasksInProgress() {
		steps = append(steps, p.step(placed))
	}
	return append(steps, p.removeVanished()...)
}

// Operators returns the operators that the tasks in progress name: Children chooses among their versions.
func (p Parent) Operators() []string {
	if !p.Instance.DeletionTimestamp.IsZero() || p.Instance.Status.Execution == nil || p.Running == nil {
		return nil
	}
	var names []string
	for _, placed := range p.childTasksInProgress() {
		if name := placed.Task.Spec.Package; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// removal deletes the children of an Instance once everything else is removed, or immediately if the removal is forced.
func (p Parent) removal() []ChildStep {
	force := p.Instance.IsForceReleased()
	if !force && !p.Instance.IsRemoved() {
		return nil
	}
	var steps []ChildStep
	for i := range p.Instances {
		child := &p.Instances[i]
		if p.owns(child) && (child.DeletionTimestamp.IsZero() || force && !child.IsForceReleased()) {
			steps = append(steps, ChildStep{Current: child, Delete: true, Force: force})
		}
	}
	return steps
}

// failLostVersion fails the tasks of an execution whose OperatorVersion no longer exists, because their definitions are lost. This ends the
// plan, so that the plan of the OperatorVersion that the spec names can start. Only that version identifies the tasks as KudoOperator
// tasks.
func (p Parent) failLostVersion() []ChildStep {
	if p.Wanted == nil {
		return nil
	}
	lost, working := p.Instance.Status.Execution, map[string]bool{}
	for at := range p.activeTasks() {
		working[at.task] = true
	}
	var steps []ChildStep
	for _, task := range tree.Tasks(&p.Wanted.Spec) {
		step := p.begin(task)
		if working[task.Name] && p.reportedStatus(step.Status).State == "" {
			steps = append(steps, step.fail(fmt.Sprintf("OperatorVersion %s/%s of the running plan %q no longer exists",
				lost.OperatorVersion.Namespace, lost.OperatorVersion.Name, lost.Plan)))
		}
	}
	return steps
}

// place is the position of a task in a plan.
type place struct{ phase, step, task string }

// activeTasks returns the places of the tasks that the agent reports as in progress in the current execution. They need not exist: an agent
// can report anything.
func (p Parent) activeTasks() map[place]bool {
	working := map[place]bool{}
	execution := p.Instance.Status.Execution
	status := p.Instance.Status.PlanStatus[execution.Plan]
	if status.UID != execution.UID || !status.Status.IsRunning() {
		return working
	}
	for _, phase := range status.Phases {
		for _, step := range phase.Steps {
			for _, at := range step.Tasks {
				if at.Status == kudo.InProgress || at.Status == kudo.Error {
					working[place{phase.Name, step.Name, at.Name}] = true
				}
			}
		}
	}
	return working
}

// childTasksInProgress lists the KudoOperator tasks that are in progress, in the order of the running version's plan. A task with several places is listed
// once, at the first one: it has one child.
func (p Parent) childTasksInProgress() []plan.Placed {
	working := p.activeTasks()
	if len(working) == 0 {
		return nil
	}
	var placed []plan.Placed
	name := p.Instance.Status.Execution.Plan
	for _, phase := range p.Running.Spec.Plans[name].Phases {
		for _, step := range phase.Steps {
			for _, at := range step.Tasks {
				task, found := childTask(p.Running, at)
				listed := slices.ContainsFunc(placed, func(other plan.Placed) bool { return other.Task.Name == at })
				if found && !listed && working[place{phase.Name, step.Name, at}] {
					placed = append(placed, plan.Placed{Plan: name, Phase: phase.Name, Step: step.Name, Task: task})
				}
			}
		}
	}
	return placed
}

// childTask returns the KudoOperator task of that name.
func childTask(version *kudo.OperatorVersion, name string) (kudo.Task, bool) {
	tasks := tree.Tasks(&version.Spec)
	i := slices.IndexFunc(tasks, func(t kudo.Task) bool { return t.Name == name })
	if i < 0 {
		return kudo.Task{}, false
	}
	return tasks[i], true
}

// step decides about the child of a task that is in progress.
func (p Parent) step(placed plan.Placed) ChildStep {
	step := p.begin(placed.Task)
	action, err := plan.TaskActionOf(placed.Task, &p.Running.Spec, p.Instance.Status.Execution.Parameters)
	switch {
	case err != nil:
		return step.fail(err.Error())
	case step.Current != nil && p.isPredecessors(step.Current):
		step.Delete = step.Current.DeletionTimestamp.IsZero()
		return step
	case action == plan.DeleteChild:
		return p.disable(step)
	default:
		return p.enable(step, placed)
	}
}

// begin returns a step without a decision.
func (p Parent) begin(task kudo.Task) ChildStep {
	name := tree.ChildName(p.Instance.Name, task)
	return ChildStep{Current: p.findChild(name), Status: kudo.ChildStatus{
		Task: task.Name, Execution: p.Instance.Status.Execution.UID, Instance: name,
	}}
}

// disable removes the child. It leaves an Instance of the same name alone if that does not belong to the task.
func (p Parent) disable(step ChildStep) ChildStep {
	switch {
	case step.Current == nil || !p.owns(step.Current):
		step.Status.State = kudo.ChildRemoved
	case step.Current.DeletionTimestamp.IsZero():
		step.Delete = true
	}
	return step
}

// enable creates or updates the child. It waits for a child that is being deleted.
func (p Parent) enable(step ChildStep, placed plan.Placed) ChildStep {
	current, said := step.Current, p.reportedStatus(step.Status)
	switch {
	case said.State == kudo.ChildFailed:
		return step.repeat(said)
	case current != nil && !p.owns(current):
		return step.fail(fmt.Sprintf("an Instance of this name already exists and is not a child of %q: "+
			"give the task %q another instanceName", p.Instance.Name, placed.Task.Name))
	case current != nil && !current.DeletionTimestamp.IsZero():
		return step
	case current != nil && current.UID == said.UID:
		return step.keep(said)
	}
	version, err := tree.Choose(placed.Task, p.Candidates)
	if err != nil {
		return step.fail(err.Error())
	}
	want, err := p.child(step.Status.Instance, placed, &version)
	if err != nil {
		return step.fail(err.Error())
	}
	if problem := p.problem(want, current); problem != "" {
		return step.fail(problem)
	}
	return p.settle(step, want, &version)
}

// keep decides about a child that was applied by this execution. Its spec is not computed again: a template may draw random values, and a
// version that was pushed since belongs to the next execution.
func (s ChildStep) keep(said kudo.ChildStatus) ChildStep {
	if problem := unresolvedReason(s.Current); problem != "" {
		return s.fail(problem)
	}
	return s.repeat(said)
}

// repeat reports the same status again.
func (s ChildStep) repeat(said kudo.ChildStatus) ChildStep {
	s.Status = said
	return s
}

// settle applies the differences between the existing and the desired child.
func (p Parent) settle(step ChildStep, want *kudo.Instance, version *kudo.OperatorVersion) ChildStep {
	step.Status.State = kudo.ChildApplied
	if step.Current == nil || !matchesChild(step.Current, want) {
		step.Apply = want
	}
	step.Rerun = p.rerun(step, want, version)
	if step.Apply == nil && step.Rerun == nil {
		step.Status.UID, step.Status.Generation = step.Current.UID, step.Current.Generation
	}
	return step
}

// fail reports a failure that only another execution can resolve.
func (s ChildStep) fail(why string) ChildStep {
	s.Status.State, s.Status.Message = kudo.ChildFailed, text.Truncate(why, messageLimit)
	return s
}

// messageLimit is the maximum length of a child's message in bytes; the resource definition allows that number of characters.
const messageLimit = 4096

// reportedStatus returns the status reported for the task in this execution; without a State if there is none yet.
func (p Parent) reportedStatus(to kudo.ChildStatus) kudo.ChildStatus {
	for _, said := range p.Instance.Status.Children {
		if said.Task == to.Task && said.Execution == to.Execution {
			return said
		}
	}
	return kudo.ChildStatus{}
}

// child returns the desired child of the execution, which never uses a newer spec of the parent.
func (p Parent) child(name string, placed plan.Placed, version *kudo.OperatorVersion) (*kudo.Instance, error) {
	parameters, from, err := p.parameters(placed, version)
	if err != nil {
		return nil, err
	}
	child := &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       p.Instance.Namespace,
			Name:            name,
			Labels:          map[string]string{kudo.LabelRoot: p.root()},
			Annotations:     map[string]string{kudo.AnnotationVersionContent: plan.ContentDigest(&version.Spec)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p.Instance, kudo.GroupVersion.WithKind("Instance"))},
		},
		Spec: kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name, UID: version.UID},
			Parameters:       parameters,
			ParametersFrom:   from,
			InstallNamespace: p.Instance.TargetNamespace(),

			ServiceAccountName: p.Instance.Spec.ServiceAccountName,
			ImageRegistries:    p.Instance.Status.Execution.ImageRegistries,
		},
	}
	// Blocking owner deletion requires permission on the owner's finalizers, and the garbage collector does not determine the removal
	// order.
	child.OwnerReferences[0].BlockOwnerDeletion = nil
	child.Spec.ChangedBy = authorOfChild(p.Instance, child)
	return child, nil
}

// parameters returns the child's parameters, which come only from the parent's parameter file. The hub does not know the values of sensitive
// ones: it passes the references of the parent's execution on.
func (p Parent) parameters(placed plan.Placed, version *kudo.OperatorVersion) (map[string]string, []kudo.ParameterFrom, error) {
	file, started := placed.Task.Spec.ParameterFile, p.Instance.Status.Execution
	if file == "" {
		return map[string]string{}, nil, nil
	}
	values, passed, err := render.File(render.Context{
		Version:    p.Running.NamedSpec(),
		Instance:   p.Instance.Name,
		Namespace:  p.Instance.TargetNamespace(),
		Parameters: started.Parameters,
		Sensitive:  render.HiddenOf(started.ParametersFrom),
		Cluster:    started.Cluster,
		Plan:       placed.Plan,
		Phase:      placed.Phase,
		Step:       placed.Step,
		Execution:  started.UID,
		Pipes:      pipe.Keys(&p.Running.Spec, render.InstanceName(p.Instance.Name)),
		Budget:     p.Files,

		KubernetesVersion: started.KubernetesVersion,
	}, file)
	if err != nil {
		return nil, nil, err
	}
	from, err := p.passOn(passed, version)
	return values, from, err
}

// passOn returns the references of a child whose sensitive parameters have the values of parameters of the parent.
func (p Parent) passOn(passed map[string]string, child *kudo.OperatorVersion) ([]kudo.ParameterFrom, error) {
	started := p.Instance.Status.Execution.ParametersFrom
	var from []kudo.ParameterFrom
	for _, name := range slices.Sorted(maps.Keys(passed)) {
		defined := slices.IndexFunc(child.Spec.Parameters, func(d kudo.Parameter) bool { return d.Name == name })
		if defined < 0 || !child.Spec.Parameters[defined].IsSensitive() {
			return nil, fmt.Errorf("sensitive parameter %q is passed on as parameter %q, which OperatorVersion %q does not define as sensitive: "+
				"set sensitive: true there, or pass another value", passed[name], name, child.Name)
		}
		at := slices.IndexFunc(started, func(f kudo.StartedParameterFrom) bool { return f.Name == passed[name] })
		if at < 0 {
			return nil, fmt.Errorf("sensitive parameter %q cannot be passed on as parameter %q, because status.execution has a value instead of a "+
				"reference to a Secret: set spec.parametersFrom of Instance %q", passed[name], name, p.Instance.Name)
		}
		from = append(from, kudo.ParameterFrom{Name: name, SecretKeyRef: started[at].SecretKeyRef})
	}
	return from, nil
}

// problem returns why the desired child cannot exist or run; empty if no problem is known.
func (p Parent) problem(want, current *kudo.Instance) string {
	if problem := NameProblem(want.Name); problem != "" {
		return problem + "; give the root Instance a shorter name, or the task a shorter instanceName"
	}
	switch {
	case current != nil && matchesChild(current, want):
		return unresolvedReason(current)
	case current != nil:
		return ""
	}
	if collision := Collision(want, p.Instances); collision != nil {
		return collision.Message
	}
	return ""
}

// unresolvedReason returns why the hub has not resolved the existing child; empty if it has, or has not judged it yet.
func unresolvedReason(child *kudo.Instance) string {
	resolved := meta.FindStatusCondition(child.Status.Conditions, kudo.ConditionResolved)
	if resolved == nil || resolved.Status != metav1.ConditionFalse || resolved.ObservedGeneration != child.Generation {
		return ""
	}
	return resolved.Message
}

// matchesChild reports whether the existing child is as desired in the fields that the parent defines.
func matchesChild(current, want *kudo.Instance) bool {
	return current.Labels[kudo.LabelRoot] == want.Labels[kudo.LabelRoot] &&
		VersionOf(current) == VersionOf(want) && current.Spec.OperatorVersion.UID == want.Spec.OperatorVersion.UID &&
		current.Spec.ServiceAccountName == want.Spec.ServiceAccountName &&
		SameValues(current.Spec, want.Spec) && (current.Spec.ChangedBy == nil || isAuthored(current, want))
}

// rerun returns the plan of a child to run again once, because the parent's plan runs again: an owed plan that came from the parent and
// failed. It returns none if a person requested or cancelled that plan, if another plan is about to start or is already requested
// manually, or if the OperatorVersion changes.
func (p Parent) rerun(step ChildStep, want *kudo.Instance, version *kudo.OperatorVersion) *kudo.PlanExecution {
	current := step.Current
	if current == nil || current.Status.Execution == nil || asksForPlan(current) {
		return nil
	}
	reached := plan.ReachedState(current.Status, &version.Spec)
	failed := failedByItself(current.Status, reached)
	if _, exists := version.Spec.Plans[failed]; !exists || reached.Last.OperatorVersion.UID != version.UID || reached.LastStatus.IsRunning() {
		return nil
	}
	reached.Version, reached.Reference, reached.Parameters = &version.Spec, reached.Last.OperatorVersion, want.Spec.Parameters
	reached.Registries = want.Spec.ImageRegistries
	reached.Sensitive.From = plan.WithoutDigests(want.Spec.ParametersFrom)
	if plan.Due(reached) != "" {
		return nil
	}
	uid := rerunUID(failed, fmt.Sprintf("%s/%s", step.Status.Execution, current.UID))
	if slices.Contains(reached.Handled, uid) { // it was rerun and has failed again
		return nil
	}
	return &kudo.PlanExecution{PlanName: failed, UID: uid}
}

// failedByItself returns the owed plan that failed in an execution that no person requested; empty if there is none.
func failedByItself(status kudo.InstanceStatus, reached plan.State) string {
	for _, owed := range reached.Last.Owed {
		ran := status.PlanStatus[owed.Plan].UID
		if owed.Outcome == kudo.OwedFailed && (!slices.Contains(reached.Handled, ran) || plan.IsRerun(ran)) {
			return owed.Plan
		}
	}
	return ""
}

// asksForPlan reports whether a manually requested plan has not started yet.
func asksForPlan(i *kudo.Instance) bool {
	request := i.Spec.PlanExecution
	return request.PlanName != "" && !request.Cancel && !isHandled(i)
}

// removeVanished removes the children without a task in the version, once the version is completely applied.
func (p Parent) removeVanished() []ChildStep {
	if !p.isWhole() {
		return nil
	}
	wanted := p.childNames()
	var steps []ChildStep
	for i := range p.Instances {
		child := &p.Instances[i]
		if p.owns(child) && !wanted[child.Name] && child.DeletionTimestamp.IsZero() {
			steps = append(steps, ChildStep{Current: child, Delete: true})
		}
	}
	return steps
}

// isWhole reports whether no plan runs and the version is completely applied.
func (p Parent) isWhole() bool {
	status := p.Instance.Status
	return !status.PlanStatus[status.Execution.Plan].Status.IsRunning() && plan.IsWhole(plan.MigrateStatus(status, nil))
}

// childNames returns the names of the children that the running version has tasks for.
func (p Parent) childNames() map[string]bool {
	names := map[string]bool{}
	for _, task := range tree.Tasks(&p.Running.Spec) {
		names[tree.ChildName(p.Instance.Name, task)] = true
	}
	return names
}

// owns reports whether the Instance is a child of this parent.
func (p Parent) owns(i *kudo.Instance) bool {
	owner := i.Parent()
	return owner != nil && owner.UID == p.Instance.UID
}

// isPredecessors reports whether the Instance is a child of a deleted parent of the same name.
func (p Parent) isPredecessors(i *kudo.Instance) bool {
	owner := i.Parent()
	return owner != nil && owner.Name == p.Instance.Name && owner.UID != p.Instance.UID
}

func (p Parent) findChild(name string) *kudo.Instance {
	for i := range p.Instances {
		if p.Instances[i].Name == name {
			return &p.Instances[i]
		}
	}
	return nil
}

// root returns the name of the Instance at the root of the tree.
func (p Parent) root() string {
	if root := p.Instance.Labels[kudo.LabelRoot]; root != "" && p.Instance.Parent() != nil {
		return root
	}
	return p.Instance.Name
}
