package render

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// formerField is a field that Kubernetes has removed without a new API version. The API server refuses to apply it.
type formerField struct {
	// path of the field, with [] after the name of a list.
	path string
	// since is the minor release without the field.
	since string
}

// The fields that were removed, relative to the part that had them. Source: a comparison of the types of k8s.io/api and
// k8s.io/apimachinery of Kubernetes 1.15 to 1.35.
var (
	formerInMetadata = []formerField{{"metadata.initializers", "1.16"}, {"metadata.clusterName", "1.25"}}
	formerInService  = []formerField{{"spec.ipFamily", "1.20"}, {"spec.topologyKeys", "1.22"}}
	formerInClaim    = append([]formerField{{"spec.resources.claims", "1.29"}, {"status.resizeStatus", "1.28"}}, formerInMetadata...)
	formerInPodSpec  = append([]formerField{{"volumes[].ephemeral.readOnly", "1.21"}},
		below("volumes[].ephemeral.volumeClaimTemplate.", formerInClaim)...)
)

// below returns the fields below a path.
func below(path string, fields []formerField) []formerField {
	all := make([]formerField, len(fields))
	for i, f := range fields {
		all[i] = formerField{path: path + f.path, since: f.since}
	}
	return all
}

// formerFields returns the fields that a kind had. Of a custom kind, only the metadata is known.
func formerFields(kind schema.GroupKind) []formerField {
	fields := formerInMetadata
	for _, path := range templatePaths[kind] {
		fields = append(fields, below(strings.Join(path, ".")+".", formerInMetadata)...)
	}
	if path, hasPods := podSpecPath(kind); hasPods {
		fields = append(fields, below(strings.Join(path, ".")+".", formerInPodSpec)...)
	}
	switch kind {
	case schema.GroupKind{Kind: "Service"}:
		fields = append(fields, formerInService...)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		fields = append(fields, formerInClaim...)
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		fields = append(fields, below("spec.volumeClaimTemplates[].", formerInClaim)...)
	}
	return fields
}

// podSpecPath returns the path of the specification of pods in a built-in kind.
func podSpecPath(kind schema.GroupKind) (path []string, hasPods bool) {
	switch paths := templatePaths[kind]; {
	case len(paths) > 0:
		pod := paths[len(paths)-1]
		return append(pod[:len(pod):len(pod)], "spec"), true
	case kind == schema.GroupKind{Kind: "Pod"}:
		return []string{"spec"}, true
	case kind == schema.GroupKind{Kind: "PodTemplate"}:
		return []string{"template", "spec"}, true
	default:
		return nil, false
	}
}

// omitFormer removes the fields that the kind of an object no longer has.
func (r *renderer) omitFormer(obj *unstructured.Unstructured) {
	for _, field := range formerFields(obj.GroupVersionKind().GroupKind()) {
		if removeField(obj.Object, field.path) {
			r.noteOmission(obj, field.path, "Kubernetes has removed the field in "+field.since)
		}
	}
}

// removeField removes the field at a path, in all items of the lists of the path, and reports whether there was one.
func removeField(value any, path string) (removed bool) {
	object, isObject := value.(map[string]any)
	if !isObject {
		return false
	}
	name, rest, isBelow := strings.Cut(path, ".")
	if !isBelow {
		_, removed = object[name]
		delete(object, name)
		return removed
	}
	list, isList := strings.CutSuffix(name, "[]")
	if !isList {
		return removeField(object[name], rest)
	}
	items, _ := object[list].([]any)
	for _, item := range items {
		removed = removeField(item, rest) || removed
	}
	return removed
}
