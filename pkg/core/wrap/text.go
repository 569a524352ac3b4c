package wrap

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// valuesText returns the template of the values of a package: nested maps, with those that are set in their order, and then those that parameters set, in
// the order of the choices.
func valuesText(chosen []value, set *yaml.Node) string {
	var w valuesWriter
	w.writeMap(set, chosen, 0)
	return w.String()
}

// valuesWriter writes a template that renders values. Only parameters are executed in it: a text of a value stays that text.
type valuesWriter struct{ strings.Builder }

// writeMap writes the entries of a map at a depth, with the chosen values below it.
func (w *valuesWriter) writeMap(set *yaml.Node, chosen []value, depth int) {
	keys, nodes := keysOf(set)
	below := map[string][]value{}
	for _, v := range chosen {
		key := v.Path[depth]
		if _, known := nodes[key]; !known && below[key] == nil {
			keys = append(keys, key)
		}
		below[key] = append(below[key], v)
	}
	for _, key := range keys {
		inside, node, named := below[key], nodes[key], indent(depth)+quoteKey(key)
		switch {
		case len(inside) > 0 && len(inside[0].Path) == depth+1:
			w.WriteString(inside[0].entry(named) + "\n")
		case len(inside) > 0:
			w.WriteString(mapKey(named, node, inside, depth+1) + "\n")
			w.writeMap(node, inside, depth+1)
		default:
			w.WriteString(named + ":")
			w.writeNode(node, depth)
		}
	}
}

// mapKey returns the key of a map with chosen values below it, at a depth. Without content, it would be null: if all that it contains may be omitted, the map is
// empty if the package sets it, and is omitted, too, if it does not.
func mapKey(key string, set *yaml.Node, below []value, depth int) string {
	if hasContent(set, below, depth) {
		return key + ":"
	}
	condition := "or"
	for _, v := range below {
		condition += " .Params." + v.Parameter
	}
	if set != nil {
		return key + ":{{ if not (" + condition + ") }} {}{{ end }}"
	}
	return "{{ if " + condition + " }}" + key + ":{{ end }}"
}

// hasContent reports whether a map contains something, whichever parameters have a value: entries that are set, or chosen values at a depth or below it that are
// not omitted.
func hasContent(set *yaml.Node, chosen []value, depth int) bool {
	if set != nil && len(set.Content) > 0 {
		return true
	}
	below := map[string][]value{}
	for _, v := range chosen {
		below[v.Path[depth]] = append(below[v.Path[depth]], v)
	}
	for _, inside := range below {
		isLeaf := len(inside[0].Path) == depth+1
		if isLeaf && !inside[0].isOmitted() || !isLeaf && hasContent(nil, inside, depth+1) {
			return true
		}
	}
	return false
}

// writeNode writes a value after its key, or after the dash of a list.
func (w *valuesWriter) writeNode(node *yaml.Node, depth int) {
	switch {
	case node.Kind == yaml.MappingNode && len(node.Content) == 0:
		w.WriteString(" {}\n")
	case node.Kind == yaml.MappingNode:
		w.WriteString("\n")
		w.writeMap(node, nil, depth+1)
	case node.Kind == yaml.SequenceNode && len(node.Content) == 0:
		w.WriteString(" []\n")
	case node.Kind == yaml.SequenceNode:
		w.WriteString("\n")
		w.writeList(node, depth+1)
	case node.ShortTag() != "!!str":
		w.WriteString(" " + node.Value + "\n")
	default:
		w.WriteString(" " + quoteText(node.Value, indent(depth+1)) + "\n")
	}
}

// writeList writes the elements of a list.
func (w *valuesWriter) writeList(list *yaml.Node, depth int) {
	for _, element := range list.Content {
		w.WriteString(indent(depth) + "-")
		if element.Kind == yaml.ScalarNode || len(element.Content) == 0 {
			w.writeNode(element, depth)
			continue
		}
		var inner valuesWriter
		inner.writeNode(element, depth)
		w.WriteString(" " + strings.TrimLeft(inner.String(), " \n"))
	}
}

func indent(depth int) string { return strings.Repeat("  ", depth) }

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// quoteKey returns a key of a map in a template: braces of a template cannot remain.
func quoteKey(key string) string {
	if plainKey.MatchString(key) && !isReserved(key) {
		return key
	}
	return quote(key)
}

// isReserved reports whether some parser of YAML reads a text without quotes as something else.
func isReserved(text string) bool {
	return slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(text))
}

func quote(text string) string {
	return strings.NewReplacer("{{", `{\u007b`, "}}", `}\u007d`).Replace(fmt.Sprintf("%q", text))
}

var plainText = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*$`)

// quoteText returns a text in a template: without quotes, as a block with that indentation, or with quotes, as it is easier to read.
func quoteText(text, indentation string) string {
	switch {
	case plainText.MatchString(text) && !isReserved(text):
		return text
	case !isBlock(text):
		return quote(text)
	}
	style := "|"
	body, ended := strings.CutSuffix(text, "\n")
	if !ended {
		style = "|-"
	}
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = indentation + line
		}
	}
	return style + "\n" + strings.Join(lines, "\n")
}

// isBlock reports whether a text can be a block: several lines without anything that YAML or a template would treat differently there.
func isBlock(text string) bool {
	body := strings.TrimSuffix(text, "\n")
	if !strings.Contains(body, "\n") || strings.HasSuffix(body, "\n") || strings.HasPrefix(body, "\n") || strings.HasPrefix(body, " ") {
		return false
	}
	if strings.Contains(text, "{{") || strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(body, "\n"), func(line string) bool { return line != "" && strings.TrimSpace(line) == "" })
}
