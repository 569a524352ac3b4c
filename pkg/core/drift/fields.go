package drift

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A field set is an entry of managedFields (FieldsV1): f:NAME is a field, k:KEYS the item of a list with these keys, v:VALUE an item of a set, i:INDEX
// an item at an index, and a single dot the parent itself. A field without children is owned as a whole.
type fieldSet = map[string]any

// fieldsOf returns the fields that a manager has applied and owns; nil if there are none.
func fieldsOf(o *unstructured.Unstructured, manager string) fieldSet {
	for _, entry := range o.GetManagedFields() {
		if isApplied(entry, manager) {
			return decode(entry.FieldsV1)
		}
	}
	return nil
}

// isApplied reports whether an entry holds the fields that a manager has applied.
func isApplied(entry metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// decode returns a field set; nil if it is malformed.
func decode(fields *metav1.FieldsV1) fieldSet {
	set := fieldSet{}
	if fields == nil || json.Unmarshal(fields.Raw, &set) != nil {
		return nil
	}
	return set
}

// managedBy is the field set of another field manager.
type managedBy struct {
	manager string
	fields  fieldSet
}

// otherManagers returns the field sets of all managers but one.
func otherManagers(o *unstructured.Unstructured, manager string) (others []managedBy) {
	for _, entry := range o.GetManagedFields() {
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply {
			others = append(others, managedBy{entry.Manager, decode(entry.FieldsV1)})
		}
	}
	return others
}

// managersOf returns the names of the managers that own a field, or a part of it, sorted.
func managersOf(others []managedBy, path fieldPath) (names []string) {
	for _, other := range others {
		if owns(other.fields, path) && !slices.Contains(names, other.manager) {
			names = append(names, other.manager)
		}
	}
	slices.Sort(names)
	return names
}

// owns reports whether a field set has a field, a part of it, or a parent that is owned as a whole.
func owns(fields fieldSet, path fieldPath) bool {
	for i, element := range path {
		child, exists := fields[element.key].(map[string]any)
		if !exists {
			return i > 0 && len(fields) == 0
		}
		fields = child
	}
	return true
}

// pathElement is a step of a path: its key in a field set, and its name in a JSON pointer.
type pathElement struct{ key, name string }

// fieldPath is the path of a field.
type fieldPath []pathElement

// place is a field in both objects: its values there, whether the live object has it, and the fields below it after an apply.
type place struct {
	path          fieldPath
	live, applied any
	exists        bool
	below         fieldSet
}

// pointer returns the path as a JSON pointer (RFC 6901), except that items of lists have their keys in place of an index.
func (p place) pointer() string {
	var out strings.Builder
	for _, element := range p.path {
		out.WriteString("/" + escaper.Replace(element.name))
	}
	return out.String()
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// lostFields returns the fields that a manager would own after an apply, that it does not own, and whose values the apply would change. Of a part
// that the live object lacks, it returns the whole.
func lostFields(after, owned fieldSet, at place) (lost []place) {
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if key == "." {
			continue
		}
		children, _ := after[key].(map[string]any)
		below, isOwned := owned[key].(map[string]any)
		child, known := at.child(key)
		child.below = children
		switch {
		case !known, isOwned && len(children) == 0:
			continue
		case !isOwned && !child.exists, !isOwned && len(children) == 0:
			if !equal(child.live, child.applied) {
				lost = append(lost, child)
			}
		default:
			lost = append(lost, lostFields(children, below, child)...)
		}
	}
	return lost
}

// child returns the field with that key in a field set. known is false if the key is malformed.
func (p place) child(key string) (child place, known bool) {
	kind, rest, _ := strings.Cut(key, ":")
	find, name := finderOf(kind, rest)
	if find == nil {
		return child, false
	}
	child.path = append(slices.Clone(p.path), pathElement{key, name})
	child.applied, _ = find(p.applied)
	child.live, child.exists = find(p.live)
	return child, true
}

// finderOf returns what finds a field in the value of its parent, and the name of the field; nil if the kind of key or its value is malformed.
func finderOf(kind, rest string) (find func(parent any) (value any, exists bool), name string) {
	switch kind {
	case "f":
		return func(parent any) (any, bool) {
			fields, _ := parent.(map[string]any)
			value, exists := fields[rest]
			return value, exists
		}, rest
	case "k":
		keys := map[string]any{}
		if json.Unmarshal([]byte(rest), &keys) != nil || len(keys) == 0 {
			return nil, ""
		}
		return func(parent any) (any, bool) { return itemWith(parent, keys) }, nameOf(keys)
	case "v":
		var want any
		if json.Unmarshal([]byte(rest), &want) != nil {
			return nil, ""
		}
		return func(parent any) (any, bool) { return memberOf(parent, want) }, anyMember
	case "i":
		index, err := strconv.Atoi(rest)
		if err != nil {
			return nil, ""
		}
		return func(parent any) (any, bool) {
			items, _ := parent.([]any)
			if index < 0 || index >= len(items) {
				return nil, false
			}
			return items[index], true
		}, rest
	default:
		return nil, ""
	}
}

// anyMember is the name of a member of a set: its value may be secret.
const anyMember = "*"

// itemWith returns the item of a list that has these keys.
func itemWith(parent any, keys map[string]any) (any, bool) {
	items, _ := parent.([]any)
	for _, item := range items {
		fields, _ := item.(map[string]any)
		hasAll := len(fields) > 0
		for name, want := range keys {
			if scalarText(fields[name]) != scalarText(want) {
				hasAll = false
			}
		}
		if hasAll {
			return item, true
		}
	}
	return nil, false
}

// memberOf returns the member of a set that has that value.
func memberOf(parent, want any) (any, bool) {
	items, _ := parent.([]any)
	for _, item := range items {
		if scalarText(item) == scalarText(want) {
			return item, true
		}
	}
	return nil, false
}

// nameOf returns the name of an item with these keys: their values, joined with commas in the order of the keys.
func nameOf(keys map[string]any) string {
	var values []string
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		values = append(values, strings.Trim(scalarText(keys[name]), `"`))
	}
	return strings.Join(values, ",")
}

// scalarText returns a value in JSON: numbers of different types are alike.
func scalarText(value any) string {
	encoded, _ := json.Marshal(value) // it was decoded from JSON
	return string(encoded)
}

// equal reports whether two values are alike. A missing list or map is an empty one.
func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) || scalarText(a) == scalarText(b) }
