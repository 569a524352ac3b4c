package render

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Omission is a field of a template that is not applied, because the API server sets it, or no longer has it.
type Omission struct {
	// Object is the object's kind and name, Field the path of the field in it.
	Object, Field string
	// Reason states why, as a clause.
	Reason string
}

func (o Omission) String() string { return fmt.Sprintf("%s: %s", o.Object, o.Field) }

// maxOmissions limits the omissions of one rendering: it may have thousands of objects.
const maxOmissions = 1000

// setByServer are the fields of all objects that the API server or a controller sets. Applied, resourceVersion and uid are conditions, which the
// object in a cluster does not meet, and most of the others cannot be changed.
var setByServer = []string{
	"metadata.creationTimestamp", "metadata.deletionGracePeriodSeconds", "metadata.deletionTimestamp", "metadata.generation",
	"metadata.managedFields", "metadata.resourceVersion", "metadata.selfLink", "metadata.uid", "status",
}

// omit removes the fields from an object that are not applied.
func (r *renderer) omit(obj *unstructured.Unstructured) {
	for _, field := range setByServer {
		r.omitField(obj, field, "the API server sets it")
	}
	aggregated, _ := obj.Object["aggregationRule"].(map[string]any)
	if obj.GroupVersionKind().GroupKind() == (schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}) && aggregated != nil {
		r.omitField(obj, "rules", "a controller sets it, from aggregationRule")
	}
}

// omitField removes a field, and records that unless it holds nothing.
func (r *renderer) omitField(obj *unstructured.Unstructured, field, reason string) {
	parent, last := obj.Object, field
	if before, name, below := strings.Cut(field, "."); below {
		parent, last = obj.Object[before].(map[string]any), name // metadata, which is valid
	}
	value, exists := parent[last]
	delete(parent, last)
	if exists && !isBlank(value) {
		r.noteOmission(obj, field, reason)
	}
}

func (r *renderer) noteOmission(obj *unstructured.Unstructured, field, reason string) {
	if len(r.omissions) < maxOmissions {
		r.omissions = append(r.omissions, Omission{Object: identify(obj, "").String(), Field: field, Reason: reason})
	}
}

// omitUnknown removes the fields from a resource definition of v1beta1 that its kind never had.
func (r *renderer) omitUnknown(obj *unstructured.Unstructured) {
	spec, ok := obj.Object["spec"].(map[string]any)
	if _, isOld := Successor(obj.GroupVersionKind()); !ok || !isOld || obj.GetKind() != "CustomResourceDefinition" {
		return
	}
	p := &pruning{}
	p.definition(spec)
	for _, path := range p.removed {
		r.noteOmission(obj, path, "a CustomResourceDefinition has no such field")
	}
}

// isBlank reports whether a value holds nothing, as the status that code generators write.
func isBlank(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case map[string]any:
		for _, item := range v {
			if !isBlank(item) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !isBlank(item) })
	default:
		return value == nil
	}
}
