package plan

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tandem-addons/tandem/pkg/health"
)

// makers are the kinds that create pods by a selector.
var makers = []schema.GroupKind{
	{Group: "apps", Kind: "Deployment"},
	{Group: "apps", Kind: "StatefulSet"},
	{Group: "apps", Kind: "DaemonSet"},
	{Group: "apps", Kind: "ReplicaSet"},
	{Group: "batch", Kind: "Job"},
}

// AwaitedPods returns the object that ApplyOutcome waits for, if it creates pods, and the selector of these pods.
func AwaitedPods(objects []Object) (workload *unstructured.Unstructured, pods labels.Selector) {
	awaited := slices.IndexFunc(objects, func(o Object) bool {
		return o.Live == nil || o.health().Status != health.Healthy
	})
	if awaited < 0 || objects[awaited].Live == nil {
		return nil, nil
	}
	live := objects[awaited].Live
	written, selects, _ := unstructured.NestedMap(live.Object, "spec", "selector")
	if !selects || !slices.Contains(makers, live.GroupVersionKind().GroupKind()) {
		return nil, nil
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(written, selector); err != nil {
		return nil, nil // the API server rejects such a selector
	}
	if pods, _ = metav1.LabelSelectorAsSelector(selector); pods == nil {
		return nil, nil
	}
	return live, pods
}

// FirstUnhealthyPod returns the first unhealthy pod, failed ones before others and then by name, and a description of its problem; nil if
// all are healthy.
func FirstUnhealthyPod(pods []unstructured.Unstructured) (pod *unstructured.Unstructured, message string) {
	pods = slices.SortedFunc(slices.Values(pods), func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, status := range []health.Status{health.Failed, health.Progressing, health.Unknown} {
		for i := range pods {
			result := health.Of(&pods[i])
			if result.Status == status && pods[i].GetDeletionTimestamp() == nil {
				return &pods[i], result.Message
			}
		}
	}
	return nil, ""
}

// ClaimsOf returns the names of the volume claims that a pod uses.
func ClaimsOf(pod *unstructured.Unstructured) []string {
	volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	var names []string
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		if name, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// FirstUnboundClaim returns the health of the first volume claim that is not bound, blocked ones before others; Healthy if all are bound.
func FirstUnboundClaim(claims []Object) health.Result {
	unbound := health.Result{Status: health.Healthy}
	for _, claim := range claims {
		if result := claim.health(); result.Blocked {
			return result
		}
		if result := health.Of(claim.Live); unbound.Status == health.Healthy {
			unbound = result
		}
	}
	return unbound
}
