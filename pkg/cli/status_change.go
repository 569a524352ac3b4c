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
	if last == nil || !instance.Status.PlanStatus[last.Plan].Status.Running() {
		return ""
	}
	due := view.due()
	if due == "" || due == last.Plan {
		return ""
	}
	return fmt.Sprintf("plan %q waits for the end of plan %q", due, last.Plan)
}

// due is the plan that the Instance asks for once what runs has ended; empty if there is none, or nobody can say.
func (v statusView) due() string {
	if v.version == nil {
		return ""
	}
	return plan.Due(plan.Wish{
		Generation: v.instance.Generation, Parameters: v.instance.Spec.Parameters, Request: v.instance.Spec.PlanExecution,
		Version:   &v.version.Spec,
		Reference: corev1.ObjectReference{Namespace: v.version.Namespace, Name: v.version.Name, UID: v.version.UID},
		Last:      v.instance.Status.Execution, LastStatus: kudo.Complete,
	})
}

// unseen says whether the agent has yet to see the last change of an Instance that waits for nothing else. A removal that has begun it
// has seen, and tells by condition Ready: the generation that it tells of is that of the spec.
func unseen(instance *kudo.Instance) bool {
	if !instance.DeletionTimestamp.IsZero() && meta.IsStatusConditionFalse(instance.Status.Conditions, kudo.ConditionReady) {
		return false
	}
	return meta.IsStatusConditionTrue(instance.Status.Conditions, kudo.ConditionResolved) &&
		instance.Status.ObservedGeneration < instance.Generation
}

func unseenText(cluster string) string {
	return fmt.Sprintf("not seen by the agent yet; if that takes longer than a few seconds, see whether addon-agent runs on cluster %s", cluster)
}
