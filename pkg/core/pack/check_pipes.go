package pack

import (
	"fmt"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// turn is the position of a task in a plan: the indices of its phase, its step and itself.
type turn struct{ phase, step, task int }

// pipeOrder: a plan that both creates and uses files creates them first. Files of an earlier plan exist in every later plan, even for the
// pod that re-creates them; no plan precedes deploy.
func pipeOrder(s *subject) []Problem {
	makers := s.pipeMakers()
	if len(makers) == 0 {
		return nil
	}
	var problems []Problem
	for _, name := range s.planNames {
		plan := s.Plans[name]
		runs := map[string][]turn{}
		eachTask(plan, func(at turn, task string) { runs[task] = append(runs[task], at) })
		eachTask(plan, func(at turn, task string) {
			for _, key := range s.pipesUsed(task) {
				maker := makers[key]
				field := fmt.Sprintf("plans.%s.phases[%d].steps[%d].tasks[%d]", name, at.phase, at.step, at.task)
				switch {
				case maker == "" || maker == task || anyBefore(plan, runs[maker], at):
				case len(runs[maker]) > 0:
					problems = append(problems, problemAt(field,
						"plan %s: task %s uses .Pipes.%s, which task %s may not have created yet: run that task first",
						text.Quote(name), text.Quote(task), key, text.Quote(maker)))
				case name == kudo.DeployPlan:
					problems = append(problems, warningAt(field, "plan %s: task %s uses .Pipes.%s, which task %s creates, but not in this plan",
						text.Quote(name), text.Quote(task), key, text.Quote(maker)))
				}
			}
		})
	}
	return problems
}

// pipeMakers returns the Pipe task that creates the file of each key.
func (s *subject) pipeMakers() map[string]string {
	makers := map[string]string{}
	for _, t := range s.Tasks {
		if t.Kind == kudo.TaskPipe {
			for _, p := range t.Spec.Pipe {
				makers[p.Key] = t.Name
			}
		}
	}
	return makers
}

// pipesUsed returns the keys that the templates of a task refer to, each once.
func (s *subject) pipesUsed(task string) []string {
	t := s.tasks[task]
	if t == nil {
		return nil
	}
	var keys []string
	seen := map[string]bool{}
	for _, template := range append([]string{t.Spec.Pod, t.Spec.ParameterFile, t.Spec.ValuesFile}, t.Spec.Resources...) {
		for _, ref := range s.references[template] {
			if ref.kind == pipeReference && !seen[ref.name] {
				seen[ref.name] = true
				keys = append(keys, ref.name)
			}
		}
	}
	return keys
}

func eachTask(plan kudo.Plan, visit func(at turn, task string)) {
	for i, phase := range plan.Phases {
		for j, step := range phase.Steps {
			for k, task := range step.Tasks {
				visit(turn{i, j, k}, task)
			}
		}
	}
}

// anyBefore reports whether one of these positions precedes another one in the plan, even among parallel tasks.
func anyBefore(plan kudo.Plan, places []turn, at turn) bool {
	for _, p := range places {
		switch {
		case p.phase != at.phase:
			if p.phase < at.phase && plan.Strategy != kudo.Parallel {
				return true
			}
		case p.step != at.step:
			if p.step < at.step && plan.Phases[at.phase].Strategy != kudo.Parallel {
				return true
			}
		case p.task < at.task:
			return true
		}
	}
	return false
}
