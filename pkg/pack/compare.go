package pack

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Section is the part of an OperatorVersion that a Change is in.
type Section string

// The sections, in the order in which Compare goes through them. Their names are those of the fields of an OperatorVersion.
const (
	InVersion    Section = "version"
	InParameters Section = "parameters"
	InPlans      Section = "plans"
	InTasks      Section = "tasks"
	InTemplates  Section = "templates"
)

// ChangeKind says what became of the thing that a Change names.
type ChangeKind string

// The kinds of a Change.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed"
)

// Change is one thing in which an OperatorVersion differs from another one.
type Change struct {
	Section Section `json:"section"`
	// Name of the parameter, plan, task or template; in InVersion that of the field.
	Name string     `json:"name"`
	Kind ChangeKind `json:"kind"`
	// Field of it that differs, such as default or phases[main].steps[app].tasks; empty where the whole is meant.
	Field string `json:"field,omitempty"`
	// From and To are what the field was and is, as in JSON; nil where it was not or is not there, and for templates.
	From any `json:"from,omitempty"`
	To   any `json:"to,omitempty"`
}

// Compare lists all in which after differs from before: by section, and in each by name. Steps and phases are the same if their names
// are; parameters and tasks may stand in any order.
func Compare(before, after *kudo.OperatorVersionSpec) []Change {
	var changes []Change
	from, to := plain(before), plain(after)
	for _, field := range []string{"operator", "version", "appVersion", "connectionString", "upgradableFrom"} {
		if !reflect.DeepEqual(from[field], to[field]) {
			changes = append(changes, Change{Section: InVersion, Name: field, Kind: Changed, From: from[field], To: to[field]})
		}
	}
	for _, section := range []Section{InParameters, InPlans, InTasks} {
		changes = append(changes, compareThings(section, thingsIn(from[string(section)]), thingsIn(to[string(section)]))...)
	}
	for _, name := range union(before.Templates, after.Templates) {
		text, was := before.Templates[name]
		next, is := after.Templates[name]
		if was != is || text != next {
			changes = append(changes, Change{Section: InTemplates, Name: name, Kind: kindOf(was, is)})
		}
	}
	return changes
}

// object is one in JSON.
type object = map[string]any

// plain is what JSON has of a specification, in which what is empty is not there.
func plain(spec *kudo.OperatorVersionSpec) object {
	result := object{}
	text, err := json.Marshal(spec)
	if err == nil { // plain data always marshals
		_ = json.Unmarshal(text, &result)
	}
	result["operator"] = spec.Operator.Name
	return result
}

// compareThings compares things by their names.
func compareThings(section Section, before, after object) []Change {
	var changes []Change
	for _, name := range union(before, after) {
		from, was := before[name]
		to, is := after[name]
		if kind := kindOf(was, is); kind != Changed {
			changes = append(changes, Change{Section: section, Name: name, Kind: kind, From: from, To: to})
			continue
		}
		differences("", from, to, func(field string, from, to any) {
			changes = append(changes, Change{Section: section, Name: name, Kind: Changed, Field: field, From: from, To: to})
		})
	}
	return changes
}

// differences visits the innermost fields that differ. A list of named things differs by itself where their names or order do.
func differences(path string, before, after any, visit func(field string, from, to any)) {
	if from, to, objects := both[object](before, after); objects {
		for _, key := range union(from, to) {
			at := key
			if path != "" {
				at = path + "." + key
			}
			differences(at, from[key], to[key], visit)
		}
		return
	}
	if from, to, lists := both[[]any](before, after); lists {
		fromNames, fromThings := namesIn(from)
		toNames, toThings := namesIn(to)
		if fromNames != nil && toNames != nil {
			if !slices.Equal(fromNames, toNames) {
				visit(path, fromNames, toNames)
			}
			for _, name := range fromNames {
				if thing, is := toThings[name]; is {
					differences(path+"["+name+"]", fromThings[name], thing, visit)
				}
			}
			return
		}
	}
	if !reflect.DeepEqual(before, after) {
		visit(path, before, after)
	}
}

func kindOf(was, is bool) ChangeKind {
	switch {
	case !was:
		return Added
	case !is:
		return Removed
	default:
		return Changed
	}
}

// both are two values of one type, if they are.
func both[T any](a, b any) (T, T, bool) {
	x, isX := a.(T)
	y, isY := b.(T)
	return x, y, isX && isY
}

// union is the keys of two maps, sorted.
func union[V any](a, b map[string]V) []string {
	keys := maps.Clone(a)
	if keys == nil {
		keys = map[string]V{}
	}
	maps.Copy(keys, b)
	return sortedKeys(keys)
}

// thingsIn are named things, by their names: those of a list, of which the first counts where a name stands twice, or of an object.
func thingsIn(value any) object {
	if list, isList := value.([]any); isList {
		_, things := namesIn(list)
		return things
	}
	things, _ := value.(object)
	return things
}

// namesIn are the names of things, in their order, and the things; nil where some have none.
func namesIn(things []any) ([]string, object) {
	names, named := make([]string, 0, len(things)), object{}
	for _, thing := range things {
		fields, _ := thing.(object)
		name, isNamed := fields["name"].(string)
		if !isNamed {
			return nil, nil
		}
		if _, twice := named[name]; !twice {
			names, named[name] = append(names, name), thing
		}
	}
	return names, named
}
