package preview

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

// withOutcome returns a Dummy task with its outcome. One that waits does not fail.
func (t Task) withOutcome(outcome plan.Outcome) Task {
	switch outcome.Status {
	case kudo.Complete:
	case kudo.InProgress:
		t.Warnings = append(t.Warnings, outcome.Message)
	default:
		t.Problem = outcome.Message
	}
	return t
}

// checkImmutable returns a task with the immutable fields that it would change. Where the last plan is not complete, it is not known whether
// the task before has applied them.
func (s *simulation) checkImmutable(t Task) Task {
	for _, o := range t.Objects {
		if o.Effect != Changed {
			continue
		}
		fields := immutableChanges(o.Before, o.After)
		if len(fields) == 0 {
			continue
		}
		problem := plan.Describe(o.After) + ": " + plan.CannotChangeText(fields...)
		if s.isSettled() {
			t.Problem = strings.TrimPrefix(t.Problem+"; "+problem, "; ")
		} else {
			t.Warnings = append(t.Warnings, "may fail, because the last plan is not complete: "+problem)
		}
	}
	return t
}

// isSettled reports whether the last execution has applied everything that it renders.
func (s *simulation) isSettled() bool {
	before := s.change.Before
	if before == nil || s.change.Started == nil {
		return false
	}
	reached := plan.ReachedState(before.Status, &s.change.Started.Spec)
	return reached.LastStatus == kudo.Complete && len(reached.Last.Owed) == 0
}

// withRenderError returns a task whose templates do not render. Where a template uses a sensitive parameter, whose value is not known on
// the hub, or is in content that the user may not read, it may render on the cluster.
func (t Task) withRenderError(err error, version *kudo.OperatorVersionSpec, execution kudo.Execution) Task {
	var failed *template.Error
	if errors.As(err, &failed) && usesAny(version.Templates[failed.Template], execution.ParametersFrom) {
		t.Warnings = append(t.Warnings, "may fail, depending on sensitive parameters: "+err.Error())
		return t
	}
	if failed != nil && dependsOnCluster(version, execution, failed.Template) {
		t.Warnings = append(t.Warnings, "may fail, depending on the cluster's labels, claims and version, which are not known here: "+err.Error())
		return t
	}
	if errors.Is(err, render.ErrNoContent) {
		t.Warnings = append(t.Warnings, "its objects are unknown here: "+err.Error())
		return t
	}
	t.Problem = err.Error()
	return t
}

// dependsOnCluster reports whether one of the templates uses facts of the cluster that are not known yet: addon-manager and the agent record them.
func dependsOnCluster(version *kudo.OperatorVersionSpec, execution kudo.Execution, templates ...string) bool {
	return slices.ContainsFunc(templates, func(name string) bool {
		return facts.UsesUnknown(version.Templates[name], execution.Cluster, execution.KubernetesVersion)
	})
}

// distortedCleanup returns why the agent does not start a plan: a value changes the structure of a template of the cleanup plan, and could not
// be corrected during a removal. It is empty if the plan starts.
func (s *simulation) distortedCleanup(version *kudo.OperatorVersion, coming plan.Coming) string {
	if coming.Plan == kudo.CleanupPlan {
		return ""
	}
	for _, placed := range plan.Everywhere(version.NamedSpec()) {
		if placed.Plan != kudo.CleanupPlan {
			continue
		}
		var changes *render.StructureError
		_, err := s.wants(version.NamedSpec(), coming.Execution, placed)
		if errors.As(err, &changes) && (Task{}).withRenderError(err, &version.Spec, coming.Execution).Problem != "" {
			return fmt.Sprintf("plan %q, phase %q: step %q: task %q: %v", placed.Plan, placed.Phase, placed.Step, placed.Task.Name, err)
		}
	}
	return ""
}

// usesAny reports whether a template uses one of the sensitive parameters.
func usesAny(source string, from []kudo.StartedParameterFrom) bool {
	if len(from) == 0 {
		return false
	}
	parsed, err := template.Parse("", source)
	if err != nil {
		return false // it fails with any value
	}
	for _, use := range template.Uses(parsed) {
		for _, f := range from {
			if use.Parameter == "" || use.Parameter == f.Name {
				return true
			}
		}
	}
	return false
}
