package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// CauseText returns the reason why a plan runs.
func (p PlanData) CauseText() string {
	switch p.Cause {
	case plan.Installation:
		return "no plan has run yet"
	case plan.OtherVersion, plan.OtherParameters, plan.OtherRegistries:
		return "change of " + strings.Join(p.changes(), " and ")
	case plan.StillOwed:
		return "still owed: not complete yet"
	case plan.RemovalRequested:
		return "before the objects of the Instance are removed"
	default:
		return "requested manually"
	}
}

// changes returns what differs from the last execution.
func (p PlanData) changes() (changed []string) {
	if p.Cause == plan.OtherVersion {
		changed = append(changed, "OperatorVersion")
	}
	switch len(p.Parameters) {
	case 0:
	case 1:
		changed = append(changed, "parameter "+p.Parameters[0])
	default:
		changed = append(changed, "parameters "+strings.Join(p.Parameters, ", "))
	}
	if p.ImageRegistries {
		changed = append(changed, "image registries")
	}
	return changed
}

// PodsText states whether pods restart, unless that is obvious.
func (p PlanData) PodsText() string {
	switch {
	case p.Cause == plan.Installation || p.Cause == plan.RemovalRequested:
		return ""
	case p.RestartsPods:
		if slices.ContainsFunc(p.Tasks, func(t TaskData) bool { return t.Kind == kudo.TaskHelm }) {
			return "all pods of the applied objects restart, those of charts only if forcePodRestart is \"true\""
		}
		return "all pods of the applied objects restart"
	case len(p.NoRestart) > 0:
		return "pods restart only where they change (forcePodRestart is false)"
	default:
		return ""
	}
}

// KindText returns the kind of a task, with its action if that depends on a parameter or a pod.
func (t TaskData) KindText() string {
	switch t.Kind {
	case kudo.TaskToggle:
		return fmt.Sprintf("%s: %s", t.Kind, strings.ToLower(string(t.Action)))
	case kudo.TaskHelm:
		return fmt.Sprintf("%s: %s", t.Kind, strings.ToLower(strings.TrimSuffix(string(t.Action), "Chart")))
	case kudo.TaskPipe:
		return fmt.Sprintf("%s: a pod writes the files", t.Kind)
	default:
		return t.Kind
	}
}

// verbs are the effects as actions that a plan attempts.
var verbs = map[Effect]string{
	Created: "create", Changed: "change", Removed: "remove", Kept: "keep", Annotated: "annotate", Restarted: "restart", Replaced: "replace",
	Renewed: "renew",
}

// Verb returns the action that has the effect: whether it succeeds is known on the cluster only.
func (e Effect) Verb() string { return cmp.Or(verbs[e], string(e)) }

// String returns kind, namespace and name.
func (o ObjectData) String() string {
	return kudo.InventoryEntry{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}.String()
}
