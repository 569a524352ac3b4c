package preview

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/install"
	"github.com/tandem-addons/tandem/pkg/parameter"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// playing is the uid of executions that nobody has started.
const playing = "preview"

// parent is the Instance in the middle of the execution, with that of its status.
func (s *stand) parent(version *kudo.OperatorVersion, coming plan.Coming, status kudo.PlanStatus) install.Parent {
	parent := s.instance.DeepCopy()
	if s.change.After != nil {
		parent.Spec = *s.change.After.Spec.DeepCopy()
	}
	execution := coming.Execution
	execution.UID, status.UID = playing, playing
	parent.Status.Execution = &execution
	parent.Status.PlanStatus = map[string]kudo.PlanStatus{coming.Plan: status}
	return install.Parent{
		Instance: parent, Running: version, Wanted: version, Instances: s.change.Instances, Candidates: s.change.Candidates,
	}
}

// child is what becomes of the child of a KudoOperator task, as the hub decides it once the task is in progress. The fault says why the
// task fails.
func (s *stand) child(version *kudo.OperatorVersion, coming plan.Coming, placed plan.Placed) (child *Child, fault string) {
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
		child.Effect, child.Preview = Removed, s.gone(step.Current)
		s.change.Instances = slices.DeleteFunc(slices.Clone(s.change.Instances), func(i kudo.Instance) bool { return i.Name == child.Instance })
		return child, ""
	case step.Current == nil && step.Apply == nil: // switched off, and not there
		return nil, ""
	case step.Current == nil:
		child.Effect = Created
	case step.Apply != nil || step.Rerun != nil:
		child.Effect = Changed
	}
	return child, s.below(child, step)
}

// below looks into what comes of a child that is there to stay.
func (s *stand) below(child *Child, step install.ChildStep) (fault string) {
	change := Change{Before: step.Current, After: step.Apply, Instances: s.change.Instances, Candidates: s.change.Candidates}
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
	if child.Effect == Unchanged || s.depth >= deepest {
		return ""
	}
	s.equip(&change)
	if change.Version == nil {
		return ""
	}
	if err := parameter.Validate(&change.Version.Spec, change.After.Spec.Parameters); err != nil {
		return err.Error()
	}
	below := of(change, s.depth+1)
	child.Preview = &below
	return ""
}

// gone is what the removal of a child brings about.
func (s *stand) gone(child *kudo.Instance) *Preview {
	if s.depth >= deepest {
		return nil
	}
	change := Change{Before: child, Instances: s.change.Instances, Candidates: s.change.Candidates}
	s.equip(&change)
	return new(of(change, s.depth+1))
}

// equip gives the change of a child its versions, as far as they are there.
func (s *stand) equip(change *Change) {
	operators := s.operators()
	for i := range s.change.Candidates {
		if version := &s.change.Candidates[i]; slices.Contains(operators, version.Spec.Operator.Name) {
			change.take(version)
		}
	}
}

// settle puts the child among the Instances as it is then: plans that run after this one find it so.
func (s *stand) settle(of Change) {
	child := of.After.DeepCopy()
	child.UID = playing
	if of.Before != nil {
		child.Status, child.UID = of.Before.Status, of.Before.UID
	}
	if ahead, err := plan.Ahead(of.wish()); err == nil && len(ahead) > 0 {
		child.Status.Execution = &ahead[len(ahead)-1].Execution
		child.Status.PlanStatus = map[string]kudo.PlanStatus{child.Status.Execution.Plan: {Status: kudo.Complete}}
	}
	others := slices.DeleteFunc(slices.Clone(s.change.Instances), func(i kudo.Instance) bool { return i.Name == child.Name })
	s.change.Instances = append(others, *child)
}

// take takes the version for what it is of the change.
func (c *Change) take(version *kudo.OperatorVersion) {
	if c.After != nil {
		if name := install.VersionOf(c.After); version.Namespace == name.Namespace && version.Name == name.Name {
			c.Version = version
		}
	}
	if c.Before != nil && c.Before.Status.Execution != nil && c.Before.Status.Execution.OperatorVersion.UID == version.UID {
		c.Started = version
	}
}

// operators are those that tasks of either version bring along.
func (s *stand) operators() []string {
	var names []string
	for _, version := range []*kudo.OperatorVersion{s.change.Version, s.change.Started} {
		if version == nil {
			continue
		}
		for _, task := range version.Spec.Tasks {
			if task.Spec.Package != "" && !slices.Contains(names, task.Spec.Package) {
				names = append(names, task.Spec.Package)
			}
		}
	}
	return names
}

// vanishedChildren are the children that the version has no task for any more, as the hub removes them once the plan is complete.
func (s *stand) vanishedChildren(version *kudo.OperatorVersion, coming plan.Coming) []Child {
	var children []Child
	for _, step := range install.Children(s.parent(version, coming, kudo.PlanStatus{Status: kudo.Complete})) {
		if step.Delete {
			children = append(children, Child{Instance: step.Current.Name, Effect: Removed, Preview: s.gone(step.Current)})
		}
	}
	return children
}

// ownChildren are the Instance's children, which go with it.
func (s *stand) ownChildren() []Child {
	var children []Child
	for i := range s.change.Instances {
		if child := &s.change.Instances[i]; s.change.Before != nil && metav1.IsControlledBy(child, s.change.Before) {
			children = append(children, Child{Instance: child.Name, Effect: Removed, Preview: s.gone(child)})
		}
	}
	slices.SortFunc(children, func(a, b Child) int { return strings.Compare(a.Instance, b.Instance) })
	return children
}
