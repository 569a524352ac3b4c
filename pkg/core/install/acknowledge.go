package install

import (
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Acknowledgements returns the desired status.children of the Instance, given those that the hub has recorded before. It omits tasks that
// the version no longer has once their child is gone or belongs to another task. Names that a task's child had before stay until those
// Instances are gone: the Instance is not ready before.
func Acknowledgements(p Parent, recorded []kudo.ChildStatus) []kudo.ChildStatus {
	forget := p.Instance.Status.Execution != nil && p.Running != nil && p.isWhole()
	var statuses []kudo.ChildStatus
	for _, before := range p.Instance.Status.Children {
		if slices.ContainsFunc(recorded, func(c kudo.ChildStatus) bool { return c.Task == before.Task }) {
			continue
		}
		if forget && p.isOver(before) {
			continue
		}
		statuses = append(statuses, before)
	}
	statuses = append(statuses, recorded...)
	slices.SortFunc(statuses, func(a, b kudo.ChildStatus) int { return strings.Compare(a.Task, b.Task) })
	for i := range statuses {
		statuses[i].Former = p.former(statuses[i], statuses)
	}
	return statuses
}

// Progress returns the part of an Instance's plan states that Children needs: which tasks are in progress, which owed plans have ended
// without completing, and the state of the last execution of an Instance that has children. It is empty for most Instances.
func Progress(status kudo.InstanceStatus) map[string]kudo.PlanStatus {
	kept := map[string]kudo.PlanStatus{}
	for name, state := range status.PlanStatus {
		last := status.Execution != nil && status.Execution.Plan == name
		brief := kudo.PlanStatus{Name: state.Name, Status: state.Status, UID: state.UID}
		switch {
		case last && state.Status.IsRunning():
			brief.Phases = activePhases(state.Phases)
		case status.Execution != nil && slices.ContainsFunc(status.Execution.Owed, func(o kudo.OwedPlan) bool { return o.Plan == name && o.Outcome != "" }):
		case len(status.Children) > 0 && last:
		default:
			continue
		}
		kept[name] = brief
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// activePhases returns the steps with tasks in progress, and only those tasks.
func activePhases(phases []kudo.PhaseStatus) []kudo.PhaseStatus {
	var kept []kudo.PhaseStatus
	for _, phase := range phases {
		brief := kudo.PhaseStatus{Name: phase.Name}
		for _, step := range phase.Steps {
			var tasks []kudo.TaskStatus
			for _, task := range step.Tasks {
				if task.Status == kudo.InProgress || task.Status == kudo.Error {
					tasks = append(tasks, kudo.TaskStatus{Name: task.Name, Status: task.Status})
				}
			}
			if len(tasks) > 0 {
				brief.Steps = append(brief.Steps, kudo.StepStatus{Name: step.Name, Tasks: tasks})
			}
		}
		if len(brief.Steps) > 0 {
			kept = append(kept, brief)
		}
	}
	return kept
}

// isOver reports whether the version no longer has the task, and nothing of the task's children is left.
func (p Parent) isOver(status kudo.ChildStatus) bool {
	_, exists := childTask(p.Running, status.Task)
	wanted := p.childNames()
	return !exists && !slices.ContainsFunc(append([]string{status.Instance}, status.Former...), func(name string) bool {
		return p.has(name) && !wanted[name]
	})
}

// has reports whether the Instance has a child of that name.
func (p Parent) has(name string) bool {
	child := p.findChild(name)
	return child != nil && p.owns(child)
}

// former returns the names under which the task had a child before, as far as those children exist and belong to no task.
func (p Parent) former(now kudo.ChildStatus, all []kudo.ChildStatus) []string {
	var names []string
	for _, before := range p.Instance.Status.Children {
		if before.Task != now.Task {
			continue
		}
		for _, name := range append([]string{before.Instance}, before.Former...) {
			taken := slices.ContainsFunc(all, func(s kudo.ChildStatus) bool { return s.Instance == name })
			if !taken && p.has(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
