package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// statusText is what `plan status` prints of an Instance: what it is, how it is, and the tree of its plans.
func statusText(view statusView) string {
	var b strings.Builder
	instance := view.instance
	writeField(&b, "Instance", fmt.Sprintf("%s (cluster %s)", instance.Name, instance.Namespace))
	writeField(&b, "OperatorVersion", instance.Spec.OperatorVersion.Name)
	if execution := instance.Status.Execution; execution != nil {
		writeField(&b, "Last plan", lastPlan(instance))
	}
	if text := lastChange(view); text != "" {
		writeField(&b, "Last change", text)
	}
	for _, kind := range instanceConditions {
		writeField(&b, kind, conditionText(instance.Status.Conditions, kind, "Unknown: not reported yet"))
	}
	if view.unreadable != nil {
		fmt.Fprintf(&b, "\nOf the plans only what the agent has reported is shown: reading OperatorVersion %q: %v\n",
			instance.Spec.OperatorVersion.Name, view.unreadable)
	}
	b.WriteString("\n")
	writeTree(&b, instanceTree(view, planNames(view)))
	return b.String()
}

// addOnText is what `plan status` prints of an add-on without an Instance: what its installation waits for.
func addOnText(addOn *addon.ManagedClusterAddOn) string {
	var b strings.Builder
	state := "no Instance yet"
	if !addOn.DeletionTimestamp.IsZero() {
		state = "being removed"
	}
	writeField(&b, "Add-on", fmt.Sprintf("%s (cluster %s), %s", addOn.Name, addOn.Namespace, state))
	for _, condition := range []struct{ kind, absent string }{
		{addon.ConditionAvailable, "Unknown: not reported yet"},
		{addon.ConditionDegraded, "not set: nothing that the add-on depends on is known to be missing"},
		{addon.ConditionResolved, "not set: either the hub has not looked at the add-on yet, or it does not run by plans, which takes " +
			"a ClusterManagementAddOn of its name with an OperatorVersion among the supported configs"},
	} {
		writeField(&b, condition.kind, conditionText(addOn.Status.Conditions, condition.kind, condition.absent))
	}
	return b.String()
}

func writeField(b *strings.Builder, name, value string) { fmt.Fprintf(b, "%-18s%s\n", name+":", value) }

// lastPlan names the plan that was last started, and what it was started with where that is not what is wanted now.
func lastPlan(instance *kudo.Instance) string {
	execution := instance.Status.Execution
	text := execution.Plan
	if started := execution.OperatorVersion.Name; started != "" && started != instance.Spec.OperatorVersion.Name {
		text += " of " + started
	}
	return text
}

// conditionText is status, reason and message on one line, or the text for a condition that is not there.
func conditionText(conditions []metav1.Condition, kind, absent string) string {
	condition := meta.FindStatusCondition(conditions, kind)
	if condition == nil {
		return absent
	}
	text := string(condition.Status) + " (" + condition.Reason + ")"
	if condition.Message != "" {
		text += ": " + oneLine(condition.Message)
	}
	return text
}

// planTree is KUDO's tree of plans.
func planTree(view statusView, plans []string) node {
	root := node{text: view.instance.Name}
	var defined map[string]kudo.Plan
	if view.version != nil {
		root.text += fmt.Sprintf(" (operator %s, version %s)", view.version.Spec.Operator.Name, view.version.Spec.Version)
		defined = view.version.Spec.Plans
	}
	for _, name := range plans {
		root.children = append(root.children, planNode(defined[name], view.planStatus(name)))
	}
	return root
}

// planNames are the plans that there are, and those that have run, sorted.
func planNames(view statusView) []string {
	names := map[string]bool{}
	if view.version != nil {
		for name := range view.version.Spec.Plans {
			names[name] = true
		}
	}
	for name := range view.instance.Status.PlanStatus {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// planStatus is what became of a plan, which may be one of an earlier version; what never ran has the shape of the current one.
func (v statusView) planStatus(name string) kudo.PlanStatus {
	status := v.instance.Status.PlanStatus[name]
	status.Name, status.Status = name, state(status.Status)
	if len(status.Phases) == 0 && v.version != nil {
		status.Phases = neverRun(v.version.Spec.Plans[name])
	}
	return status
}

func planNode(plan kudo.Plan, status kudo.PlanStatus) node {
	n := node{
		text: fmt.Sprintf("Plan %s%s [%s]", status.Name, strategyText(plan.Strategy), status.Status),
		part: fmt.Sprintf("plan %q", status.Name), state: status.Status,
	}
	if at := status.LastUpdatedTimestamp; at != nil {
		n.text += ", last updated " + at.UTC().Format(time.RFC3339)
	}
	for _, phase := range status.Phases {
		n.children = append(n.children, phaseNode(phase, plan))
	}
	return n.explained(status.Message)
}

func phaseNode(status kudo.PhaseStatus, plan kudo.Plan) node {
	strategy := ""
	if i := slices.IndexFunc(plan.Phases, func(p kudo.Phase) bool { return p.Name == status.Name }); i >= 0 {
		strategy = strategyText(plan.Phases[i].Strategy)
	}
	n := node{
		text: fmt.Sprintf("Phase %s%s [%s]", status.Name, strategy, state(status.Status)),
		part: fmt.Sprintf("phase %q", status.Name), state: state(status.Status),
	}
	for _, step := range status.Steps {
		n.children = append(n.children, stepNode(step))
	}
	return n.explained(status.Message)
}

// stepNode shows tasks only while they have something to say.
func stepNode(status kudo.StepStatus) node {
	n := node{
		text: fmt.Sprintf("Step %s [%s]", status.Name, state(status.Status)),
		part: fmt.Sprintf("step %q", status.Name), state: state(status.Status),
	}
	if status.Status.Running() || status.Status == kudo.FatalError {
		for _, task := range status.Tasks {
			n.children = append(n.children, node{
				text: fmt.Sprintf("Task %s [%s]", task.Name, state(task.Status)),
				part: fmt.Sprintf("task %q", task.Name), state: state(task.Status),
			}.explained(task.Message))
		}
	}
	return n.explained(status.Message)
}

// neverRun is the shape of a plan without any progress.
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

func strategyText(strategy kudo.Ordering) string {
	if strategy == "" {
		strategy = kudo.Serial
	}
	return fmt.Sprintf(" (%s strategy)", strategy)
}

func state(status kudo.ExecutionStatus) kudo.ExecutionStatus {
	if status == "" {
		return kudo.NeverRun
	}
	return status
}

// oneLine keeps a message in its place in the tree. Lines that are no sentences are told apart by semicolons.
func oneLine(message string) string {
	return strings.NewReplacer(".\n", ". ", "\n", "; ").Replace(strings.TrimSpace(message))
}
