package planstatus

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/text"
)

// PlaceOf returns the name of a cluster's object as progress shows it.
func PlaceOf(object client.Object) string {
	return fmt.Sprintf("%s on %s", text.Word(object.GetName()), text.Word(object.GetNamespace()))
}

// InstanceProgress returns the progress of an Instance: the tree of the last plan, including children, and what its last change waits for.
func InstanceProgress(view progress.View) []terminal.Node {
	instance := view.Instance
	place := PlaceOf(instance)
	var trees []terminal.Node
	if instance.Status.Execution != nil {
		plan := LastPlanTree(view)
		plan.Text, plan.Part = place+": "+plan.Text, place+": "+plan.Part
		trees = append(trees, plan)
	}
	if text := progress.HoldUp(view); text != "" {
		trees = append(trees, terminal.Node{Text: place + ": " + text, Part: place, Message: text})
	}
	return trees
}

// LastPlanTree returns the tree of the last started plan, including the Instance's children.
func LastPlanTree(view progress.View) terminal.Node {
	tree := Tree(view, []string{view.Instance.Status.Execution.Plan})
	plan := tree.Children[0]
	plan.Children = append(plan.Children, tree.Children[1:]...)
	return plan
}

// AddOnProgress returns the progress of an add-on without an Instance.
func AddOnProgress(addOn *addonv1alpha1.ManagedClusterAddOn) terminal.Node {
	place, text := PlaceOf(addOn), "addon-manager has not processed the add-on yet"
	if condition := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved); condition != nil {
		text = progress.ConditionText(addOn.Status.Conditions, addonv1alpha1.ConditionResolved, "")
	}
	return terminal.Node{Text: place + ": " + text, Part: place, Message: text}
}
