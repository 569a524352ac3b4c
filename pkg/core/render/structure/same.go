package structure

import (
	"strings"

	"sigs.k8s.io/yaml"
)

// comparison compares the documents of a text with those of its twin.
type comparison struct {
	twin *twin
	// names is true if no mark may be in names and namespaces of objects.
	names bool
	// seen are the pieces that are inside a scalar.
	seen []bool
}

// same reports whether documents of a text and of its twin have the same structure.
func (r Rules) same(t *twin, original, marked []any) bool {
	if len(original) != len(marked) {
		return false
	}
	c := &comparison{twin: t, names: r.Names, seen: make([]bool, len(t.pieces))}
	for i := range original {
		compare := c.object
		switch {
		case r.Values:
			compare = c.values
		case r.AnyType:
			compare = c.value
		}
		if !compare(original[i], marked[i]) {
			return false
		}
	}
	return c.together()
}

// together reports whether the pieces of each print are all in scalars, or all in comments.
func (c *comparison) together() bool {
	for i, piece := range c.twin.pieces {
		if i > 0 && c.twin.pieces[i-1].print == piece.print && c.seen[i-1] != c.seen[i] {
			return false
		}
	}
	return true
}

// object compares objects, whose type nothing but the template determines: no mark is in apiVersion or kind, unless the whole field comes
// from a structure that the template encodes. An object may be a list of objects.
func (c *comparison) object(original, marked any) bool {
	if !c.value(original, marked) {
		return false
	}
	fields, isMap := marked.(map[string]any)
	if !isMap {
		return true
	}
	for key, value := range fields {
		if !c.isAllowedType(key, value) {
			return false
		}
	}
	if c.names && !(plainKeys(fields) && hasPlainName(fields["metadata"])) {
		return false
	}
	before, _ := original.(map[string]any)["items"].([]any)
	items, _ := fields["items"].([]any)
	for i := range min(len(items), len(before)) {
		if !c.object(before[i], items[i]) {
			return false
		}
	}
	return true
}

// hasPlainName reports whether no mark is in the name and the namespace in the metadata of an object, or in a key that could be theirs.
func hasPlainName(metadata any) bool {
	fields, _ := metadata.(map[string]any)
	return plainKeys(fields) && isUnmarked(fields["name"]) && isUnmarked(fields["namespace"])
}

// plainKeys reports whether no key holds a mark.
func plainKeys(fields map[string]any) bool {
	for key := range fields {
		if strings.ContainsRune(key, mark) {
			return false
		}
	}
	return true
}

// isAllowedType reports whether a field of an object is not its type, or an allowed one.
func (c *comparison) isAllowedType(key string, value any) bool {
	name, pieces := c.strip(key)
	if name = strings.TrimRight(name, blanks); name != "apiVersion" && name != "kind" {
		return true
	}
	text, _ := value.(string)
	_, inside := c.strip(text)
	if c.names && len(inside) > 0 {
		return false
	}
	return (len(pieces) > 0 || len(inside) == 0) && c.isEncoded(pieces) && c.isEncoded(inside)
}

// isEncoded reports whether the template encodes all pieces.
func (c *comparison) isEncoded(pieces []int) bool {
	for _, id := range pieces {
		if !c.twin.pieces[id].encoded {
			return false
		}
	}
	return true
}

// values compares maps of values that are stored as text.
func (c *comparison) values(original, marked any) bool {
	before, isMap := original.(map[string]any)
	after, isMapToo := marked.(map[string]any)
	if !isMap || !isMapToo {
		return c.value(original, marked)
	}
	return c.fields(before, after, func(original, marked any) bool {
		if c.value(original, marked) {
			return true
		}
		text, _ := marked.(string)
		return c.isPrint(text) && isUnmarked(original) && !c.refers(original, text)
	})
}

// isPrint reports whether a text is exactly what one action printed.
func (c *comparison) isPrint(text string) bool {
	before, id, rest := cutAtMark(text)
	return id >= 0 && before == "" && c.complete(text) && strings.HasSuffix(text, markOf(id)) && rest != ""
}

// value compares values of any kind.
func (c *comparison) value(original, marked any) bool {
	switch original := original.(type) {
	case map[string]any:
		after, ok := marked.(map[string]any)
		return ok && c.fields(original, after, c.value)
	case []any:
		after, ok := marked.([]any)
		return ok && c.items(original, after)
	case string:
		return !strings.ContainsRune(original, mark) && c.scalar(original, marked)
	default:
		return c.scalar(original, marked)
	}
}

func (c *comparison) items(original, marked []any) bool {
	if len(original) != len(marked) {
		return false
	}
	for i := range original {
		if !c.value(original[i], marked[i]) {
			return false
		}
	}
	return true
}

// scalar reports whether a value of the twin is a scalar that holds all marks of its pieces, or no mark and is the same as in the original:
// a value that redefines an anchor changes scalars elsewhere.
func (c *comparison) scalar(original, marked any) bool {
	switch marked := marked.(type) {
	case map[string]any, []any:
		return false
	case string:
		if strings.ContainsRune(marked, mark) {
			return c.complete(marked) && !c.refers(original, marked)
		}
		return original == any(marked)
	default:
		return original == marked
	}
}

// refers reports whether a print begins with an alias or an anchor, also after a tag. If it is only a text that looks like that, such as a
// quoted one, it is the same in the original.
func (c *comparison) refers(original any, marked string) bool {
	text, _ := c.strip(marked)
	begin := strings.TrimLeft(text, blanks+breaks)
	for strings.HasPrefix(begin, "!") {
		end := strings.IndexAny(begin, blanks+breaks)
		if end < 0 {
			return false
		}
		begin = strings.TrimLeft(begin[end:], blanks+breaks)
	}
	return begin != "" && strings.Contains("*&", begin[:1]) && original != any(text)
}

// fields compares maps. A key that was printed must differ from all others: equal keys are one in the original.
func (c *comparison) fields(original, marked map[string]any, value func(original, marked any) bool) bool {
	if len(original) != len(marked) {
		return false
	}
	found := make(map[string]bool, len(marked))
	for key, after := range marked {
		name, ok := c.key(original, key)
		if !ok || found[name] || !value(original[name], after) {
			return false
		}
		found[name] = true
	}
	return true
}

// key returns the key of the original that a key of the twin is.
func (c *comparison) key(original map[string]any, key string) (name string, same bool) {
	name, pieces := c.strip(key)
	if len(pieces) > 0 {
		if _, first, _ := cutAtMark(key); strings.HasPrefix(key, string(mark)) && c.twin.pieces[first].shifted || !c.complete(key) {
			return "", false
		}
		if _, exact := original[name]; !exact {
			name = resolveKey(original, strings.TrimRight(name, blanks))
		}
	}
	_, exists := original[name]
	return name, exists && !strings.ContainsRune(name, mark)
}

// resolveKey returns the key that YAML makes of a plain scalar: yes is true, and 0x10 is 16.
func resolveKey(original map[string]any, name string) string {
	if _, exists := original[name]; exists || len(name) > 32 || strings.ContainsAny(name, ":{}[],&*#?|>!%@`\"'\n") {
		return name
	}
	encoded, err := yaml.YAMLToJSON([]byte(name + ": 0"))
	if err != nil {
		return name
	}
	var keys map[string]int
	if yaml.Unmarshal(encoded, &keys) != nil || len(keys) != 1 {
		return name
	}
	for key := range keys {
		name = key
	}
	return name
}

// complete reports whether a text of the twin holds all marks of each piece that it holds marks of, and notes these pieces.
func (c *comparison) complete(text string) bool {
	if !strings.ContainsRune(text, mark) {
		return true
	}
	counts := map[int]int{}
	for text != "" {
		rest, id, after := cutAtMark(text)
		if id < 0 && strings.ContainsRune(rest, mark) || id >= len(c.seen) {
			return false
		}
		if id >= 0 {
			counts[id]++
		}
		text = after
	}
	for id, count := range counts {
		if count != c.twin.pieces[id].marks {
			return false
		}
		c.seen[id] = true
	}
	return true
}

// strip removes the marks from a text, and returns the pieces that they belong to.
func (c *comparison) strip(text string) (stripped string, pieces []int) {
	if !strings.ContainsRune(text, mark) {
		return text, nil
	}
	var out strings.Builder
	for {
		before, id, after := cutAtMark(text)
		out.WriteString(before)
		if id < 0 || id >= len(c.seen) {
			return out.String(), pieces
		}
		pieces, text = append(pieces, id), after
	}
}

// markOf returns a mark of a piece.
func markOf(id int) string {
	return string([]rune{mark, digits + rune(id/base), digits + rune(id%base)})
}

// isUnmarked reports whether no text of a value holds a mark.
func isUnmarked(value any) bool {
	switch v := value.(type) {
	case string:
		return !strings.ContainsRune(v, mark)
	case []any:
		for _, item := range v {
			if !isUnmarked(item) {
				return false
			}
		}
	case map[string]any:
		for key, item := range v {
			if strings.ContainsRune(key, mark) || !isUnmarked(item) {
				return false
			}
		}
	}
	return true
}
