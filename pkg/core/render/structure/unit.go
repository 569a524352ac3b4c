package structure

import (
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

// unit is a print that must be whole at its place: a structure that the template encodes, whose lines could leave the place of the first one.
type unit struct {
	print template.Print
	// value is the structure on its own; nil if it is unknown.
	value any
	// form is the form of the token that replaces the unit in the text.
	form form
}

// form is the kind of node that a token is, so that it fits wherever the unit does.
type form int

const (
	// scalar replaces JSON, entry the entries of a map, and item the items of a list in YAML.
	scalar form = iota
	entry
	item
)

// token returns the token with a mark.
func (f form) token(mark string) string {
	switch f {
	case entry:
		return mark + ": " + mark
	case item:
		return "- " + mark
	default:
		return mark
	}
}

// units returns the units among the prints of actions.
func (r Rules) units(out template.Output, among map[*template.Action]bool) []unit {
	var units []unit
	for _, p := range out.Prints {
		if p.Begin == p.End || p.Action.Encoding == "" || !among[p.Action] {
			continue
		}
		if u, found := r.unit(p, strings.Trim(out.Text[p.Begin:p.End], blanks+"\n")); found {
			units = append(units, u)
		}
	}
	return units
}

// unit decodes a print. One line that is a scalar, an empty structure or JSON is no unit: no part of it can leave its place.
func (r Rules) unit(p template.Print, text string) (u unit, found bool) {
	lines := strings.Contains(text, "\n")
	block := p.Action.Encoding == template.YAML
	if !lines && (!block || !strings.HasPrefix(text, "- ") && !strings.Contains(text, ": ")) {
		return unit{}, false
	}
	u = unit{print: p, value: r.alone(text, p.Action.Margin)}
	switch u.value.(type) {
	case map[string]any:
		if block {
			u.form = entry
		}
		return u, true
	case []any:
		if block {
			u.form = item
		}
		return u, true
	default:
		return u, lines
	}
}

// alone returns the value of a printed text on its own, without the blanks in front of its further lines; nil if it is none.
func (r Rules) alone(text string, margin int) any {
	documents, err := r.Read(strings.ReplaceAll(text, "\n"+strings.Repeat(" ", margin), "\n"))
	if err != nil || len(documents) != 1 {
		return nil
	}
	return documents[0]
}

// replaceUnits returns a rendered text with a token in place of each unit. The number of its mark is the index of the unit.
func replaceUnits(out template.Output, units []unit) string {
	var text strings.Builder
	written := 0
	for i, u := range units {
		begin, end := u.print.Begin, u.print.End
		printed := out.Text[begin:end]
		begin += len(printed) - len(strings.TrimLeft(printed, blanks+"\n"))
		end -= len(printed) - len(strings.TrimRight(printed, blanks+"\n"))
		text.WriteString(out.Text[written:begin])
		text.WriteString(u.form.token(markOf(i)))
		written = end
	}
	text.WriteString(out.Text[written:])
	return text.String()
}

// hasDisplacedUnits reports whether units that the actions print are not whole at their places, or make a text unreadable. err is the error
// of reading the original.
func (r Rules) hasDisplacedUnits(out template.Output, original []any, err error, among map[*template.Action]bool, units []unit) bool {
	units = slices.DeleteFunc(slices.Clone(units), func(u unit) bool { return !among[u.print.Action] })
	if len(units) == 0 {
		return false
	}
	reduced, reducedErr := r.Read(replaceUnits(out, units))
	if err != nil || reducedErr != nil {
		return (err == nil) != (reducedErr == nil)
	}
	w := &wholeness{units: units}
	return !w.items(original, reduced)
}

// wholeness compares a text with the text that has tokens in place of the units: both are the same but for the units, each of which is where its
// token is.
type wholeness struct{ units []unit }

func (w *wholeness) value(original, reduced any) bool {
	switch reduced := reduced.(type) {
	case map[string]any:
		fields, ok := original.(map[string]any)
		return ok && w.fields(fields, reduced)
	case []any:
		items, ok := original.([]any)
		return ok && w.items(items, reduced)
	case string:
		return w.text(original, reduced)
	default:
		return original == reduced
	}
}

// fields compares maps. The entries of a unit are all in the map that has the entry of its token.
func (w *wholeness) fields(original, reduced map[string]any) bool {
	size := 0
	for key, value := range reduced {
		if !strings.ContainsRune(key, mark) {
			if field, exists := original[key]; !exists || !w.value(field, value) {
				return false
			}
			size++
			continue
		}
		entries, ok := w.unit(key, entry).(map[string]any)
		if text, isText := value.(string); !ok || !isText || !strings.HasPrefix(text, key) {
			return false
		}
		for key, value := range entries {
			if field, exists := original[key]; !exists || !sameShape(field, value) {
				return false
			}
		}
		size += len(entries)
	}
	return size == len(original)
}

// items compares lists. The items of a unit are where the item of its token is.
func (w *wholeness) items(original, reduced []any) bool {
	for _, value := range reduced {
		text, _ := value.(string)
		items, isList := w.unit(text, item).([]any)
		if !isList {
			if len(original) == 0 || !w.value(original[0], value) {
				return false
			}
			original = original[1:]
			continue
		}
		if len(items) > len(original) || !sameShape(original[:len(items)], items) {
			return false
		}
		original = original[len(items):]
	}
	return len(original) == 0
}

// text compares a value with a text, which may hold tokens: they and what they replace are part of one text, or the whole value.
func (w *wholeness) text(original any, reduced string) bool {
	switch {
	case !strings.ContainsRune(reduced, mark):
		return original == any(reduced)
	case isScalar(original):
		return true
	default:
		return sameShape(original, w.unit(reduced, scalar))
	}
}

// unit returns the value of the unit whose token a text is; nil if it is none of that form.
func (w *wholeness) unit(text string, f form) any {
	if before, id, after := cutAtMark(text); id >= 0 && id < len(w.units) && before == "" && after == "" && w.units[id].form == f {
		return w.units[id].value
	}
	return nil
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	default:
		return true
	}
}

// sameShape reports whether values have the same lists, maps and keys.
func sameShape(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && sameKeys(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameShape)
	default:
		return isScalar(b)
	}
}

func sameKeys(a, b map[string]any) bool {
	for key, value := range a {
		if other, exists := b[key]; !exists || !sameShape(value, other) {
			return false
		}
	}
	return len(a) == len(b)
}
