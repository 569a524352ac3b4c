package cli

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
)

// gatherChildren completes what is shown about an Instance by its children, and theirs.
func gatherChildren(ctx context.Context, c client.Reader, root *statusView) error {
	var found kudo.InstanceList
	if err := c.List(ctx, &found, client.InNamespace(root.instance.Namespace)); err != nil {
		return fmt.Errorf("listing Instances of cluster %q: %w", root.instance.Namespace, err)
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

// attachChildren takes those that it attaches out of owned: it ends whatever owner references say.
func attachChildren(ctx context.Context, c client.Reader, view *statusView, owned map[types.UID][]*kudo.Instance) {
	view.withChildren = true
	children := owned[view.instance.UID]
	delete(owned, view.instance.UID)
	slices.SortFunc(children, func(a, b *kudo.Instance) int { // as plans have made them
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for _, instance := range children {
		child := gatherStatus(ctx, c, instance)
		attachChildren(ctx, c, &child, owned)
		view.children = append(view.children, child)
	}
}

// instanceTree is the tree of plans, and where they are shown that of the children: of those that are there, and those that are
// switched off.
func instanceTree(view statusView, plans []string) node {
	root := planTree(view, plans)
	if !view.withChildren {
		return root
	}
	for _, child := range view.children {
		root.children = append(root.children, childNode(child))
	}
	for _, child := range view.instance.Status.Children {
		if child.State == kudo.ChildRemoved {
			root.children = append(root.children, node{
				text: fmt.Sprintf("Instance %s: switched off (task %s)", child.Instance, child.Task),
			})
		}
	}
	return root
}

// childNode is the tree of a child, which begins with what keeps it from being Ready. Plans that never ran are left out: a tree has many.
func childNode(view statusView) node {
	n := instanceTree(view, slices.DeleteFunc(planNames(view), func(name string) bool {
		return state(view.instance.Status.PlanStatus[name].Status) == kudo.NeverRun
	}))
	n.text = "Instance " + n.text
	for i := range n.children {
		if plan := &n.children[i]; plan.state != "" {
			plan.part = fmt.Sprintf("Instance %s: %s", view.instance.Name, plan.part)
		}
	}
	for _, kind := range instanceConditions {
		condition := meta.FindStatusCondition(view.instance.Status.Conditions, kind)
		switch {
		case condition == nil:
			n.text += fmt.Sprintf(", %s unknown", kind)
			return n
		case kind == kudo.ConditionReady || condition.Status != metav1.ConditionTrue:
			n.text += fmt.Sprintf(", %s %s (%s)", kind, condition.Status, condition.Reason)
			return n.explained(condition.Message)
		}
	}
	return n
}
