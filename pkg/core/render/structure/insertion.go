package structure

import (
	"maps"
	"strings"

	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

// InsertedParameters returns those of the parameters whose values are lists or maps, or parts of such, where an action prints one of them
// alone, and does not encode it. It compares the text with one that has tokens in place of these prints. It may miss parameters: it returns
// none for a text that cannot be read either way, and distinguishes parameters only where one of them alone explains a difference.
func (r Rules) InsertedParameters(out template.Output, parameters map[string]bool) map[string]bool {
	i := &insertion{found: map[string]bool{}}
	for _, p := range out.Prints {
		if text := out.Text[p.Begin:p.End]; isInsert(p.Action, parameters) && !isBlank(text) {
			i.units = append(i.units, r.insert(p, strings.Trim(text, blanks+"\n"), blanksBefore(out.Text[:p.Begin])))
		}
	}
	if len(i.units) == 0 || strings.Contains(out.Text, "<<") { // a merged map may differ because of a print elsewhere
		return nil
	}
	original, err := r.Read(out.Text)
	if err != nil {
		return nil
	}
	reduced, err := r.Read(replaceUnits(out, i.units))
	if err != nil || len(reduced) != len(original) {
		return nil
	}
	seen := map[int]bool{}
	if collect(reduced, seen); len(seen) < len(i.units) { // the effect of a print in a comment is elsewhere
		return nil
	}
	i.items(original, reduced)
	return i.found
}

// isInsert reports whether an action prints one of the parameters, and nothing else, as it is.
func isInsert(a *template.Action, parameters map[string]bool) bool {
	return !a.AnyParameter && len(a.Parameters) == 1 && parameters[a.Parameters[0]] && a.Encoding == ""
}

// insert returns the unit of a print that is not encoded, and may have been indented by hand.
func (r Rules) insert(p template.Print, text string, margin int) unit {
	u := unit{print: p}
	block := !strings.ContainsAny(text[:1], "[{")
	if lines := strings.Contains(text, "\n"); lines || block && strings.ContainsAny(text, ":-") {
		u.value = r.alone(text, margin)
	}
	switch u.value.(type) {
	case map[string]any:
		if block {
			u.form = entry
		}
	case []any:
		if block {
			u.form = item
		}
	}
	return u
}

// blanksBefore returns the number of blanks at the end of a text.
func blanksBefore(text string) int { return len(text) - len(strings.TrimRight(text, " ")) }

// insertion finds the parameters because of which values differ.
type insertion struct {
	wholeness
	found map[string]bool
}

func (i *insertion) value(original, reduced any) {
	switch reduced := reduced.(type) {
	case map[string]any:
		fields, _ := original.(map[string]any)
		i.fields(fields, reduced)
	case []any:
		items, _ := original.([]any)
		i.items(items, reduced)
	default:
		if !isScalar(original) {
			i.blame(reduced)
		}
	}
}

// fields compares maps.
func (i *insertion) fields(original, reduced map[string]any) {
	size := 0
	for key, value := range reduced {
		if entries, ok := i.unit(key, entry).(map[string]any); ok {
			if size += len(entries); hasKeys(original, entries) {
				i.note(key)
			}
			continue
		}
		size++
		if field, exists := original[key]; exists {
			i.value(field, value)
		}
	}
	if size != len(original) {
		i.blame(reduced)
	}
}

func hasKeys(fields, keys map[string]any) bool {
	for key := range keys {
		if _, exists := fields[key]; !exists {
			return false
		}
	}
	return true
}

// items compares lists.
func (i *insertion) items(original, reduced []any) {
	size := 0
	for _, value := range reduced {
		text, _ := value.(string)
		if items, ok := i.unit(text, item).([]any); ok {
			if size += len(items); size <= len(original) {
				i.note(text)
			}
			continue
		}
		if size < len(original) {
			i.value(original[size], value)
		}
		size++
	}
	if size != len(original) {
		i.blame(reduced)
	}
}

// note notes the parameter of a token.
func (i *insertion) note(token string) {
	_, id, _ := cutAtMark(token)
	i.found[i.units[id].print.Action.Parameters[0]] = true
}

// blame notes the parameter of the tokens in a value, if they are all of one. A token that is no scalar may itself be the difference.
func (i *insertion) blame(value any) {
	tokens, parameters := map[int]bool{}, map[string]bool{}
	collect(value, tokens)
	for id := range tokens {
		if id >= len(i.units) || i.units[id].form != scalar {
			return
		}
		parameters[i.units[id].print.Action.Parameters[0]] = true
	}
	if len(parameters) == 1 {
		maps.Copy(i.found, parameters)
	}
}

// collect adds the numbers of the tokens in a value.
func collect(value any, to map[int]bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			collect(key, to)
			collect(item, to)
		}
	case []any:
		for _, item := range v {
			collect(item, to)
		}
	case string:
		for _, id, rest := cutAtMark(v); id >= 0; _, id, rest = cutAtMark(rest) {
			to[id] = true
		}
	}
}
