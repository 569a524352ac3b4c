package resume

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// Digest identifies what a task does with the objects that it has rendered, whatever execution has rendered them. Objects may hold sensitive values: with
// the key of the cluster, they cannot be guessed from the digest. It is empty if an object cannot be encoded.
func Digest(key sensitive.Key, action string, objects ...*unstructured.Unstructured) string {
	parts := []string{action}
	for _, object := range objects {
		content := *object
		if _, marked := object.GetAnnotations()[kudo.AnnotationExecution]; marked {
			content = *object.DeepCopy()
			unstructured.RemoveNestedField(content.Object, "metadata", "annotations", kudo.AnnotationExecution)
		}
		encoded, err := json.Marshal(content.Object)
		if err != nil {
			return ""
		}
		parts = append(parts, string(encoded))
	}
	return key.Sum(parts...)
}

// IsVolatile reports whether a template of a task draws random values, or reads the clock.
func IsVolatile(version *kudo.OperatorVersionSpec, task kudo.Task) bool {
	templates := append(slices.Clone(task.Spec.Resources), task.Spec.Pod, task.Spec.ValuesFile)
	return slices.ContainsFunc(templates, func(name string) bool { return template.IsVolatile(version.Templates[name]) })
}
