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
// not provisioned. The workload's own status does not include this. A claim whose StorageClass does not exist is an error.
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
	pod, why := plan.FirstUnhealthyPod(pods.Items)
	if pod == nil {
		return outcome
	}
	outcome.Message += ": " + why
	if claim := plan.FirstUnboundClaim(e.claimsOf(ctx, pod)); claim.Status != health.Healthy {
		outcome.Message += ": " + claim.Message
		if claim.Blocked {
			outcome.Status = kudo.Error
		}
	}
	return outcome
}

// claimsOf returns the volume claims of a pod that can be read.
func (e *engine) claimsOf(ctx context.Context, pod *unstructured.Unstructured) []plan.Object {
	var claims []plan.Object
	for _, name := range plan.ClaimsOf(pod) {
		claim := &unstructured.Unstructured{}
		claim.SetAPIVersion("v1")
		claim.SetKind("PersistentVolumeClaim")
		if e.live.Get(ctx, client.ObjectKey{Namespace: pod.GetNamespace(), Name: name}, claim) == nil {
			claims = append(claims, plan.Object{Want: claim, Live: claim})
		}
	}
	if classed, err := e.objects.withClasses(ctx, claims); err == nil {
		return classed
	}
	return claims
}
