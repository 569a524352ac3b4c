package plan

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tandem-addons/tandem/pkg/health"
)

// makers are the kinds that make pods by a selector.
var makers = []schema.GroupKind{
	{Group: "apps", Kind: "Deployment"},
	{Group: "apps", Kind: "StatefulSet"},
	{Group: "apps", Kind: "DaemonSet"},
	{Group: "apps", Kind: "ReplicaSet"},
	{Group: "batch", Kind: "Job"},
}

// AwaitedPods is what is waited for, as ApplyOutcome names it, where that makes pods, and the selector of these.
func AwaitedPods(objects []Object) (workload *unstructured.Unstructured, pods labels.Selector) {
	awaited := slices.IndexFunc(objects, func(o Object) bool {
		return o.Live == nil || health.Of(o.Live).Status != health.Healthy && !waitsForConsumer(o.Live)
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
		return nil, nil // the API server takes no such selector
	}
	if pods, _ = metav1.LabelSelectorAsSelector(selector); pods == nil {
		return nil, nil
	}
	return live, pods
}

// Holdup says what is the matter with the first of pods that is not as it should be: one that has failed, or else by name. It is
// empty if nothing is.
func Holdup(pods []unstructured.Unstructured) string {
	var faults []health.Result
	for i := range pods {
		if result := health.Of(&pods[i]); result.Status != health.Healthy && pods[i].GetDeletionTimestamp() == nil {
			faults = append(faults, result)
		}
	}
	if len(faults) == 0 {
		return ""
	}
	return slices.MinFunc(faults, func(a, b health.Result) int {
		return cmp.Or(cmp.Compare(severity(a), severity(b)), cmp.Compare(a.Message, b.Message))
	}).Message
}

func severity(r health.Result) int {
	if r.Status == health.Failed {
		return 0
	}
	return 1
}
