package cli

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// placeOf names an object of a cluster as progress does.
func placeOf(object client.Object) string {
	return fmt.Sprintf("%s on %s", word(object.GetName()), word(object.GetNamespace()))
}

// goingOn is how the plans of an Instance go on: the tree of the last one with the children below, and what its last change waits for.
func goingOn(view statusView) []node {
	instance := view.instance
	place := placeOf(instance)
	var trees []node
	if instance.Status.Execution != nil {
		plan := planGoingOn(view)
		plan.text, plan.part = place+": "+plan.text, place+": "+plan.part
		trees = append(trees, plan)
	}
	if text := holdUp(view); text != "" {
		trees = append(trees, node{text: place + ": " + text, part: place, message: text})
	}
	return trees
}

// planGoingOn is the tree of the plan that was started last, with the children of its Instance below.
func planGoingOn(view statusView) node {
	tree := instanceTree(view, []string{view.instance.Status.Execution.Plan})
	plan := tree.children[0]
	plan.children = append(plan.children, tree.children[1:]...)
	return plan
}

// holdUp says what holds up the last change of an Instance; empty if nothing does.
func holdUp(view statusView) string {
	resolved := meta.FindStatusCondition(view.instance.Status.Conditions, kudo.ConditionResolved)
	switch {
	case !view.instance.DeletionTimestamp.IsZero():
		return "being removed"
	case resolved == nil || resolved.ObservedGeneration < view.instance.Generation:
		return "addon-manager has not judged the last change yet"
	case resolved.Status != metav1.ConditionTrue:
		return conditionText(view.instance.Status.Conditions, kudo.ConditionResolved, "")
	case view.instance.Status.Execution == nil && !unseen(view.instance):
		return "no plan has started yet"
	default:
		return lastChange(view)
	}
}

// addOnProgress is how an add-on without an Instance goes on.
func addOnProgress(addOn *addon.ManagedClusterAddOn) node {
	place, text := placeOf(addOn), "addon-manager has not looked at the add-on yet"
	if condition := meta.FindStatusCondition(addOn.Status.Conditions, addon.ConditionResolved); condition != nil {
		text = conditionText(addOn.Status.Conditions, addon.ConditionResolved, "")
	}
	return node{text: place + ": " + text, part: place, message: text}
}
