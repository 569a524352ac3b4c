package cli

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// lastChange says what holds up the last change of the Instance where none of its conditions does; empty if nothing does.
func lastChange(view statusView) string {
	instance := view.instance
	if unseen(instance) {
		return unseenText(instance.Namespace)
	}
	last := instance.Status.Execution
	if view.version == nil || last == nil || !instance.Status.PlanStatus[last.Plan].Status.Running() {
		return ""
	}
	choice, err := plan.Choose(plan.Wish{ // as if what runs had ended
		Generation: instance.Generation, Parameters: instance.Spec.Parameters, Request: instance.Spec.PlanExecution,
		Version:   &view.version.Spec,
		Reference: corev1.ObjectReference{Namespace: view.version.Namespace, Name: view.version.Name, UID: view.version.UID},
		Last:      last, LastStatus: kudo.Complete,
	})
	if err != nil || choice.Start == nil || choice.Start.Plan == last.Plan {
		return ""
	}
	return fmt.Sprintf("plan %q waits for the end of plan %q", choice.Start.Plan, last.Plan)
}

// unseen says whether the agent has yet to see the last change of an Instance that waits for nothing else.
func unseen(instance *kudo.Instance) bool {
	return meta.IsStatusConditionTrue(instance.Status.Conditions, kudo.ConditionResolved) &&
		instance.Status.ObservedGeneration < instance.Generation
}

func unseenText(cluster string) string {
	return fmt.Sprintf("not seen by the agent yet; if that takes longer than a few seconds, see whether addon-agent runs on cluster %s", cluster)
}
