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

// slow is how long a step may run before it is asked why, and how long until it is asked again: pods are not watched.
const slow = 10 * time.Second

// explain adds to what a slow step waits for what holds up the pods of that: an image that cannot be pulled, a volume that nobody
// provisions. The workload's own status does not say.
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
		return outcome // what is waited for is said all the same
	}
	if pod, why := plan.FirstUnhealthyPod(pods.Items); pod != nil {
		outcome.Message += ": " + why + e.unbound(ctx, pod)
	}
	return outcome
}

// unbound names the first volume claim of a pod that is not bound; empty if there is none.
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
