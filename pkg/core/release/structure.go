package release

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/text"
)

// sameStructure returns how the structure of two renderings differs: the second has tokens in place of texts of the first. The text names no key and
// value of the first, which may be confidential.
func (t *tokens) sameStructure(first, second Rendering) (difference string) {
	if found := t.sameObjects("CustomResourceDefinition", first.Definitions, second.Definitions); found != "" {
		return found
	}
	if found := t.sameObjects("hook", objectsOf(first.Hooks), objectsOf(second.Hooks)); found != "" {
		return found
	}
	return t.sameObjects("object", first.Objects, second.Objects)
}

func objectsOf(hooks []Hook) []Object {
	objects := make([]Object, len(hooks))
	for i := range hooks {
		objects[i] = hooks[i].Object
	}
	return objects
}

func (t *tokens) sameObjects(what string, first, second []Object) string {
	for i := range min(len(first), len(second)) {
		if found := t.sameObject(first[i], second[i]); found != "" {
			return found
		}
	}
	if len(first) != len(second) {
		return fmt.Sprintf("%s instead of %d", text.Plural(len(first), what), len(second))
	}
	return ""
}

func (t *tokens) sameObject(first, second Object) string {
	of := func(o *unstructured.Unstructured) [2]string { return [2]string{o.GetAPIVersion(), o.GetKind()} }
	if first.Source != second.Source || of(first.Object) != of(second.Object) {
		return fmt.Sprintf("%s: another object in place of the %s", second.Source, second.Object.GetKind())
	}
	if found := t.sameValue("", first.Object.Object, second.Object.Object); found != "" {
		return fmt.Sprintf("%s: %s: %s", second.Source, second.Object.GetKind(), found)
	}
	return ""
}

func (t *tokens) sameValue(path string, first, second any) string {
	switch second := second.(type) {
	case map[string]any:
		if first, is := first.(map[string]any); is {
			return t.sameFields(path, first, second)
		}
	case []any:
		if first, is := first.([]any); is {
			return t.sameItems(path, first, second)
		}
	default:
		if isScalar(first) {
			return ""
		}
	}
	return fmt.Sprintf("%s is %s instead of %s", path, kindOf(first), kindOf(second))
}

func (t *tokens) sameFields(path string, first, second map[string]any) string {
	if len(first) != len(second) {
		return fmt.Sprintf("%s has %d keys instead of %d", orObject(path), len(first), len(second))
	}
	for _, key := range slices.Sorted(maps.Keys(second)) {
		value, has := first[key]
		if !has {
			value, has = first[t.restore(key)]
		}
		if !has {
			return fmt.Sprintf("%s has other keys", orObject(path))
		}
		if found := t.sameValue(place(path, key), value, second[key]); found != "" {
			return found
		}
	}
	return ""
}

func (t *tokens) sameItems(path string, first, second []any) string {
	if len(first) != len(second) {
		return fmt.Sprintf("%s has %d items instead of %d", path, len(first), len(second))
	}
	for i := range second {
		if found := t.sameValue(place(path, i), first[i], second[i]); found != "" {
			return found
		}
	}
	return ""
}

// orObject returns what a path leads to.
func orObject(path string) string {
	if path == "" {
		return "the object"
	}
	return path
}

func isScalar(value any) bool { return kindOf(value) == "a scalar" }

func kindOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	}
	return "a scalar"
}
