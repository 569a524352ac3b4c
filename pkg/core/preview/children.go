package preview

import (
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// playing is the uid of simulated executions.
const playing = "preview"

// parent returns the Instance during the execution, with its status.
func (s *simulation) parent(version *kudo.OperatorVersion, coming plan.Coming, status kudo.PlanStatus) install.Parent {
	parent := s.instance.DeepCopy()
	if s.change.After != nil {
		parent.Spec = *s.change.After.Spec.DeepCopy()
	}
	coming.UID, status.UID = playing, playing
	if status.Status == kudo.Complete {
		parent.Status = coming.CompletedStatus(&version.Spec)
	} else {
		parent.Status.Execution = &coming.Execution
	}
	parent.Status.PlanStatus = map[string]kudo.PlanStatus{coming.Plan: status}
	return install.Parent{
		Instance: parent, Running: version, Wanted: version, Instances: s.change.Instances, Candidates: s.change.Candidates,
		Files: s.change.work,
	}
}

// equip sets the versions of a child's change, if they exist.
func (s *simulation) equip(change *Change) {
	operators := s.operators()
	for i := range s.change.Candidates {
		if version := &s.change.Candidates[i]; slices.Contains(operators, version.OperatorName()) {
			change.take(version)
		}
	}
}

// settle updates the child among the Instances, for the plans that run later.
func (s *simulation) settle(of Change) {
	child := of.After.DeepCopy()
	child.UID = playing
	if of.Before != nil {
		child.Status, child.UID = of.Before.Status, of.Before.UID
	}
	if forecast, err := plan.Forecast(of.state()); err == nil && len(forecast) > 0 {
		last := forecast[len(forecast)-1]
		last.UID = playing
		inventory := child.Status.Inventory
		child.Status = last.CompletedStatus(&of.Version.Spec)
		child.Status.Inventory = inventory
	}
	others := slices.DeleteFunc(slices.Clone(s.change.Instances), func(i kudo.Instance) bool { return i.Name == child.Name })
	s.change.Instances = append(others, *child)
}

// operators returns the child operators of the tasks of either version.
func (s *simulation) operators() []string {
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
