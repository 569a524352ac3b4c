// Package preview computes the effects of a change of an Instance: which plans run and why, and which objects they create, change and
// remove. It is pure and touches no cluster.
package preview

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// Of returns the effects of the change.
func Of(c Change) Preview {
	p := of(c, 0)
	p.UnknownKinds = c.unknownKinds(p)
	return p
}

// maxDepth limits the depth of a tree of Instances, which is cyclic if it was not validate.
const maxDepth = 32

func of(c Change, depth int) Preview {
	state := c.state()
	forecast, err := plan.Forecast(state)
	p := Preview{}
	if err != nil {
		p.Problem = err.Error()
	}
	if choice, err := plan.Choose(state); len(forecast) > 0 && err == nil && choice.Start == nil && !choice.Adopt {
		p.WaitsFor = state.Last.Plan
	}
	p.Unsupported = plan.Unsupported(state)
	s := newSimulation(c, depth)
	for _, coming := range forecast {
		p.Plans = append(p.Plans, s.play(coming))
	}
	if c.After == nil {
		p.Removed, p.Children = s.removeAll(), s.ownChildren()
		p.Claims = collectClaims(newSimulation(c, depth).claims(), p.Children)
	}
	return p
}

// play simulates a plan: all of its tasks complete, in their order.
func (s *simulation) play(coming plan.Coming) Plan {
	version := s.versionOf(coming)
	played := Plan{Coming: coming, Problem: s.distortedCleanup(version, coming)}
	for p, phase := range version.Spec.Plans[coming.Plan].Phases {
		for i, step := range phase.Steps {
			for t := range step.Tasks {
				if placed, found := plan.Find(version.NamedSpec(), coming.Plan, plan.Task{Phase: p, Step: i, Task: t}); found {
					played.Tasks = append(played.Tasks, s.task(version, coming, placed))
				}
			}
		}
	}
	if played.Problem == "" {
		played.Problem = s.reservedProblem(played.Tasks)
	}
	ended := coming.CompletedStatus(version.NamedSpec())
	ended.Inventory = s.inventory
	played.Removed = s.prune(plan.Prunable(ended, version.NamedSpec()))
	if coming.Whole {
		played.Children = s.vanishedChildren(version, coming)
	}
	return played
}

// task simulates one task.
func (s *simulation) task(version *kudo.OperatorVersion, coming plan.Coming, placed plan.Placed) Task {
	t := Task{Placed: placed}
	action, err := plan.TaskActionOf(placed.Task, version.NamedSpec(), coming.Execution.Parameters)
	if err != nil {
		t.Problem = err.Error()
		return t
	}
	switch t.Action = action; action {
	case plan.Nothing:
		return t.withOutcome(plan.DummyOutcome(placed.Task.Spec.DummyTaskSpec))
	case plan.ApplyChild, plan.DeleteChild:
		t.Child, t.Problem = s.child(version, coming, placed)
		return t
	case plan.ApplyChart, plan.DeleteChart:
		return s.chart(t)
	}
	wants, err := s.wants(version.NamedSpec(), coming.Execution, placed)
	if err != nil {
		return t.withRenderError(err, &version.Spec, coming.Execution)
	}
	if dependsOnCluster(&version.Spec, coming.Execution, placed.Task.Spec.Resources...) {
		t.Warnings = append(t.Warnings, "its objects depend on the cluster's labels, claims and version, which are not known here")
	}
	s.place(wants)
	if t.Action == plan.Delete {
		t.Objects = append(s.delete(s.entriesOf(wants)), s.remove(plan.Surplus(s.inventory, placed.Task.Name, wants))...)
		return t
	}
	var unfit []string
	for _, want := range wants {
		t.Objects = append(t.Objects, s.apply(t, want, coming.Restart))
		unfit = append(unfit, misfits(want)...)
	}
	s.inventory = plan.MarkSurplus(s.inventory, plan.Surplus(s.inventory, placed.Task.Name, wants)...)
	warnings, problem := s.change.Validation.check(unfit)
	t.Warnings, t.Problem = append(t.Warnings, warnings...), problem
	return s.checkImmutable(t)
}

// chart returns the effect of a Helm task.
func (s *simulation) chart(t Task) Task {
	if t.Action == plan.DeleteChart {
		t.Objects = s.remove(plan.EntriesOf(s.inventory, t.Placed.Task.Name))
		return t
	}
	t.Warnings = []string{"what a chart renders is known on the cluster only, because its templates may read it"}
	return t
}

// child returns the effect on the child of a KudoOperator task, as the hub decides once the task is in progress. problem is why the task
// fails.
func (s *simulation) child(version *kudo.OperatorVersion, coming plan.Coming, placed plan.Placed) (child *Child, problem string) {
	steps := install.Children(s.parent(version, coming, kudo.PlanStatus{
		Status: kudo.InProgress,
		Phases: []kudo.PhaseStatus{{Name: placed.Phase, Steps: []kudo.StepStatus{{
			Name: placed.Step, Tasks: []kudo.TaskStatus{{Name: placed.Task.Name, Status: kudo.InProgress}},
		}}}},
	}))
	if len(steps) == 0 {
		return nil, ""
	}
	step := steps[0]
	child = &Child{Instance: step.Status.Instance, Effect: Unchanged}
	switch {
	case step.Status.State == kudo.ChildFailed:
		return child, step.Status.Message
	case step.Delete:
		child.Effect, child.Preview = Removed, s.previewRemoval(step.Current)
		s.change.Instances = slices.DeleteFunc(slices.Clone(s.change.Instances), func(i kudo.Instance) bool { return i.Name == child.Instance })
		return child, ""
	case step.Current == nil && step.Apply == nil: // disabled, and does not exist
		return nil, ""
	case step.Current == nil:
		child.Effect = Created
	case step.Apply != nil && !step.OnlyPins() || step.Rerun != nil:
		child.Effect = Changed
	}
	return child, s.below(child, step)
}

// below previews the effects on a child that is not removed.
func (s *simulation) below(child *Child, step install.ChildStep) (problem string) {
	change := Change{
		Before: step.Current, After: step.Apply, Instances: s.change.Instances, Candidates: s.change.Candidates, Validation: s.change.Validation,
		KubernetesVersion: s.change.KubernetesVersion, Facts: s.change.Facts, work: s.change.work,
	}
	if change.After == nil {
		change.After = step.Current
	}
	if step.Rerun != nil {
		change.Before = change.Before.DeepCopy()
		change.Before.Spec.PlanExecution = *step.Rerun
	}
	child.OperatorVersion = change.After.Spec.OperatorVersion.Name
	if step.Apply != nil {
		defer func() { s.settle(change) }()
	}
	if child.Effect == Unchanged || s.depth >= maxDepth {
		return ""
	}
	s.equip(&change)
	if change.Version == nil {
		return ""
	}
	if err := parameter.Validate(&change.Version.Spec, change.After.Spec.Parameters, change.After.Spec.ParametersFrom); err != nil {
		return err.Error()
	}
	below := of(change, s.depth+1)
	child.Preview = &below
	return ""
}

// previewRemoval returns the effects of the removal of a child.
func (s *simulation) previewRemoval(child *kudo.Instance) *Preview {
	if s.depth >= maxDepth {
		return nil
	}
	change := Change{Before: child, Instances: s.change.Instances, Candidates: s.change.Candidates, work: s.change.work}
	s.equip(&change)
	return new(of(change, s.depth+1))
}

// vanishedChildren returns the children without a task in the version, which the hub removes once the plan is complete.
func (s *simulation) vanishedChildren(version *kudo.OperatorVersion, coming plan.Coming) []Child {
	var children []Child
	for _, step := range install.Children(s.parent(version, coming, kudo.PlanStatus{Status: kudo.Complete})) {
		if step.Delete {
			children = append(children, Child{Instance: step.Current.Name, Effect: Removed, Preview: s.previewRemoval(step.Current)})
		}
	}
	return children
}

// ownChildren returns the Instance's children, which are deleted with it.
func (s *simulation) ownChildren() []Child {
	var children []Child
	for i := range s.change.Instances {
		if child := &s.change.Instances[i]; s.change.Before != nil && metav1.IsControlledBy(child, s.change.Before) {
			children = append(children, Child{Instance: child.Name, Effect: Removed, Preview: s.previewRemoval(child)})
		}
	}
	slices.SortFunc(children, func(a, b Child) int { return strings.Compare(a.Instance, b.Instance) })
	return children
}
