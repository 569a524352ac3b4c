package pack

import (
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/text"
)

// declaredPermissions: the API server accepts the declared permissions, and agents do not refuse them.
func declaredPermissions(s *subject) []Problem {
	var problems []Problem
	for _, p := range rights.Problems(s.Permissions) {
		problem := problemAt(p.Field, "%s", p.Message)
		if p.Warning {
			problem.Severity = Warning
		}
		problems = append(problems, problem)
	}
	return problems
}

// neededPermissions: a package that declares permissions declares those that its tasks and references to Secrets need, and no others. Like dryRun it is not a rule of
// Check.
func neededPermissions(s *subject) []Problem {
	if s.Permissions == nil {
		return nil
	}
	needs := needsOf(s)
	var problems []Problem
	for _, missing := range needs.FindMissing(s.Permissions) {
		if missing.Task == "" {
			problems = append(problems, warningAt("permissions", "sensitive parameter %s is read from a Secret, and the plans have no permission to get it: "+
				"add %s, with the names of the Secrets as resourceNames", text.Quote(missing.Parameter), missing.Right))
			continue
		}
		problems = append(problems, warningAt("permissions", "task %s has no permission to %s: add it ('kubectl addon package rights' prints "+
			"all that are needed)", text.Quote(missing.Task), missing.Right))
	}
	if s.hasCharts() { // they may render more with other parameters
		return problems
	}
	excess := needs.Excess(s.Permissions)
	for _, field := range sortedKeys(excess) {
		problems = append(problems, warningAt(field, "no task needs the permission to %s: remove it", excess[field]))
	}
	return problems
}
