package render

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// podTemplatePaths are the paths of pod templates that are mutable on a live object, where a change restarts pods (KEP-27). A Job's is
// immutable.
var podTemplatePaths = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template"},
}

// RestartPods sets the only annotation of a pod template that changes between executions (KEP-27): to the uid of the execution that last
// required a restart of the object's pods; without one to the value on the live object, so that the template is unchanged and nothing
// restarts, and to the uid of the current execution if the object does not exist yet (live is nil). It returns a copy; objects without pods
// are returned unchanged.
func RestartPods(obj, live *unstructured.Unstructured, execution, required types.UID) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	template := podTemplate(obj)
	if template == nil {
		return obj
	}
	value := string(cmp.Or(required, execution))
	if live != nil && required == "" {
		value, _, _ = unstructured.NestedString(podTemplate(live), "metadata", "annotations", kudo.AnnotationExecution)
	}
	if value == "" {
		unstructured.RemoveNestedField(template, "metadata", "annotations", kudo.AnnotationExecution)
		return obj
	}
	// Malformed metadata is left to the API server as well.
	_ = merge(template, "", "annotations", map[string]string{kudo.AnnotationExecution: value})
	return obj
}

// NeedsRestart reports whether RestartPods restarts pods of a live object that has not been applied since that is required.
func NeedsRestart(live *unstructured.Unstructured, required types.UID) bool {
	template := podTemplate(live)
	if template == nil || required == "" {
		return false
	}
	value, _, _ := unstructured.NestedString(template, "metadata", "annotations", kudo.AnnotationExecution)
	return value != string(required)
}

// HasPods reports whether RestartPods restarts pods of the object.
func HasPods(obj *unstructured.Unstructured) bool { return podTemplate(obj) != nil }

// HasPodTemplate reports whether RestartPods restarts pods of objects of the kind.
func HasPodTemplate(kind schema.GroupKind) bool {
	_, found := podTemplatePaths[kind]
	return found
}

// podTemplate returns the object's pod template; nil if it has none. The API server rejects a malformed one with a better message.
func podTemplate(obj *unstructured.Unstructured) map[string]any {
	path, ok := podTemplatePaths[obj.GroupVersionKind().GroupKind()]
	if !ok {
		return nil
	}
	template, err := walk(obj.Object, path)
	if err != nil {
		return nil
	}
	return template
}
