package pack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// Section is the part of an OperatorVersion that a Change belongs to.
type Section string

// The sections, in the order of Compare. Their names are those of the fields of an OperatorVersion.
const (
	InVersion    Section = "version"
	InParameters Section = "parameters"
	InPlans      Section = "plans"
	InTasks      Section = "tasks"
	InTemplates  Section = "templates"
	InContent    Section = "content"
)

// ChangeKind is the kind of a Change.
type ChangeKind string

// The kinds of a Change.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed"
)

// Change is one difference between two OperatorVersions.
type Change struct {
	Section Section `json:"section"`
	// Name of the parameter, plan, task, template or other file; in InVersion the name of the field.
	Name string     `json:"name"`
	Kind ChangeKind `json:"kind"`
	// Field is the changed field, such as default or phases[main].steps[app].tasks; empty if the whole changed.
	Field string `json:"field,omitempty"`
	// From and To are the values of the field before and after, as in JSON, and the digests of another file; nil if it is missing, and for
	// templates.
	From any `json:"from,omitempty"`
	To   any `json:"to,omitempty"`
}

// Compare lists all differences between before and after: by section, and in each by name. Steps and phases are matched by name; the order
// of parameters and tasks is ignored.
func Compare(before, after *kudo.OperatorVersionSpec) []Change {
	var changes []Change
	from, to := plain(before), plain(after)
	for _, field := range []string{"operator", "version", "appVersion", "dependencyVersion", "dependencies", "kubernetesVersion", "connectionString", "health", "drift", "returnable", "permissions", "upgradableFrom"} {
		if !reflect.DeepEqual(from[field], to[field]) {
			changes = append(changes, Change{Section: InVersion, Name: field, Kind: Changed, From: from[field], To: to[field]})
		}
	}
	for _, section := range []Section{InParameters, InPlans, InTasks} {
		changes = append(changes, compareThings(section, thingsIn(from[string(section)]), thingsIn(to[string(section)]))...)
	}
	changes = append(changes, compareFiles(InTemplates, templateDigests(before), templateDigests(after))...)
	return append(changes, compareFiles(InContent, otherDigests(before), otherDigests(after))...)
}

// compareFiles compares files by their digests.
func compareFiles(section Section, before, after map[string]string) []Change {
	var changes []Change
	for _, name := range union(before, after) {
		digest, was := before[name]
		next, is := after[name]
		if was != is || digest != next {
			change := Change{Section: section, Name: name, Kind: kindOf(was, is)}
			if section == InContent && was && is {
				change.From, change.To = digest, next
			}
			changes = append(changes, change)
		}
	}
	return changes
}

// templateDigests returns the digests of all templates, whether they are in the OperatorVersion or in its content.
func templateDigests(spec *kudo.OperatorVersionSpec) map[string]string {
	digests := map[string]string{}
	for name, text := range spec.Templates {
		digests[name] = content.DigestOf([]byte(text))
	}
	resources := content.Resources(spec)
	for _, file := range spec.Content {
		if resources[file.File] {
			digests[file.File] = file.Digest
		}
	}
	return digests
}

// otherDigests returns the digests of the files in the content that are no templates, such as charts.
func otherDigests(spec *kudo.OperatorVersionSpec) map[string]string {
	digests, resources := map[string]string{}, content.Resources(spec)
	for _, file := range spec.Content {
		if !resources[file.File] {
			digests[file.File] = file.Digest
		}
	}
	return digests
}

// object is a JSON object.
type object = map[string]any

// plain returns the JSON form of a specification, without empty fields.
func plain(spec *kudo.OperatorVersionSpec) object {
	result := object{}
	text, err := json.Marshal(spec)
	if err == nil { // plain data always marshals
		_ = json.Unmarshal(text, &result)
	}
	result["operator"] = spec.Operator.Name
	return result
}

// compareThings compares named items.
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

// differences visits the innermost fields that differ. A list of named items differs as a whole if the names or their order do.
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

// both returns two values as one type, if both have it.
func both[T any](a, b any) (T, T, bool) {
	x, isX := a.(T)
	y, isY := b.(T)
	return x, y, isX && isY
}

// union returns the keys of two maps, sorted.
func union[V any](a, b map[string]V) []string {
	keys := maps.Clone(a)
	if keys == nil {
		keys = map[string]V{}
	}
	maps.Copy(keys, b)
	return sortedKeys(keys)
}

// thingsIn returns named items by name: those of a list, with the first one of duplicate names, or those of an object.
func thingsIn(value any) object {
	if list, isList := value.([]any); isList {
		_, things := namesIn(list)
		return things
	}
	things, _ := value.(object)
	return things
}

// namesIn returns the names of items, in their order, and the items; nil if some have no name.
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

// ChangedFields returns the names of the fields that differ between two versions. The exact name of a child's OperatorVersion is no
// difference if the stored task has none, because earlier releases did not store it.
func ChangedFields(stored, wanted *kudo.OperatorVersionSpec) []string {
	wanted = asStored(stored, wanted)
	if equality.Semantic.DeepEqual(stored, wanted) { // also if one has an empty list and the other none
		return nil
	}
	var changed []string
	for _, c := range Compare(stored, wanted) {
		changed = append(changed, changedName(c, stored, wanted))
	}
	sameOrder := equality.Semantic.DeepEqual(stored.Parameters, wanted.Parameters) && equality.Semantic.DeepEqual(stored.Tasks, wanted.Tasks)
	if len(changed) == 0 && !sameOrder {
		return []string{"order of parameters or tasks"}
	}
	slices.Sort(changed)
	return slices.Compact(changed)
}

// asStored returns wanted without the names of children's OperatorVersions in tasks that are stored without one, and without the required versions of
// Kubernetes if none are stored: earlier releases stored neither.
func asStored(stored, wanted *kudo.OperatorVersionSpec) *kudo.OperatorVersionSpec {
	wanted = wanted.DeepCopy()
	for i := range wanted.Tasks {
		at := slices.IndexFunc(stored.Tasks, func(t kudo.Task) bool { return t.Name == wanted.Tasks[i].Name })
		if at >= 0 && stored.Tasks[at].Spec.OperatorVersionName == "" {
			wanted.Tasks[i].Spec.OperatorVersionName = ""
		}
	}
	if !compatibility.IsConstrained(stored) {
		wanted.KubernetesVersion = ""
		for i := range wanted.Content {
			wanted.Content[i].KubeVersion = ""
		}
	}
	return wanted
}

// changedName names the changed field. For a task whose child operator has another version it states that: the package itself may be
// unchanged, and the operator's name now resolves to a higher version.
func changedName(c Change, stored, wanted *kudo.OperatorVersionSpec) string {
	if c.Section == InVersion {
		return c.Name
	}
	name := strings.TrimSuffix(string(c.Section), "s") + " " + c.Name
	if c.Section != InTasks {
		return name
	}
	if now, once := childName(wanted.Tasks, c.Name), childName(stored.Tasks, c.Name); now != once && now != "" && once != "" {
		return fmt.Sprintf("%s with child operator %s instead of %s", name, now, once)
	}
	return name
}

// childName returns the child OperatorVersion of the resolved task of that name, or an empty string.
func childName(tasks []kudo.Task, name string) string {
	i := slices.IndexFunc(tasks, func(t kudo.Task) bool { return t.Name == name })
	if i < 0 || !tree.MakesChild(tasks[i]) {
		return ""
	}
	spec := tasks[i].Spec
	return cmp.Or(spec.OperatorVersionName, VersionName(spec.Package, spec.AppVersion, spec.OperatorVersion))
}
