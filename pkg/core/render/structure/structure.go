// Package structure decides whether what the actions of a template print changes the structure of what the template renders. It is pure and
// touches no cluster.
//
// A twin of the rendered text, with marks around what actions print, is compared with the text itself: both must have the same documents,
// maps, keys and lists, and all marks of one print must be inside one scalar, or all in comments. A value that ends its scalar, or begins
// something else, moves marks apart, or is something else in the twin, where a mark is in front of it.
package structure

import (
	"slices"
	"sort"

	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

// Rules are the rules for one text.
type Rules struct {
	// Read decodes a text to its YAML documents, as values of JSON. The text and its twin are decoded in the same way.
	Read func(text string) ([]any, error)
	// Values is true for a map of values each of which is stored as text, such as a parameter file: a value that one action prints may have
	// any kind.
	Values bool
	// Names is true if actions must not print types, names and namespaces of objects, and neither a field of an object or its metadata.
	Names bool
	// AnyType is true if actions may print apiVersion and kind of objects.
	AnyType bool
}

// Changes reports whether values that actions print change the structure of the output, as FindChange does.
func (r Rules) Changes(out template.Output, checked func(*template.Action) bool) bool {
	judged, violated := r.judge(out, checked)
	return len(judged) > 0 && violated(judged)
}

// FindChange returns an action that prints a value that changes the structure of the output; nil if there is none. It judges only actions
// for which checked returns true.
//
// If the output itself cannot be read, it returns an action without whose value it could be read.
func (r Rules) FindChange(out template.Output, checked func(*template.Action) bool) *template.Action {
	judged, violated := r.judge(out, checked)
	if len(judged) == 0 || !violated(judged) {
		return nil
	}
	// The first actions up to this one violate the structure, and those before it do not.
	last := sort.Search(len(judged)-1, func(i int) bool { return violated(judged[:i+1]) })
	return judged[last]
}

// judge returns the actions to judge, and whether what some of them print violates the structure of the output.
func (r Rules) judge(out template.Output, checked func(*template.Action) bool) (judged []*template.Action, violated func([]*template.Action) bool) {
	judged = actions(out, checked)
	if len(judged) == 0 {
		return nil, nil
	}
	original, err := r.Read(out.Text)
	var units []unit
	if !r.Names {
		units = r.units(out, setOf(judged))
	}
	return judged, func(some []*template.Action) bool {
		among := setOf(some)
		twin := newTwin(out, among)
		marked, twinErr := r.Read(twin.text)
		if (err == nil) != (twinErr == nil) || err == nil && !r.same(twin, original, marked) {
			return true
		}
		return r.hasDisplacedUnits(out, original, err, among, units)
	}
}

// actions returns the checked actions that print something, in order of appearance.
func actions(out template.Output, checked func(*template.Action) bool) []*template.Action {
	var found []*template.Action
	known := map[*template.Action]bool{}
	for _, p := range out.Prints {
		if seen := known[p.Action]; !seen && counts(p) {
			known[p.Action] = true
			if checked(p.Action) {
				found = append(found, p.Action)
			}
		}
	}
	return slices.Clip(found)
}

func setOf(actions []*template.Action) map[*template.Action]bool {
	set := make(map[*template.Action]bool, len(actions))
	for _, action := range actions {
		set[action] = true
	}
	return set
}
