package plan

import (
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// wholePlan returns the plan that applies the complete desired OperatorVersion: deploy until one was completely applied, then the first
// that exists of upgrade, update and deploy.
func (s State) wholePlan() (string, error) {
	if s.Whole == nil {
		return firstPlan(s.Version, kudo.DeployPlan)
	}
	return firstPlan(s.Version, WholePlans...)
}

// appliesAll reports whether a manual run of the plan applies the complete OperatorVersion.
func (s State) appliesAll(name string) bool {
	whole, err := s.wholePlan()
	return name == kudo.DeployPlan || err == nil && name == whole
}

// owedAfterStart returns the plans that are owed once the plan has started that applies the complete OperatorVersion: the plan itself, then
// those that the changed parameters name as their triggers and those that were owed before, without plans whose tasks it contains. A
// parameter without a trigger adds nothing, because the whole plan applies its value. A whole plan that was owed before contains plans that were not owed
// beside it.
func (s State) owedAfterStart(whole string, changed []kudo.Parameter) []kudo.OwedPlan {
	var more []string
	for _, p := range changed {
		more = append(more, p.Trigger)
	}
	if s.Last != nil {
		for _, before := range s.Last.Owed {
			switch {
			case before.Whole:
				more = append(more, s.containedIn(before.Plan)...)
			case !s.isImplied(before.Plan):
				more = append(more, before.Plan)
			}
		}
	}
	owed := []kudo.OwedPlan{{Plan: whole, Whole: true}}
	for _, name := range more {
		if _, exists := s.Version.Plans[name]; exists && !containsPlan(s.Version, whole, name) && owedIndex(owed, name) < 0 {
			owed = append(owed, kudo.OwedPlan{Plan: name})
		}
	}
	return owed
}

// containedIn returns the plans that parameters trigger and that a plan of the last version contains. Deployment applies everything anyway.
func (s State) containedIn(whole string) []string {
	if s.Whole == nil || s.LastVersion == nil {
		return nil
	}
	var contained []string
	for _, p := range s.LastVersion.Parameters {
		if _, exists := s.LastVersion.Plans[p.Trigger]; exists && containsPlan(s.LastVersion, whole, p.Trigger) {
			contained = append(contained, p.Trigger)
		}
	}
	return contained
}

// isImplied reports whether only changes of parameters without a trigger can have owed the plan: no parameter names it.
func (s State) isImplied(name string) bool {
	if name != kudo.UpdatePlan && name != kudo.DeployPlan {
		return false
	}
	names := func(p kudo.Parameter) bool { return p.Trigger == name }
	return !slices.ContainsFunc(s.Version.Parameters, names) &&
		(s.LastVersion == nil || !slices.ContainsFunc(s.LastVersion.Parameters, names))
}

// containsPlan reports whether a plan runs all tasks of another one.
func containsPlan(version *kudo.OperatorVersionSpec, plan, other string) bool {
	tasks := tasksOf(version.Plans[plan])
	for name := range tasksOf(version.Plans[other]) {
		if !tasks[name] {
			return false
		}
	}
	return true
}

func tasksOf(spec kudo.Plan) map[string]bool {
	tasks := map[string]bool{}
	for _, phase := range spec.Phases {
		for _, step := range phase.Steps {
			for _, task := range step.Tasks {
				tasks[task] = true
			}
		}
	}
	return tasks
}

// addOwed adds a plan that is about to start to the owed ones. A plan that was owed as whole stays so, and one that applies the complete
// OperatorVersion replaces any other such plan.
func addOwed(owed []kudo.OwedPlan, more kudo.OwedPlan) []kudo.OwedPlan {
	if more.Whole {
		others := slices.DeleteFunc(slices.Clone(owed), func(o kudo.OwedPlan) bool { return o.Whole || o.Plan == more.Plan })
		return slices.Insert(others, 0, more)
	}
	owed = slices.Clone(owed)
	at := owedIndex(owed, more.Plan)
	if at < 0 {
		return append(owed, more)
	}
	more.Whole = owed[at].Whole
	owed[at] = more
	return owed
}

// retriesOf returns how often a plan was retried; zero if it is not owed.
func retriesOf(owed []kudo.OwedPlan, name string) int32 {
	if at := owedIndex(owed, name); at >= 0 {
		return owed[at].Retries
	}
	return 0
}

// owedAfterCleanup returns the owed plans once the cleanup plan has started: the OperatorVersion has to be deployed again.
func owedAfterCleanup(version *kudo.OperatorVersionSpec, owed []kudo.OwedPlan) []kudo.OwedPlan {
	deploy, err := firstPlan(version, kudo.DeployPlan, kudo.UpdatePlan, kudo.UpgradePlan)
	if err != nil {
		return owed
	}
	return addOwed(owed, kudo.OwedPlan{Plan: deploy, Whole: true})
}

// AffectedPlans returns the plans whose workloads restart if the execution takes changes that restart pods: its own plan and, if that
// applies the complete OperatorVersion, the plans owed after it.
func AffectedPlans(started *kudo.Execution) map[string]bool {
	affected := map[string]bool{started.Plan: true}
	if at := owedIndex(started.Owed, started.Plan); at >= 0 && started.Owed[at].Whole {
		for _, o := range started.Owed {
			affected[o.Plan] = true
		}
	}
	return affected
}

// resetOwed returns the owed plans as not failed: the spec has changed since.
func resetOwed(owed []kudo.OwedPlan) []kudo.OwedPlan {
	owed = slices.Clone(owed)
	for i := range owed {
		owed[i].Outcome, owed[i].RetryTime, owed[i].Retries = "", nil, 0
	}
	return owed
}

// firstOwed returns the owed plan that starts next by itself; empty if there is none. A plan that failed for the current spec does not before
// its retry is due, and neither do plans after a failed one that applies the complete OperatorVersion.
func (s State) firstOwed() string {
	for _, o := range s.Last.Owed {
		if o.Outcome == "" || s.DueRetries[o.Plan] {
			return o.Plan
		}
		if o.Whole {
			return ""
		}
	}
	return ""
}

// FailedOwed returns the first owed plan that failed or was cancelled for the current spec; empty if there is none.
func (s State) FailedOwed() string {
	if s.Last == nil {
		return ""
	}
	if i := slices.IndexFunc(s.Last.Owed, func(o kudo.OwedPlan) bool { return o.Outcome != "" }); i >= 0 {
		return s.Last.Owed[i].Plan
	}
	return ""
}
