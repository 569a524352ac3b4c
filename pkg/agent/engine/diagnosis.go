package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/health"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// slow is how long a step may run before it is diagnosed, and the interval of further diagnoses: pods are not watched.
const slow = 10 * time.Second

// explain adds to the message of a slow step why the pods that it waits for are blocked: an image that cannot be pulled, a volume that is
// not provisioned. The workload's own status does not include this.
func (e *engine) explain(ctx context.Context, x *execution, placed plan.Placed, objects []plan.Object, outcome plan.Outcome) plan.Outcome {
	workload, selector := plan.AwaitedPods(objects)
	if outcome.Status != kudo.InProgress || workload == nil || x.age(placed, e.clock()) < slow {
		return outcome
	}
	pods := &unstructured.UnstructuredList{}
	pods.SetAPIVersion("v1")
	pods.SetKind("PodList")
	err := e.live.List(ctx, pods, client.InNamespace(workload.GetNamespace()), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return outcome // keep the outcome without the diagnosis
	}
	if pod, why := plan.FirstUnhealthyPod(pods.Items); pod != nil {
		outcome.Message += ": " + why + e.unbound(ctx, pod)
	}
	return outcome
}

// unbound returns the name of the first unbound volume claim of a pod; empty if there is none.
func (e *engine) unbound(ctx context.Context, pod *unstructured.Unstructured) string {
	for _, name := range plan.ClaimsOf(pod) {
		claim := &unstructured.Unstructured{}
		claim.SetAPIVersion("v1")
		claim.SetKind("PersistentVolumeClaim")
		if e.live.Get(ctx, client.ObjectKey{Namespace: pod.GetNamespace(), Name: name}, claim) != nil {
			continue
		}
		if result := health.Of(claim); result.Status != health.Healthy {
			return ": " + result.Message
		}
	}
	return ""
}
