package planstatus

import (
	"fmt"
	"slices"
	"time"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/resume"
	"github.com/tandem-addons/tandem/pkg/text"
)

// planTree returns the tree of plans in KUDO's format.
func planTree(view progress.View, plans []string) terminal.Node {
	root := terminal.Node{Text: view.Instance.Name}
	var defined map[string]kudo.Plan
	if view.Version != nil {
		root.Text += fmt.Sprintf(" (operator %s, version %s)", view.Version.OperatorName(), view.Version.Spec.Version)
		defined = view.Version.Spec.Plans
	}
	for _, name := range plans {
		node := planNode(view, defined[name], view.Plan(name))
		if retry := plan.FindRetry(view.Instance.Status, name); retry != nil {
			node.Text += ", next retry at " + retry.RetryTime.UTC().Format(time.RFC3339)
		}
		root.Children = append(root.Children, node)
	}
	return root
}

func planNode(view progress.View, plan kudo.Plan, status kudo.PlanStatus) terminal.Node {
	hooks := view.Hooks(status)
	n := terminal.Node{
		Text: fmt.Sprintf("Plan %s%s [%s]", status.Name, terminal.StrategyText(plan.Strategy), status.Status),
		Part: fmt.Sprintf("plan %q", status.Name), State: status.Status,
	}
	if at := status.LastUpdatedTimestamp; at != nil {
		n.Text += ", last updated " + at.UTC().Format(time.RFC3339)
	}
	for _, phase := range status.Phases {
		n.Children = append(n.Children, phaseNode(phase, plan, hooks))
	}
	return n.WithMessage(status.Message)
}

func phaseNode(status kudo.PhaseStatus, plan kudo.Plan, hooks map[string][]progress.Hook) terminal.Node {
	strategy := ""
	if i := slices.IndexFunc(plan.Phases, func(p kudo.Phase) bool { return p.Name == status.Name }); i >= 0 {
		strategy = terminal.StrategyText(plan.Phases[i].Strategy)
	}
	n := terminal.Node{
		Text: fmt.Sprintf("Phase %s%s [%s]", status.Name, strategy, progress.State(status.Status)),
		Part: fmt.Sprintf("phase %q", status.Name), State: progress.State(status.Status),
	}
	for _, step := range status.Steps {
		n.Children = append(n.Children, stepNode(step, hooks))
	}
	return n.WithMessage(status.Message)
}

// stepNode returns the node of a step. Tasks and their hooks are shown while the step runs, and if it has failed.
func stepNode(status kudo.StepStatus, hooks map[string][]progress.Hook) terminal.Node {
	n := terminal.Node{
		Text: fmt.Sprintf("Step %s [%s]", status.Name, progress.State(status.Status)),
		Part: fmt.Sprintf("step %q", status.Name), State: progress.State(status.Status),
	}
	switch {
	case resume.IsSkipped(status):
		n.Text += ", skipped"
	case status.RerunReason != "":
		n.Text += ", runs again: " + text.OneLine(status.RerunReason)
	}
	if status.Status.IsRunning() || status.Status == kudo.FatalError {
		for _, task := range status.Tasks {
			n.Children = append(n.Children, terminal.Node{
				Text: fmt.Sprintf("Task %s [%s]", task.Name, progress.State(task.Status)),
				Part: fmt.Sprintf("task %q", task.Name), State: progress.State(task.Status), Children: hookNodes(hooks[task.Name]),
			}.WithMessage(task.Message))
		}
	}
	return n.WithMessage(status.Message)
}

func hookNodes(hooks []progress.Hook) []terminal.Node {
	var nodes []terminal.Node
	for _, hook := range hooks {
		nodes = append(nodes, terminal.Node{
			Text: fmt.Sprintf("Hook %s: %s [%s]", hook.Event, hook.Object, hook.Status),
			Part: fmt.Sprintf("hook %s: %s", hook.Event, hook.Object), State: hook.Status,
		}.WithMessage(hook.Message))
	}
	return nodes
}
