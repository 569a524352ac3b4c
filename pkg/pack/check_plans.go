package pack

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"

	"github.com/tandem-addons/tandem/pkg/text"
)

// deployPlan: plan deploy exists; without it nothing is ever installed.
func deployPlan(s *subject) []Finding {
	if _, ok := s.Plans[kudo.DeployPlan]; ok {
		return nil
	}
	return []Finding{faultAt("plans", "plan deploy is missing: it installs the operator")}
}

// planStrategies: the strategy of phases and steps is serial or parallel; the default is serial.
func planStrategies(s *subject) []Finding {
	var findings []Finding
	judge := func(what, field string, strategy kudo.Ordering) {
		if strategy != "" && strategy != kudo.Serial && strategy != kudo.Parallel {
			findings = append(findings, faultAt(field+".strategy",
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
	return findings
}

// planNames: the names of plans, of the phases in a plan and of the steps in a phase are unique: the status identifies them by name.
func planNames(s *subject) []Finding {
	var findings []Finding
	repeated(s.planNames, func(i, first int) {
		findings = append(findings, twice("plans."+s.planNames[i], "plan "+text.Quote(s.planNames[i]), s.planNames[i], s.planNames[first]))
	})
	for _, name := range s.planNames {
		plan, field := s.Plans[name], "plans."+name
		if name == "" {
			findings = append(findings, faultAt("plans", "a plan has no name"))
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
			findings = append(findings, distinct(where, "step", at+".steps", steps)...)
		}
		findings = append(findings, distinct("plan "+text.Quote(name), "phase", field+".phases", phases)...)
	}
	return findings
}

// distinct: all names are set, and no two are equal.
func distinct(where, what, field string, names []string) []Finding {
	var findings []Finding
	for i, name := range names {
		if name == "" {
			findings = append(findings, faultAt(fmt.Sprintf("%s[%d]", field, i), "%s: %s %d has no name", where, what, i+1))
		}
	}
	repeated(names, func(i, first int) {
		name := fmt.Sprintf("%s: %s %s", where, what, text.Quote(names[i]))
		findings = append(findings, twice(fmt.Sprintf("%s[%d].name", field, i), name, names[i], names[first]))
	})
	return findings
}

// planTimeouts: a timeout is positive, and can expire before the timeout of the whole.
func planTimeouts(s *subject) []Finding {
	var findings []Finding
	judge := func(what, field string, own, whole *metav1.Duration) *metav1.Duration {
		switch {
		case own == nil:
			return whole
		case own.Duration <= 0:
			findings = append(findings, faultAt(field+".timeout", "%s: timeout %s must be positive: "+
				"set a duration such as 90s or 5m, or remove it", what, own.Duration))
			return whole
		case whole != nil && own.Duration > whole.Duration:
			findings = append(findings, warningAt(field+".timeout", "%s: timeout %s has no effect: the enclosing timeout is %s",
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
	return findings
}

// stepTasks: steps run existing tasks, each once.
func stepTasks(s *subject) []Finding {
	var findings []Finding
	s.eachStep(func(plan string, step *kudo.Step, field string) {
		where := fmt.Sprintf("plan %s, step %s", text.Quote(plan), text.Quote(step.Name))
		if len(step.Tasks) == 0 {
			findings = append(findings, warningAt(field, "%s has no tasks and does nothing", where))
		}
		for i, name := range step.Tasks {
			if s.tasks[name] == nil {
				findings = append(findings, faultAt(fmt.Sprintf("%s.tasks[%d]", field, i), "%s: task %s does not exist: %s",
					where, text.Quote(name), s.choices(name, s.taskNames)))
			}
		}
		repeated(step.Tasks, func(i, first int) {
			if step.Tasks[i] != step.Tasks[first] {
				return // another task, defined separately
			}
			findings = append(findings, faultAt(fmt.Sprintf("%s.tasks[%d]", field, i),
				"%s: task %s is listed twice, and a step runs each task once: remove one", where, text.Quote(step.Tasks[i])))
		})
	})
	return findings
}

// cleanupWithoutChildren: the removal of an Instance includes its children; the cleanup plan cannot create any (KEP-29).
func cleanupWithoutChildren(s *subject) []Finding {
	var findings []Finding
	s.eachStep(func(plan string, step *kudo.Step, field string) {
		if plan != kudo.CleanupPlan {
			return
		}
		for i, name := range step.Tasks {
			if t := s.tasks[name]; t != nil && makesChild(t.Kind) {
				findings = append(findings, faultAt(fmt.Sprintf("%s.tasks[%d]", field, i),
					"plan cleanup, step %s: task %s is of kind %s, which cleanup cannot run: children are removed with their parent",
					text.Quote(step.Name), text.Quote(name), t.Kind))
			}
		}
	})
	return findings
}
