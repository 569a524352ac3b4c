package install

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/parameter"
	"github.com/tandem-addons/tandem/pkg/pipe"
	"github.com/tandem-addons/tandem/pkg/plan"
	"github.com/tandem-addons/tandem/pkg/render"
	"github.com/tandem-addons/tandem/pkg/text"
	"github.com/tandem-addons/tandem/pkg/tree"
)

// Parent is everything that matters on the hub about the children of one Instance. Nothing in it is changed.
type Parent struct {
	Instance *kudo.Instance
	// Running is the OperatorVersion that status.execution names. Where it does not exist any more it is nil, and Wanted is the one that
	// the spec names, unless that does not exist either.
	Running, Wanted *kudo.OperatorVersion
	// Instances are all those of the cluster.
	Instances []kudo.Instance
	// Candidates are the OperatorVersions of Operators that children may run.
	Candidates []kudo.OperatorVersion
}

// ChildStep is what is to be done about one child. The zero value of each field is nothing.
type ChildStep struct {
	// Current is the child as it stands; nil where it does not.
	Current *kudo.Instance
	// Apply is the child as it is to be, Rerun the plan of it that is to run again.
	Apply *kudo.Instance
	Rerun *kudo.PlanExecution
	// Delete is true if the child is to go, Force that nobody shall wait for what it has applied.
	Delete, Force bool
	// Status is what the agent is told once that is done: nothing as long as it has no State. It has neither uid nor generation of a child
	// that is to be applied, or whose plan is to run again.
	Status kudo.ChildStatus
}

// Children decides what is to be done about the children of an Instance (KEP-29): about each whose task the agent reports to be in progress, about
// those that the version has no task for any more once its plan is complete, and about all of them once nothing else is left of
// an Instance that is being deleted.
func Children(p Parent) []ChildStep {
	switch {
	case !p.Instance.DeletionTimestamp.IsZero():
		return p.removal()
	case p.Instance.Status.Execution == nil:
		return nil
	case p.Running == nil:
		return p.stranded()
	}
	var steps []ChildStep
	for _, placed := range p.atWork(p.Running) {
		steps = append(steps, p.step(placed))
	}
	return append(steps, p.vanished()...)
}

// Operators are those that the tasks in progress name: Children chooses among their versions.
func (p Parent) Operators() []string {
	if !p.Instance.DeletionTimestamp.IsZero() || p.Instance.Status.Execution == nil || p.Running == nil {
		return nil
	}
	var names []string
	for _, placed := range p.atWork(p.Running) {
		if name := placed.Task.Spec.Package; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// removal deletes the children of an Instance of which nothing else is left, or of which nobody waits for that.
func (p Parent) removal() []ChildStep {
	force := p.Instance.ForceReleased()
	if !force && !p.Instance.Removed() {
		return nil
	}
	var steps []ChildStep
	for i := range p.Instances {
		child := &p.Instances[i]
		if p.owns(child) && (child.DeletionTimestamp.IsZero() || force && !child.ForceReleased()) {
			steps = append(steps, ChildStep{Current: child, Delete: true, Force: force})
		}
	}
	return steps
}

// stranded gives up the tasks of an execution whose OperatorVersion is gone: nobody can say any more what they ask for. So the plan ends,
// and that of the OperatorVersion that the spec names can begin, by which alone the tasks are known for what they are.
func (p Parent) stranded() []ChildStep {
	if p.Wanted == nil {
		return nil
	}
	lost := p.Instance.Status.Execution
	var steps []ChildStep
	for _, placed := range p.atWork(p.Wanted) {
		step := p.begin(placed.Task)
		if p.answer(step.Status).State == "" {
			steps = append(steps, step.failed(fmt.Sprintf("OperatorVersion %s/%s, which plan %q runs, does not exist any more",
				lost.OperatorVersion.Namespace, lost.OperatorVersion.Name, lost.Plan)))
		}
	}
	return steps
}

// atWork lists the KudoOperator tasks of the current execution that are in progress, as the version has them.
func (p Parent) atWork(version *kudo.OperatorVersion) []plan.Placed {
	execution := p.Instance.Status.Execution
	status := p.Instance.Status.PlanStatus[execution.Plan]
	if status.UID != execution.UID || !status.Status.Running() {
		return nil
	}
	var placed []plan.Placed
	for _, phase := range status.Phases {
		for _, step := range phase.Steps {
			for _, at := range step.Tasks {
				task, found := childTask(version, at.Name)
				if found && (at.Status == kudo.InProgress || at.Status == kudo.Error) {
					placed = append(placed, plan.Placed{Plan: execution.Plan, Phase: phase.Name, Step: step.Name, Task: task})
				}
			}
		}
	}
	return placed
}

// childTask is the KudoOperator task of that name which the version has.
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
		return step.failed(err.Error())
	case step.Current != nil && p.isPredecessors(step.Current):
		step.Delete = step.Current.DeletionTimestamp.IsZero()
		return step
	case action == plan.DeleteChild:
		return p.disable(step)
	default:
		return p.enable(step, placed)
	}
}

// begin is a step about which nothing is decided yet.
func (p Parent) begin(task kudo.Task) ChildStep {
	name := tree.ChildName(p.Instance.Name, task)
	return ChildStep{Current: p.named(name), Status: kudo.ChildStatus{
		Task: task.Name, Execution: p.Instance.Status.Execution.UID, Instance: name,
	}}
}

// disable removes the child. Another Instance of its name is none of the task's.
func (p Parent) disable(step ChildStep) ChildStep {
	switch {
	case step.Current == nil || !p.owns(step.Current):
		step.Status.State = kudo.ChildRemoved
	case step.Current.DeletionTimestamp.IsZero():
		step.Delete = true
	}
	return step
}

// enable brings the child about. One that is on its way out is waited for.
func (p Parent) enable(step ChildStep, placed plan.Placed) ChildStep {
	current, said := step.Current, p.answer(step.Status)
	switch {
	case said.State == kudo.ChildFailed:
		return step.repeat(said)
	case current != nil && !p.owns(current):
		return step.failed(fmt.Sprintf("the name is taken by an Instance that is no child of %q: delete or rename that one, "+
			"or give the task %q another instanceName", p.Instance.Name, placed.Task.Name))
	case current != nil && !current.DeletionTimestamp.IsZero():
		return step
	case current != nil && current.UID == said.UID:
		return step.stands(said)
	}
	version, err := tree.Choose(placed.Task, p.Candidates)
	if err != nil {
		return step.failed(err.Error())
	}
	want, err := p.child(step.Status.Instance, placed, &version)
	if err != nil {
		return step.failed(err.Error())
	}
	if fault := p.obstacle(want, current); fault != "" {
		return step.failed(fault)
	}
	return p.settle(step, want, &version)
}

// stands is about a child that was brought about for this very execution. What it is to be is not decided again: a template may draw
// random values, and a version that was pushed since is for the next execution.
func (s ChildStep) stands(said kudo.ChildStatus) ChildStep {
	if fault := unresolved(s.Current); fault != "" {
		return s.failed(fault)
	}
	return s.repeat(said)
}

// repeat says what was said before.
func (s ChildStep) repeat(said kudo.ChildStatus) ChildStep {
	s.Status = said
	return s
}

// settle says what is missing of a child that can be as it is wanted.
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

// failed gives up: nothing but another execution can help.
func (s ChildStep) failed(why string) ChildStep {
	s.Status.State, s.Status.Message = kudo.ChildFailed, text.Truncate(why, messageLimit)
	return s
}

// messageLimit is the length of a child's message in bytes at most; the resource definition takes that many characters.
const messageLimit = 4096

// answer is what the agent was told in the execution about the task of that status; nothing yet where it has no State.
func (p Parent) answer(to kudo.ChildStatus) kudo.ChildStatus {
	for _, said := range p.Instance.Status.Children {
		if said.Task == to.Task && said.Execution == to.Execution {
			return said
		}
	}
	return kudo.ChildStatus{}
}

// child is the child as the execution wants it, and never a newer spec of its parent.
func (p Parent) child(name string, placed plan.Placed, version *kudo.OperatorVersion) (*kudo.Instance, error) {
	parameters, err := p.parameters(placed)
	if err != nil {
		return nil, err
	}
	child := &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       p.Instance.Namespace,
			Name:            name,
			Labels:          map[string]string{kudo.LabelRoot: p.root()},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p.Instance, kudo.GroupVersion.WithKind("Instance"))},
		},
		Spec: kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name},
			Parameters:       parameters,
			InstallNamespace: p.Instance.TargetNamespace(),

			ServiceAccountName: p.Instance.Spec.ServiceAccountName,
		},
	}
	// An owner that blocks deletion takes a right on the owner's finalizers, and the order of a removal is none of the garbage collector's.
	child.OwnerReferences[0].BlockOwnerDeletion = nil
	return child, nil
}

// parameters are what the parent's parameter file gives its child: nothing else does.
func (p Parent) parameters(placed plan.Placed) (map[string]string, error) {
	file := placed.Task.Spec.ParameterFile
	if file == "" {
		return map[string]string{}, nil
	}
	text, err := render.Text(render.Context{
		Version:    &p.Running.Spec,
		Instance:   p.Instance.Name,
		Namespace:  p.Instance.TargetNamespace(),
		Parameters: p.Instance.Status.Execution.Parameters,
		Plan:       placed.Plan,
		Phase:      placed.Phase,
		Step:       placed.Step,
		Execution:  p.Instance.Status.Execution.UID,
		Pipes:      pipe.Keys(&p.Running.Spec, render.InstanceName(p.Instance.Name)),
	}, file)
	if err != nil {
		return nil, err
	}
	parameters, err := parameter.File(text)
	if err != nil {
		return nil, fmt.Errorf("parameterFile %q: %w", file, err)
	}
	return parameters, nil
}

// obstacle says why the child cannot be, or cannot run, as it is wanted; empty if nothing is known against it.
func (p Parent) obstacle(want, current *kudo.Instance) string {
	if fault := NameFault(want.Name); fault != "" {
		return fault + ": give the uppermost Instance a shorter name, or the task a shorter instanceName"
	}
	switch {
	case current != nil && matchesChild(current, want):
		return unresolved(current)
	case current != nil:
		return ""
	}
	if collision := Collision(want, p.Instances); collision != nil {
		return collision.Message
	}
	return ""
}

// unresolved says why the hub has not resolved the child as it stands; empty if it has, or has not judged it yet.
func unresolved(child *kudo.Instance) string {
	resolved := meta.FindStatusCondition(child.Status.Conditions, kudo.ConditionResolved)
	if resolved == nil || resolved.Status != metav1.ConditionFalse || resolved.ObservedGeneration != child.Generation {
		return ""
	}
	return resolved.Message
}

// matchesChild reports whether the child stands as it is wanted, in what is its parent's to say.
func matchesChild(current, want *kudo.Instance) bool {
	return current.Labels[kudo.LabelRoot] == want.Labels[kudo.LabelRoot] &&
		VersionOf(current) == VersionOf(want) &&
		current.Spec.ServiceAccountName == want.Spec.ServiceAccountName &&
		maps.Equal(current.Spec.Parameters, want.Spec.Parameters)
}

// rerun is the plan of a child that has failed before this execution, to be run again for it, once. None is, where the change that the
// parent makes leads to it by itself, or to another OperatorVersion; or where somebody has asked for a plan by hand already.
func (p Parent) rerun(step ChildStep, want *kudo.Instance, version *kudo.OperatorVersion) *kudo.PlanExecution {
	current := step.Current
	if current == nil || current.Status.Execution == nil || asksForPlan(current) {
		return nil
	}
	last := current.Status.Execution
	status := current.Status.PlanStatus[last.Plan]
	if _, exists := version.Spec.Plans[last.Plan]; !exists || status.UID != last.UID || status.Status != kudo.FatalError {
		return nil
	}
	if last.OperatorVersion.UID != version.UID || last.Plan == plan.Due(plan.Wish{
		Version: &version.Spec, Reference: last.OperatorVersion,
		Parameters: want.Spec.Parameters, Last: last, LastStatus: status.Status,
	}) {
		return nil
	}
	uid := hubUID(last.Plan, fmt.Sprintf("%s/%s", step.Status.Execution, current.UID))
	if uid == last.Request { // it was, and has failed again
		return nil
	}
	return &kudo.PlanExecution{PlanName: last.Plan, UID: uid}
}

// asksForPlan reports whether a plan is asked for by hand that was not started yet.
func asksForPlan(i *kudo.Instance) bool {
	request := i.Spec.PlanExecution
	return request.PlanName != "" && !request.Cancel && !isHandled(i)
}

// vanished removes the children for which the version has no task any more, once it has been brought about.
func (p Parent) vanished() []ChildStep {
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

// isWhole reports whether no plan runs and one that brings the whole of the version about is complete.
func (p Parent) isWhole() bool {
	statuses := p.Instance.Status.PlanStatus
	return !statuses[p.Instance.Status.Execution.Plan].Status.Running() && plan.IsWhole(statuses)
}

// childNames are the names of the children that the running version has tasks for.
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

// isPredecessors reports whether the Instance is a child of another parent of this one's name, which is gone.
func (p Parent) isPredecessors(i *kudo.Instance) bool {
	owner := i.Parent()
	return owner != nil && owner.Name == p.Instance.Name && owner.UID != p.Instance.UID
}

func (p Parent) named(name string) *kudo.Instance {
	for i := range p.Instances {
		if p.Instances[i].Name == name {
			return &p.Instances[i]
		}
	}
	return nil
}

// root is the name of the Instance at the root of the tree.
func (p Parent) root() string {
	if root := p.Instance.Labels[kudo.LabelRoot]; root != "" && p.Instance.Parent() != nil {
		return root
	}
	return p.Instance.Name
}
