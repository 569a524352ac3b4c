package planstatus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// GatherChildren adds the descendants of an Instance to its view.
func GatherChildren(ctx context.Context, c client.Reader, root *View) error {
	var found kudo.InstanceList
	if err := c.List(ctx, &found, client.InNamespace(root.Instance.Namespace)); err != nil {
		return fmt.Errorf("listing Instances of cluster %q: %w", root.Instance.Namespace, err)
	}
	owned := map[types.UID][]*kudo.Instance{}
	for i := range found.Items {
		if owner := metav1.GetControllerOf(&found.Items[i]); owner != nil {
			owned[owner.UID] = append(owned[owner.UID], &found.Items[i])
		}
	}
	attachChildren(ctx, c, root, owned)
	return nil
}

// attachChildren moves children from owned into the view. It removes them from owned, so that it terminates whatever the owner references
// are.
func attachChildren(ctx context.Context, c client.Reader, view *View, owned map[types.UID][]*kudo.Instance) {
	view.withChildren = true
	children := owned[view.Instance.UID]
	delete(owned, view.Instance.UID)
	slices.SortFunc(children, func(a, b *kudo.Instance) int { // in the order in which plans created them
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for _, instance := range children {
		child := Gather(ctx, c, instance)
		attachChildren(ctx, c, &child, owned)
		view.children = append(view.children, child)
	}
}

// Tree returns the tree of plans. If children are shown, it includes the existing and the switched-off children.
func Tree(view View, plans []string) terminal.Node {
	root := planTree(view, plans)
	if !view.withChildren {
		return root
	}
	for _, child := range view.children {
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
func childNode(view View) terminal.Node {
	n := Tree(view, slices.DeleteFunc(PlanNames(view), func(name string) bool {
		return State(view.Instance.Status.PlanStatus[name].Status) == kudo.NeverRun
	}))
	n.Text = "Instance " + n.Text
	for i := range n.Children {
		if plan := &n.Children[i]; plan.State != "" {
			plan.Part = fmt.Sprintf("Instance %s: %s", view.Instance.Name, plan.Part)
		}
	}
	for _, kind := range instanceConditions {
		condition := meta.FindStatusCondition(view.Instance.Status.Conditions, kind)
		switch {
		case condition == nil:
			n.Text += fmt.Sprintf(", %s unknown", kind)
			return n
		case kind == kudo.ConditionReady || condition.Status != metav1.ConditionTrue:
			n.Text += fmt.Sprintf(", %s %s (%s)", kind, condition.Status, condition.Reason)
			return n.Explained(condition.Message)
		}
	}
	return n
}
