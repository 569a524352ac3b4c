package wrap

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/core/release"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Section is what of a chart a change belongs to.
type Section string

// The sections, in the order in which they are shown.
const (
	InValues      Section = "values"
	InObjects     Section = "objects"
	InDefinitions Section = "definitions"
	InHooks       Section = "hooks"
	InPermissions Section = "permissions"
)

// Change is a difference between two versions of a chart. Added has no From, and removed no To.
type Change struct {
	Section Section `json:"section"`
	Name    string  `json:"name"`
	// Kind is added, removed or changed.
	Kind string `json:"kind"`
	// From and To are values; empty for objects.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// The kinds of changes.
const (
	added   = "added"
	removed = "removed"
	changed = "changed"
)

// CompareValues lists the values that another version of a chart adds, no longer has, or gives another default.
func CompareValues(before, after Chart) ([]Change, error) {
	from, err := before.leaves()
	if err != nil {
		return nil, err
	}
	to, err := after.leaves()
	if err != nil {
		return nil, err
	}
	return Compare(InValues, from, to), nil
}

// Compare lists what differs between two maps, by name.
func Compare(section Section, before, after map[string]string) []Change {
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(merged(before, after))) {
		from, was := before[name]
		to, is := after[name]
		change := Change{Section: section, Name: name, Kind: changed, From: from, To: to}
		switch {
		case !was:
			change.Kind = added
		case !is:
			change.Kind = removed
		case from == to:
			continue
		}
		changes = append(changes, change)
	}
	return changes
}

func merged(a, b map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// maxLeaves limits the values that are compared.
const maxLeaves = 20_000

// leaves returns the innermost values of a chart in one line each, by path. Lists, and maps without entries, are values.
func (c Chart) leaves() (map[string]string, error) {
	root, err := c.root()
	if err != nil {
		return nil, err
	}
	leaves := map[string]string{}
	var visit func(*yaml.Node, Path) error
	visit = func(node *yaml.Node, at Path) error {
		node = resolve(node)
		if node.Kind != yaml.MappingNode || len(node.Content) == 0 || len(at) >= maxKeys {
			if len(leaves) >= maxLeaves {
				return fmt.Errorf("chart %s has more than %d values", text.Quote(c.Name), maxLeaves)
			}
			leaves[at.String()] = lineOf(node)
			return nil
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			if err := visit(node.Content[i+1], append(slices.Clone(at), node.Content[i].Value)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(root.Content) == 0 {
		return leaves, nil
	}
	return leaves, visit(root, nil)
}

// lineOf returns a value in one line of YAML.
func lineOf(node *yaml.Node) string {
	copied, nodes := plain(node, maxNodes)
	if nodes < 0 {
		return "(large)"
	}
	copied.Style = yaml.FlowStyle
	encoded, err := yaml.Marshal(copied)
	if err != nil {
		return "(not valid)"
	}
	return oneLine(string(encoded))
}

// Gone returns the paths of values that a package sets and that the chart had, but another version of the chart does not have, neither in its values nor
// in its schema. values are those of the package, in YAML or JSON.
func Gone(before, after Chart, values string) ([]string, error) {
	from, err := before.root()
	if err != nil {
		return nil, err
	}
	to, err := after.defaults()
	if err != nil {
		return nil, err
	}
	set, err := Chart{Name: before.Name, Values: []byte(values)}.paths()
	if err != nil {
		return nil, err
	}
	missing := map[string]bool{}
	for _, path := range set {
		known := knownPart(from, path)
		if global, _ := to.globals.find(path); len(known) > 0 && global == nil && !to.has(known) {
			missing[path.String()] = true
		}
	}
	return slices.Sorted(maps.Keys(missing)), nil
}

// has reports whether a chart has a value: in its values, in its schema, or in a map that users fill.
func (d *defaults) has(path Path) bool {
	_, value := find(d.root, path)
	return value != nil || d.described.at(path) != nil || isOpen(d.root, path)
}

// paths returns the paths of the innermost values.
func (c Chart) paths() ([]Path, error) {
	root, err := c.root()
	if err != nil {
		return nil, err
	}
	var paths []Path
	var visit func(*yaml.Node, Path)
	visit = func(node *yaml.Node, at Path) {
		node = resolve(node)
		if node.Kind != yaml.MappingNode || len(node.Content) == 0 || len(at) >= maxKeys || len(paths) >= maxLeaves {
			if len(at) > 0 {
				paths = append(paths, at)
			}
			return
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			visit(node.Content[i+1], append(slices.Clone(at), node.Content[i].Value))
		}
	}
	visit(root, nil)
	return paths, nil
}

// knownPart returns the longest beginning of a path that leads to a value.
func knownPart(root *yaml.Node, path Path) Path {
	for n := len(path); n > 0; n-- {
		if _, is := find(root, path[:n]); is != nil {
			return path[:n]
		}
	}
	return nil
}

// isOpen reports whether a path leads into a map without entries, or null, which a chart lets users fill.
func isOpen(root *yaml.Node, path Path) bool {
	known := knownPart(root, path)
	if len(known) == 0 {
		return false
	}
	_, at := find(root, known)
	return at.ShortTag() == "!!null" || at.Kind == yaml.MappingNode && len(at.Content) == 0
}

// CompareRenderings lists the objects, definitions and hooks that another version of a chart adds, no longer renders, or changes, and warns of definitions
// that drop the version in which objects are stored.
func CompareRenderings(before, after release.Rendering) (changes []Change, warnings []string) {
	changes = compareObjects(InObjects, before.Objects, after.Objects)
	changes = append(changes, compareObjects(InDefinitions, before.Definitions, after.Definitions)...)
	changes = append(changes, compareObjects(InHooks, objectsOf(before.Hooks), objectsOf(after.Hooks))...)
	definitions := byName(append(slices.Clone(after.Definitions), after.Objects...))
	for name, old := range byName(append(slices.Clone(before.Definitions), before.Objects...)) {
		next := definitions[name]
		if old.GetKind() != "CustomResourceDefinition" || next == nil {
			continue
		}
		stored, _ := versionsOf(old)
		if _, served := versionsOf(next); stored != "" && !slices.Contains(served, stored) {
			warnings = append(warnings, fmt.Sprintf("%s no longer has version %s, in which clusters may store objects: they refuse it until these are migrated, and "+
				"the plan ends before anything is applied", name, text.Quote(stored)))
		}
	}
	slices.Sort(warnings)
	return changes, warnings
}

// versionsOf returns the version in which a definition stores objects, and all of its versions.
func versionsOf(definition *unstructured.Unstructured) (stored string, all []string) {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		fields, _ := v.(map[string]any)
		name, _ := fields["name"].(string)
		if fields["storage"] == true {
			stored = name
		}
		all = append(all, name)
	}
	return stored, all
}

func objectsOf(hooks []release.Hook) []release.Object {
	var objects []release.Object
	for _, h := range hooks {
		objects = append(objects, h.Object)
	}
	return objects
}

// byName returns objects by kind and name.
func byName(objects []release.Object) map[string]*unstructured.Unstructured {
	named := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		kind := o.Object.GroupVersionKind().GroupKind()
		name := fmt.Sprintf("%s %s", kind, text.Quote(o.Object.GetName()))
		if namespace := o.Object.GetNamespace(); namespace != "" {
			name += " in namespace " + text.Quote(namespace)
		}
		named[name] = o.Object
	}
	return named
}

// compareObjects compares objects, apart from labels that name the version of the chart.
func compareObjects(section Section, before, after []release.Object) []Change {
	from, to := byName(before), byName(after)
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(from)) {
		switch next, is := to[name]; {
		case !is:
			changes = append(changes, Change{Section: section, Name: name, Kind: removed})
		case !reflect.DeepEqual(unversioned(from[name]), unversioned(next)):
			changes = append(changes, Change{Section: section, Name: name, Kind: changed})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if _, was := from[name]; !was {
			changes = append(changes, Change{Section: section, Name: name, Kind: added})
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return changes
}

// unversioned returns an object without the labels that name the version of its chart.
func unversioned(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	labels := o.GetLabels()
	for _, name := range []string{"helm.sh/chart", "chart", "app.kubernetes.io/version"} {
		delete(labels, name)
	}
	o.SetLabels(labels)
	return o.Object
}
