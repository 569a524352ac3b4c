package planstatus

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
)

// Tree returns the tree of plans. If children are shown, it includes the existing and the switched-off children.
func Tree(view progress.View, plans []string) terminal.Node {
	root := planTree(view, plans)
	if !view.WithChildren {
		return root
	}
	for _, child := range view.Children {
		root.Children = append(root.Children, childNode(child))
	}
	for _, child := range view.Instance.Status.Children {
		if child.State == kudo.ChildRemoved {
			root.Children = append(root.Children, terminal.Node{
				Text: fmt.Sprintf("Instance %s: disabled (task %s)", child.Instance, child.Task),
			})
		}
	}
	return root
}

// childNode returns the tree of a child, starting with the reason why it is not Ready. Plans that never ran are omitted.
func childNode(view progress.View) terminal.Node {
	n := Tree(view, slices.DeleteFunc(progress.PlanNames(view), func(name string) bool {
		return progress.State(view.Instance.Status.PlanStatus[name].Status) == kudo.NeverRun
	}))
	n.Text = "Instance " + n.Text
	for i := range n.Children {
		if plan := &n.Children[i]; plan.State != "" {
			plan.Part = fmt.Sprintf("Instance %s: %s", view.Instance.Name, plan.Part)
		}
	}
	for _, kind := range progress.InstanceConditions {
		condition := meta.FindStatusCondition(view.Instance.Status.Conditions, kind)
		switch {
		case condition == nil:
			n.Text += fmt.Sprintf(", %s unknown", kind)
			return n
		case kind == kudo.ConditionReady || condition.Status != metav1.ConditionTrue:
			n.Text += fmt.Sprintf(", %s %s (%s)", kind, condition.Status, condition.Reason)
			return n.WithMessage(condition.Message)
		}
	}
	return n
}
