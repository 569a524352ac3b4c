package render

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AutoscalerKind is the kind of the objects that scale workloads.
var AutoscalerKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}

// Rescales reports whether applying an object changes the number of replicas of the live one; live is nil if there is none.
func Rescales(obj, live *unstructured.Unstructured) bool {
	if live == nil {
		return false
	}
	have, scalable, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	want, _, err := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	return scalable && err == nil && have != want
}

// KeepReplicas returns the object with the number of replicas of the live one if one of the HorizontalPodAutoscalers scales it. Without the
// field, the API server would set it to one.
func KeepReplicas(obj, live *unstructured.Unstructured, autoscalers []unstructured.Unstructured) *unstructured.Unstructured {
	isScaled := slices.ContainsFunc(autoscalers, func(a unstructured.Unstructured) bool { return Scales(&a, live) })
	if !isScaled {
		return obj
	}
	obj = obj.DeepCopy()
	replicas, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	_ = unstructured.SetNestedField(obj.Object, replicas, "spec", "replicas") // a malformed spec is left to the API server
	return obj
}

// Scales reports whether a HorizontalPodAutoscaler scales an object of its namespace, in whatever version.
func Scales(autoscaler, obj *unstructured.Unstructured) bool {
	target, _, _ := unstructured.NestedStringMap(autoscaler.Object, "spec", "scaleTargetRef")
	version, err := schema.ParseGroupVersion(target["apiVersion"])
	kind := obj.GroupVersionKind()
	return err == nil && autoscaler.GetNamespace() == obj.GetNamespace() && autoscaler.GetDeletionTimestamp() == nil &&
		version.Group == kind.Group && target["kind"] == kind.Kind && target["name"] == obj.GetName()
}
