package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// podTemplatePaths are the pod templates that may change on a live object, and restart pods by it (KEP-27). A Job's may not
// change.
var podTemplatePaths = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template"},
}

// RestartPods sets the one annotation of a pod template that changes between executions (KEP-27): to the execution's uid
// if pods must restart, or if the object does not exist yet (live is nil); otherwise to what the live object carries, so
// that the template stays as it is and nothing restarts. It returns a copy; objects without pods come back as they are.
func RestartPods(obj, live *unstructured.Unstructured, execution types.UID, restart bool) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	template := podTemplate(obj)
	if template == nil {
		return obj
	}
	value := string(execution)
	if live != nil && !restart {
		value, _, _ = unstructured.NestedString(podTemplate(live), "metadata", "annotations", kudo.AnnotationExecution)
	}
	if value == "" {
		unstructured.RemoveNestedField(template, "metadata", "annotations", kudo.AnnotationExecution)
		return obj
	}
	// A malformed metadata is left for the API server as well.
	_ = merge(template, "", "annotations", map[string]string{kudo.AnnotationExecution: value})
	return obj
}

// HasPods reports whether RestartPods restarts pods of the object.
func HasPods(obj *unstructured.Unstructured) bool { return podTemplate(obj) != nil }

// podTemplate is the object's; nil if it has none. The API server refuses a malformed one with a better message than could be given here.
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
