package drift

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Restoration returns what a manager has to apply so that exactly the differences of a comparison are put back: with the values that exist, the fields that it
// owns, and with the values that were applied, those that Compare returns. Ignored fields, and what was only rendered differently since, stay as they are.
// It returns nil if the managed fields are in another version than the object, or cannot be followed.
func Restoration(o Objects, ignored []kudo.IgnoredFields) *unstructured.Unstructured {
	if versionOf(o.Live, o.Manager) != o.Live.GetAPIVersion() && fieldsOf(o.Live, o.Manager) != nil || o.Live.GetAPIVersion() != o.Applied.GetAPIVersion() {
		return nil
	}
	fields := map[string]any{}
	if owned := fieldsOf(o.Live, o.Manager); len(owned) > 0 { // an empty set below would be all fields
		fields, _ = project(o.Live.Object, owned).(map[string]any)
	}
	for _, field := range o.lost(ignored) {
		put(fields, o.Applied.Object, field.path, project(field.applied, field.below))
		if !contains(fields, field.path) {
			return nil
		}
	}
	restored := &unstructured.Unstructured{Object: fields}
	restored.SetGroupVersionKind(o.Live.GroupVersionKind())
	restored.SetNamespace(o.Live.GetNamespace())
	restored.SetName(o.Live.GetName())
	return restored
}

// versionOf returns the version of the fields that a manager has applied; empty if there are none.
func versionOf(o *unstructured.Unstructured, manager string) string {
	for _, entry := range o.GetManagedFields() {
		if isApplied(entry, manager) {
			return entry.APIVersion
		}
	}
	return ""
}

// project returns a copy of the parts of a value that a field set has. Items of lists stay in their order.
func project(value any, set fieldSet) any {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(set)), func(key string) bool { return key == "." })
	_, hasItself := set["."]
	switch value := value.(type) {
	case map[string]any:
		if len(keys) == 0 && !hasItself {
			return runtime.DeepCopyJSONValue(value)
		}
		return projectFields(value, set, keys)
	case []any:
		if len(keys) == 0 && !hasItself {
			return runtime.DeepCopyJSONValue(value)
		}
		return projectItems(value, set, keys)
	default:
		return value
	}
}

func projectFields(value map[string]any, set fieldSet, keys []string) map[string]any {
	fields := map[string]any{}
	for _, key := range keys {
		name, isField := strings.CutPrefix(key, "f:")
		if child, exists := value[name]; isField && exists {
			below, _ := set[key].(map[string]any)
			fields[name] = project(child, below)
		}
	}
	return fields
}

func projectItems(value []any, set fieldSet, keys []string) []any {
	type item struct {
		index int
		value any
	}
	var items []item
	for _, key := range keys {
		index := indexOf(value, key)
		if index < 0 {
			continue
		}
		below, _ := set[key].(map[string]any)
		projected := project(value[index], below)
		if fields, ok := projected.(map[string]any); ok {
			maps.Copy(fields, keysIn(key))
		}
		items = append(items, item{index, projected})
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.index, b.index) })
	projected := []any{}
	for _, item := range items {
		projected = append(projected, item.value)
	}
	return projected
}

// indexOf returns the index of the item of a list with that key of a field set; -1 if there is none.
func indexOf(items []any, key string) int {
	kind, rest, _ := strings.Cut(key, ":")
	switch kind {
	case "k":
		return slices.IndexFunc(items, func(item any) bool { _, is := itemWith([]any{item}, keysIn(key)); return is })
	case "v":
		var want any
		if json.Unmarshal([]byte(rest), &want) != nil {
			return -1
		}
		return slices.IndexFunc(items, func(item any) bool { return scalarText(item) == scalarText(want) })
	case "i":
		if index, err := strconv.Atoi(rest); err == nil && index >= 0 && index < len(items) {
			return index
		}
	}
	return -1
}

// keysIn returns the keys of an item from its key in a field set; nil for any other key.
func keysIn(key string) map[string]any {
	rest, isItem := strings.CutPrefix(key, "k:")
	if !isItem {
		return nil
	}
	keys := map[string]any{}
	decoder := json.NewDecoder(strings.NewReader(rest))
	decoder.UseNumber()
	if decoder.Decode(&keys) != nil {
		return nil
	}
	for name, value := range keys {
		if number, ok := value.(json.Number); ok {
			keys[name], _ = number.Int64()
		}
	}
	return keys
}

// put sets a value in fields, with the parents that it needs. A new item of a list has its place as in the applied object.
func put(fields, applied map[string]any, path fieldPath, value any) {
	var parent any = fields
	replaceParent := func(any) {}
	at := place{applied: applied}
	for i, element := range path {
		isLast := i == len(path)-1
		switch in := parent.(type) {
		case map[string]any:
			name, _ := strings.CutPrefix(element.key, "f:")
			if isLast {
				in[name] = value
				return
			}
			if in[name] == nil {
				in[name] = emptyFor(path[i+1].key)
			}
			parent, replaceParent = in[name], func(v any) { in[name] = v }
		case []any:
			index := indexOf(in, element.key)
			if index < 0 {
				in = sortedLike(at.applied, append(in, newItem(element.key, value, isLast)), element.key)
				index = indexOf(in, element.key)
				replaceParent(in)
			}
			if index < 0 {
				return
			}
			if isLast {
				in[index] = withKeys(value, element.key)
				return
			}
			parent, replaceParent = in[index], func(v any) { in[index] = v }
		default:
			return
		}
		at, _ = at.child(element.key)
	}
}

// sortedLike returns the items of a list in the order that they have in another one; key belongs to one of them.
func sortedLike(other any, items []any, key string) []any {
	order, _ := other.([]any)
	names := slices.Collect(maps.Keys(keysIn(key)))
	rank := func(item any) int {
		i := slices.IndexFunc(order, func(o any) bool { return scalarText(identity(o, names)) == scalarText(identity(item, names)) })
		if i < 0 {
			return len(order)
		}
		return i
	}
	slices.SortStableFunc(items, func(a, b any) int { return cmp.Compare(rank(a), rank(b)) })
	return items
}

// identity returns the fields of an item with these names; the item itself if there are none.
func identity(item any, names []string) any {
	fields, isMap := item.(map[string]any)
	if len(names) == 0 || !isMap {
		return item
	}
	of := map[string]any{}
	for _, name := range names {
		of[name] = fields[name]
	}
	return of
}

// emptyFor returns an empty parent for a key of a field set: a map, or a list.
func emptyFor(key string) any {
	if strings.HasPrefix(key, "f:") {
		return map[string]any{}
	}
	return []any{}
}

// newItem returns a new item of a list: the value, or an item with only its keys.
func newItem(key string, value any, isValue bool) any {
	if isValue {
		return value
	}
	return withKeys(map[string]any{}, key)
}

// withKeys returns an item with its keys.
func withKeys(item any, key string) any {
	if fields, ok := item.(map[string]any); ok {
		maps.Copy(fields, keysIn(key))
	}
	return item
}

// contains reports whether fields have a path.
func contains(fields map[string]any, path fieldPath) bool {
	at := place{live: fields, exists: true}
	for _, element := range path {
		child, known := at.child(element.key)
		if !known || !child.exists {
			return false
		}
		at = child
	}
	return true
}
