package pack

import (
	"fmt"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// deployPlan: without it nothing is ever installed.
func deployPlan(s *subject) []Finding {
	if _, ok := s.Plans[kudo.DeployPlan]; ok {
		return nil
	}
	return []Finding{faultAt("plans", "plan deploy is missing: it is the one that installs the operator")}
}

// planStrategies: phases and steps follow each other serial or parallel; serial if nothing is said.
func planStrategies(s *subject) []Finding {
	var findings []Finding
	judge := func(what, field string, strategy kudo.Ordering) {
		if strategy != "" && strategy != kudo.Serial && strategy != kudo.Parallel {
			findings = append(findings, faultAt(field+".strategy",
				"%s: strategy %s does not exist: want serial or parallel", what, quote(string(strategy))))
		}
	}
	for _, name := range s.planNames {
		plan, field := s.Plans[name], "plans."+name
		judge("plan "+quote(name), field, plan.Strategy)
		for i, phase := range plan.Phases {
			where := fmt.Sprintf("plan %s, phase %s", quote(name), quote(phase.Name))
			judge(where, fmt.Sprintf("%s.phases[%d]", field, i), phase.Strategy)
		}
	}
	return findings
}

// planNames: phases have names of their own in a plan, steps in a phase: progress is kept by them.
func planNames(s *subject) []Finding {
	var findings []Finding
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
			where := fmt.Sprintf("plan %s, phase %s", quote(name), quote(phase.Name))
			findings = append(findings, distinct(where, "step", at+".steps", steps)...)
		}
		findings = append(findings, distinct("plan "+quote(name), "phase", field+".phases", phases)...)
	}
	return findings
}

// distinct: all names are there, and no two are equal.
func distinct(where, what, field string, names []string) []Finding {
	var findings []Finding
	for i, name := range names {
		if name == "" {
			findings = append(findings, faultAt(fmt.Sprintf("%s[%d]", field, i), "%s: %s %d has no name", where, what, i+1))
		}
	}
	repeated(names, func(i int) {
		findings = append(findings, faultAt(fmt.Sprintf("%s[%d].name", field, i),
			"%s: %s %s stands twice: rename one", where, what, quote(names[i])))
	})
	return findings
}

// stepTasks: steps run tasks that exist, each once.
func stepTasks(s *subject) []Finding {
	var findings []Finding
	s.eachStep(func(plan string, step *kudo.Step, field string) {
		where := fmt.Sprintf("plan %s, step %s", quote(plan), quote(step.Name))
		if len(step.Tasks) == 0 {
			findings = append(findings, warningAt(field, "%s: it has no tasks and does nothing", where))
		}
		for i, name := range step.Tasks {
			if s.tasks[name] == nil {
				findings = append(findings, faultAt(fmt.Sprintf("%s.tasks[%d]", field, i), "%s: task %s does not exist: %s",
					where, quote(name), choices(s.taskNames)))
			}
		}
		repeated(step.Tasks, func(i int) {
			findings = append(findings, faultAt(fmt.Sprintf("%s.tasks[%d]", field, i),
				"%s: task %s is listed twice, and a step runs each task once: remove one", where, quote(step.Tasks[i])))
		})
	})
	return findings
}

// cleanupWithoutChildren: while an Instance is removed, so are its children; none can be made then (KEP-29).
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
					quote(step.Name), quote(name), t.Kind))
			}
		}
	})
	return findings
}
