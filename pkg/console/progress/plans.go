package progress

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/resume"
	"github.com/tandem-addons/tandem/pkg/text"
)

// PlanNames returns the existing plans and the plans that have run, sorted.
func PlanNames(view View) []string {
	names := map[string]bool{}
	if view.Version != nil {
		for name := range view.Version.Spec.Plans {
			names[name] = true
		}
	}
	for name := range view.Instance.Status.PlanStatus {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Plan returns the status of a plan, which may be a plan of an earlier version; a plan that never ran has the phases and steps of the
// current one.
func (v View) Plan(name string) kudo.PlanStatus {
	status := v.Instance.Status.PlanStatus[name]
	status.Name, status.Status = name, State(status.Status)
	if len(status.Phases) == 0 && v.Version != nil {
		status.Phases = neverRun(v.Version.Spec.Plans[name])
	}
	return status
}

// Hooks returns the hooks of charts that the last execution of a plan has started, by Helm task and in the order in which they started.
func (v View) Hooks(status kudo.PlanStatus) map[string][]Hook {
	hooks := map[string][]Hook{}
	for _, record := range v.Instance.Status.Tasks {
		if record.HooksOf == "" || record.HooksOf != status.UID {
			continue
		}
		for _, hook := range record.Hooks {
			hooks[record.Task] = append(hooks[record.Task], Hook{
				Event: hook.Event, Object: objectText(hook), Status: hookStatuses[hook.State], Message: hook.Message,
			})
		}
	}
	return hooks
}

// Hook is a hook of a chart.
type Hook struct {
	// Event is what it runs at, such as pre-install.
	Event string `json:"event"`
	// Object is its kind, namespace and name.
	Object string               `json:"object"`
	Status kudo.ExecutionStatus `json:"status"`
	// Message is why it has failed.
	Message string `json:"message,omitempty"`
}

var hookStatuses = map[kudo.HookState]kudo.ExecutionStatus{
	kudo.HookRunning: kudo.InProgress, kudo.HookSucceeded: kudo.Complete, kudo.HookFailed: kudo.FatalError,
}

// objectText returns the object of a hook as messages of tasks name it.
func objectText(hook kudo.HookRecord) string {
	return hook.Kind + " " + strings.TrimPrefix(hook.Namespace+"/"+hook.Name, "/")
}

// neverRun returns the phases and steps of a plan that never ran.
func neverRun(plan kudo.Plan) []kudo.PhaseStatus {
	phases := make([]kudo.PhaseStatus, len(plan.Phases))
	for i, phase := range plan.Phases {
		phases[i].Name, phases[i].Status = phase.Name, kudo.NeverRun
		for _, step := range phase.Steps {
			phases[i].Steps = append(phases[i].Steps, kudo.StepStatus{Name: step.Name, Status: kudo.NeverRun})
		}
	}
	return phases
}

// State returns the status of a plan, phase or step, with NeverRun for an empty one.
func State(status kudo.ExecutionStatus) kudo.ExecutionStatus {
	if status == "" {
		return kudo.NeverRun
	}
	return status
}

// ConditionText returns status, reason and message on one line, or absent if the condition does not exist.
func ConditionText(conditions []metav1.Condition, kind, absent string) string {
	condition := meta.FindStatusCondition(conditions, kind)
	if condition == nil {
		return absent
	}
	shown := string(condition.Status) + " (" + condition.Reason + ")"
	if condition.Message != "" {
		shown += ": " + text.JoinMessage(condition.Message)
	}
	return shown
}

// CanResume reports whether the last execution of an Instance has failed after tasks that another one may skip.
func CanResume(instance *kudo.Instance) bool {
	last := instance.Status.Execution
	if last == nil || last.OperatorVersion.Name != instance.Spec.OperatorVersion.Name {
		return false
	}
	ran := instance.Status.PlanStatus[last.Plan]
	return ran.Status == kudo.FatalError && resume.HasDigests(ran)
}
