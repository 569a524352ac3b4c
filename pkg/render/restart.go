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
	path, ok := podTemplatePaths[obj.GroupVersionKind().GroupKind()]
	if !ok {
		return obj
	}
	template, err := walk(obj.Object, path)
	if err != nil || template == nil {
		return obj // the API server refuses it with a better message
	}
	value := string(execution)
	if live != nil && !restart {
		value = carried(live, path)
	}
	if value == "" {
		unstructured.RemoveNestedField(template, "metadata", "annotations", kudo.AnnotationExecution)
		return obj
	}
	// A malformed metadata is left for the API server as well.
	_ = merge(template, "", "annotations", map[string]string{kudo.AnnotationExecution: value})
	return obj
}

// carried is the annotation's value on a live object; empty if it has none.
func carried(live *unstructured.Unstructured, path []string) string {
	template, err := walk(live.Object, path)
	if err != nil || template == nil {
		return ""
	}
	value, _, _ := unstructured.NestedString(template, "metadata", "annotations", kudo.AnnotationExecution)
	return value
}
