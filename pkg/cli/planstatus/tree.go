package planstatus

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// ConditionText returns status, reason and message on one line, or absent if the condition does not exist.
func ConditionText(conditions []metav1.Condition, kind, absent string) string {
	condition := meta.FindStatusCondition(conditions, kind)
	if condition == nil {
		return absent
	}
	text := string(condition.Status) + " (" + condition.Reason + ")"
	if condition.Message != "" {
		text += ": " + terminal.OneLine(condition.Message)
	}
	return text
}

// planTree returns the tree of plans in KUDO's format.
func planTree(view View, plans []string) terminal.Node {
	root := terminal.Node{Text: view.Instance.Name}
	var defined map[string]kudo.Plan
	if view.Version != nil {
		root.Text += fmt.Sprintf(" (operator %s, version %s)", view.Version.OperatorName(), view.Version.Spec.Version)
		defined = view.Version.Spec.Plans
	}
	for _, name := range plans {
		root.Children = append(root.Children, planNode(defined[name], view.planStatus(name)))
	}
	return root
}

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

// planStatus returns the status of a plan, which may be a plan of an earlier version; a plan that never ran has the phases and steps of the
// current one.
func (v View) planStatus(name string) kudo.PlanStatus {
	status := v.Instance.Status.PlanStatus[name]
	status.Name, status.Status = name, State(status.Status)
	if len(status.Phases) == 0 && v.Version != nil {
		status.Phases = neverRun(v.Version.Spec.Plans[name])
	}
	return status
}

func planNode(plan kudo.Plan, status kudo.PlanStatus) terminal.Node {
	n := terminal.Node{
		Text: fmt.Sprintf("Plan %s%s [%s]", status.Name, terminal.StrategyText(plan.Strategy), status.Status),
		Part: fmt.Sprintf("plan %q", status.Name), State: status.Status,
	}
	if at := status.LastUpdatedTimestamp; at != nil {
		n.Text += ", last updated " + at.UTC().Format(time.RFC3339)
	}
	for _, phase := range status.Phases {
		n.Children = append(n.Children, phaseNode(phase, plan))
	}
	return n.Explained(status.Message)
}

func phaseNode(status kudo.PhaseStatus, plan kudo.Plan) terminal.Node {
	strategy := ""
	if i := slices.IndexFunc(plan.Phases, func(p kudo.Phase) bool { return p.Name == status.Name }); i >= 0 {
		strategy = terminal.StrategyText(plan.Phases[i].Strategy)
	}
	n := terminal.Node{
		Text: fmt.Sprintf("Phase %s%s [%s]", status.Name, strategy, State(status.Status)),
		Part: fmt.Sprintf("phase %q", status.Name), State: State(status.Status),
	}
	for _, step := range status.Steps {
		n.Children = append(n.Children, stepNode(step))
	}
	return n.Explained(status.Message)
}

// stepNode returns the node of a step. Tasks are shown only if they have a message.
func stepNode(status kudo.StepStatus) terminal.Node {
	n := terminal.Node{
		Text: fmt.Sprintf("Step %s [%s]", status.Name, State(status.Status)),
		Part: fmt.Sprintf("step %q", status.Name), State: State(status.Status),
	}
	if status.Status.Running() || status.Status == kudo.FatalError {
		for _, task := range status.Tasks {
			n.Children = append(n.Children, terminal.Node{
				Text: fmt.Sprintf("Task %s [%s]", task.Name, State(task.Status)),
				Part: fmt.Sprintf("task %q", task.Name), State: State(task.Status),
			}.Explained(task.Message))
		}
	}
	return n.Explained(status.Message)
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
