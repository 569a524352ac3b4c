package pack

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/release"
	"github.com/tandem-addons/tandem/pkg/text"
)

// deployPlan: a package without plan deploy can only be upgraded to, if it has the plans for that.
func deployPlan(s *subject) []Problem {
	if _, ok := s.Plans[kudo.DeployPlan]; ok {
		return nil
	}
	for _, name := range []string{kudo.UpgradePlan, kudo.UpdatePlan} {
		if _, ok := s.Plans[name]; ok {
			return []Problem{warningAt("plans", "plan deploy is missing: Instances can only be upgraded to this version")}
		}
	}
	return []Problem{problemAt("plans", "plan deploy is missing: it installs the operator")}
}

// planStrategies: the strategy of phases and steps is serial or parallel; the default is serial.
func planStrategies(s *subject) []Problem {
	var problems []Problem
	judge := func(what, field string, strategy kudo.Ordering) {
		if strategy != "" && strategy != kudo.Serial && strategy != kudo.Parallel {
			problems = append(problems, problemAt(field+".strategy",
				"%s: unknown strategy %s: must be serial or parallel", what, text.Quote(string(strategy))))
		}
	}
	for _, name := range s.planNames {
		plan, field := s.Plans[name], "plans."+name
		judge("plan "+text.Quote(name), field, plan.Strategy)
		for i, phase := range plan.Phases {
			where := fmt.Sprintf("plan %s, phase %s", text.Quote(name), text.Quote(phase.Name))
			judge(where, fmt.Sprintf("%s.phases[%d]", field, i), phase.Strategy)
		}
	}
	return problems
}

// planNames: the names of plans, of the phases in a plan and of the steps in a phase are unique: the status identifies them by name.
func planNames(s *subject) []Problem {
	var problems []Problem
	visitRepeated(s.planNames, func(i, first int) {
		problems = append(problems, twice("plans."+s.planNames[i], "plan "+text.Quote(s.planNames[i]), s.planNames[i], s.planNames[first]))
	})
	for _, name := range s.planNames {
		plan, field := s.Plans[name], "plans."+name
		if name == "" {
			problems = append(problems, problemAt("plans", "a plan has no name"))
		}
		phases := make([]string, len(plan.Phases))
		for i, phase := range plan.Phases {
			phases[i] = phase.Name
			at := fmt.Sprintf("%s.phases[%d]", field, i)
			steps := make([]string, len(phase.Steps))
			for j := range phase.Steps {
				steps[j] = phase.Steps[j].Name
			}
			where := fmt.Sprintf("plan %s, phase %s", text.Quote(name), text.Quote(phase.Name))
			problems = append(problems, distinct(where, "step", at+".steps", steps)...)
		}
		problems = append(problems, distinct("plan "+text.Quote(name), "phase", field+".phases", phases)...)
	}
	return problems
}

// distinct: all names are set, and no two are equal.
func distinct(where, what, field string, names []string) []Problem {
	var problems []Problem
	for i, name := range names {
		if name == "" {
			problems = append(problems, problemAt(fmt.Sprintf("%s[%d]", field, i), "%s: %s %d has no name", where, what, i+1))
		}
	}
	visitRepeated(names, func(i, first int) {
		name := fmt.Sprintf("%s: %s %s", where, what, text.Quote(names[i]))
		problems = append(problems, twice(fmt.Sprintf("%s[%d].name", field, i), name, names[i], names[first]))
	})
	return problems
}

// planTimeouts: a timeout is positive, and can expire before the timeout of the whole.
func planTimeouts(s *subject) []Problem {
	var problems []Problem
	judge := func(what, field string, own, whole *metav1.Duration) *metav1.Duration {
		switch {
		case own == nil:
			return whole
		case own.Duration <= 0:
			problems = append(problems, problemAt(field+".timeout", "%s: timeout %s must be greater than 0: "+
				"set a duration such as 90s or 5m, or remove it", what, own.Duration))
			return whole
		case whole != nil && own.Duration > whole.Duration:
			problems = append(problems, warningAt(field+".timeout", "%s: timeout %s has no effect: the enclosing timeout is %s",
				what, own.Duration, whole.Duration))
			return whole
		}
		return own
	}
	for _, name := range s.planNames {
		plan, field := s.Plans[name], "plans."+name
		ofPlan := judge("plan "+text.Quote(name), field, plan.Timeout, nil)
		for i, phase := range plan.Phases {
			at := fmt.Sprintf("%s.phases[%d]", field, i)
			where := fmt.Sprintf("plan %s, phase %s", text.Quote(name), text.Quote(phase.Name))
			ofPhase := judge(where, at, phase.Timeout, ofPlan)
			for j := range phase.Steps {
				step := &phase.Steps[j]
				judge(where+", step "+text.Quote(step.Name), fmt.Sprintf("%s.steps[%d]", at, j), step.Timeout, ofPhase)
			}
		}
	}
	return problems
}

// stepTasks: steps run existing tasks, each once.
func stepTasks(s *subject) []Problem {
	var problems []Problem
	s.eachStep(func(plan string, step *kudo.Step, field string) {
		where := fmt.Sprintf("plan %s, step %s", text.Quote(plan), text.Quote(step.Name))
		if len(step.Tasks) == 0 {
			problems = append(problems, warningAt(field, "%s has no tasks and does nothing", where))
		}
		for i, name := range step.Tasks {
			if s.tasks[name] == nil {
				problems = append(problems, problemAt(fmt.Sprintf("%s.tasks[%d]", field, i), "%s: task %s does not exist: %s",
					where, text.Quote(name), s.choices(name, s.taskNames)))
			}
		}
		visitRepeated(step.Tasks, func(i, first int) {
			if step.Tasks[i] != step.Tasks[first] {
				return // another task, defined separately
			}
			problems = append(problems, problemAt(fmt.Sprintf("%s.tasks[%d]", field, i),
				"%s: task %s is listed twice, and a step runs each task once: remove one", where, text.Quote(step.Tasks[i])))
		})
	})
	return problems
}

// cleanupTasks: the removal of an Instance includes its children and its charts, so the cleanup plan can run neither (KEP-29).
func cleanupTasks(s *subject) []Problem {
	var problems []Problem
	s.eachStep(func(plan string, step *kudo.Step, field string) {
		if plan != kudo.CleanupPlan {
			return
		}
		for i, name := range step.Tasks {
			at := fmt.Sprintf("%s.tasks[%d]", field, i)
			switch t := s.tasks[name]; {
			case t == nil:
			case makesChild(t.Kind):
				problems = append(problems, problemAt(at, "plan cleanup, step %s: task %s is of kind %s, which cleanup cannot run: "+
					"children are removed with their parent", text.Quote(step.Name), text.Quote(name), t.Kind))
			case t.Kind == kudo.TaskHelm:
				problems = append(problems, problemAt(at, "plan cleanup, step %s: task %s: %v", text.Quote(step.Name), text.Quote(name), release.ErrCleanup))
			}
		}
	})
	return problems
}
