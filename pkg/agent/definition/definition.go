// Package definition watches the CustomResourceDefinitions of the managed cluster, and decides whether the API server shows exactly
// the kinds that they define. It touches only that cluster.
package definition

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Definition is the part of a CustomResourceDefinition that requests for objects of its kind depend on.
type Definition struct {
	Name       string
	UID        types.UID
	Generation int64 // of its spec
	Kind       schema.GroupKind
	Namespaced bool

	// Served are the versions that the API server serves, sorted. It serves none before the definition is established.
	Served      string
	Established bool
}

// of returns the definition that an object of the API server contains.
func of(object *unstructured.Unstructured) Definition {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(object.Object, path...)
		return value
	}
	d := Definition{
		Name: object.GetName(), UID: object.GetUID(), Generation: object.GetGeneration(), Namespaced: text("spec", "scope") == "Namespaced",
		Kind: schema.GroupKind{Group: text("spec", "group"), Kind: text("spec", "names", "kind")},
	}
	list := func(path ...string) []any { // without a copy: schemas are large
		found, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
		items, _ := found.([]any)
		return items
	}
	d.Established = slices.ContainsFunc(list("status", "conditions"), func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
	var served []string
	for _, v := range list("spec", "versions") {
		version, _ := v.(map[string]any)
		if name, _ := version["name"].(string); version["served"] == true {
			served = append(served, name)
		}
	}
	slices.Sort(served)
	d.Served = strings.Join(served, " ")
	return d
}

// ResourceOf returns the resource that a definition of that name defines.
func ResourceOf(name string) schema.GroupResource {
	plural, group, _ := strings.Cut(name, ".")
	return schema.GroupResource{Group: group, Resource: plural}
}

// Serves reports whether the API server serves a version of the definition. A definition that does not exist is empty, and serves none.
func (d Definition) Serves(version string) bool {
	return d.Established && slices.Contains(strings.Fields(d.Served), version)
}

// Agrees reports whether the API server shows exactly what the definition defines, which takes a moment after a change. shown are the resources
// that it shows with the definition's plural, or with any other.
func (d Definition) Agrees(shown []*meta.RESTMapping) bool {
	var versions []string
	for _, mapping := range shown {
		if mapping.Resource.GroupResource() != ResourceOf(d.Name) {
			continue
		}
		if d.Namespaced != (mapping.Scope.Name() == meta.RESTScopeNameNamespace) || d.Kind != mapping.GroupVersionKind.GroupKind() {
			return false
		}
		versions = append(versions, mapping.Resource.Version)
	}
	slices.Sort(versions)
	if !d.Established {
		return len(versions) == 0
	}
	return strings.Join(versions, " ") == d.Served
}
