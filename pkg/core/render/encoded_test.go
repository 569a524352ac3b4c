package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
)

// encodedPlace is a place where a template inserts a map or a list as YAML or JSON.
type encodedPlace struct {
	name, text string
	// path leads to the node that the structure is, or belongs to; part states which.
	path []any
	part part
}

// part is what a structure is of a node.
type part int

const (
	all part = iota
	entries
	items
	ofText
	ofComment
)

// encodedPlaces insert .Params.X.
var encodedPlaces = []encodedPlace{
	{"value, nindent", "data: {{ toYaml .Params.X | nindent 2 }}\nx: y\n", []any{"data"}, all},
	{"value, indent", "data:\n{{ toYaml .Params.X | indent 2 }}\nx: y\n", []any{"data"}, all},
	{"value, trim", "data:\n  {{ toYaml .Params.X | nindent 2 | trim }}\nx: y\n", []any{"data"}, all},
	{"value, two indents", "data:\n  a:\n    {{ toYaml .Params.X | indent 2 | trim | nindent 2 | trim }}\nx: y\n", []any{"data", "a"}, all},
	{"value, not indented", "data:\n  a:\n    {{ toYaml .Params.X }}\n  b: c\n", []any{"data", "a"}, all},
	{"value, pretty JSON", "data: {{ toPrettyJson .Params.X | indent 2 | trim }}\nx: y\n", []any{"data"}, all},
	{"value, JSON", "data:\n  a: {{ toJson .Params.X }}\n", []any{"data", "a"}, all},
	{"value of a flow map", "data: {a: {{ toPrettyJson .Params.X }}, b: c}\n", []any{"data", "a"}, all},
	{"item, nindent", "data:\n- a\n- {{ toYaml .Params.X | nindent 2 }}\n- b\n", []any{"data", 1}, all},
	{"item, trim", "data:\n- a\n- {{ toYaml .Params.X | nindent 2 | trim }}\n- b\n", []any{"data", 1}, all},
	{"item, not indented", "data:\n- a\n- {{ toYaml .Params.X }}\n- b\n", []any{"data", 1}, all},
	{"anchored", "data: &a {{ toYaml .Params.X | nindent 2 }}\n", []any{"data"}, all},
	{"entries, indent", "data:\n  before: a\n{{ toYaml .Params.X | indent 2 }}\n  after: b\n", []any{"data"}, entries},
	{"entries, not indented", "data:\n  before: a\n  {{ toYaml .Params.X }}\n  after: b\n", []any{"data"}, entries},
	{"entries of the object", "data: {}\n{{ toYaml .Params.X }}\n", nil, entries},
	{"items, not indented", "data:\n- before\n{{ toYaml .Params.X }}\n- after\n", []any{"data"}, items},
	{"items, indent", "data:\n  - before\n{{ toYaml .Params.X | indent 2 }}\n  - after\n", []any{"data"}, items},
	{"items, in part", "data:\n  - before\n  {{ toYaml .Params.X }}\n  - after\n", []any{"data"}, items},
	{"block, nindent", "data:\n  a: |\n    x{{ toYaml .Params.X | nindent 4 }}\n  b: c\n", []any{"data", "a"}, ofText},
	{"block, indent", "data:\n  a: |-\n{{ toYaml .Params.X | indent 4 }}\n  b: c\n", []any{"data", "a"}, ofText},
	{"block, not indented", "data:\n  a: |\n    {{ toYaml .Params.X }}\n  b: c\n", []any{"data", "a"}, ofText},
	{"block at the end, not indented", "data:\n  a: |\n    {{ toYaml .Params.X }}\n", []any{"data", "a"}, ofText},
	{"block of an item, not indented", "data:\n- |\n  {{ toYaml .Params.X }}\n", []any{"data", 0}, ofText},
	{"block of the object, not indented", "x: |\n  {{ toYaml .Params.X }}\n", []any{"x"}, ofText},
	{"block, pretty JSON", "data:\n  a: |\n    {{ toPrettyJson .Params.X | nindent 4 }}\n  b: c\n", []any{"data", "a"}, ofText},
	{"block, pretty JSON not indented", "data:\n  a: |\n    {{ toPrettyJson .Params.X }}\n  b: c\n", []any{"data", "a"}, ofText},
	{"folded block", "data:\n  a: >\n    x{{ toYaml .Params.X | nindent 4 }}\n  b: c\n", []any{"data", "a"}, ofText},
	{"double-quoted", "data:\n  a: \"{{ toYaml .Params.X | nindent 4 }}\"\n  b: c\n", []any{"data", "a"}, ofText},
	{"single-quoted", "data:\n  a: '{{ toYaml .Params.X }}'\n  b: c\n", []any{"data", "a"}, ofText},
	{"single-quoted, JSON", "data:\n  a: '{{ toPrettyJson .Params.X }}'\n  b: c\n", []any{"data", "a"}, ofText},
	{"plain, part", "data:\n  a: x{{ toYaml .Params.X | nindent 4 }}\n  b: c\n", []any{"data", "a"}, ofText},
	{"comment", "# {{ toYaml .Params.X }}\ndata: a\n", nil, ofComment},
	{"comment at the end of a line", "data: a # {{ toYaml .Params.X }}\n", nil, ofComment},
	{"comment, pretty JSON", "data: a # {{ toPrettyJson .Params.X }}\n", nil, ofComment},
}

// encodedValues are maps and lists.
var encodedValues = []string{
	"{}", "{a: b}", "{a: b, c: d}", "{a: {c: d}}", "{a: {x: y, c: d}}", "{a: [b]}", "{a: [b, c]}", "{a: [{b: c, d: e}]}", "{a: ~}", "{a: ~, b: ~}",
	"{a: {}, b: []}", "{a: {b: {c: [d]}}}", "{x: y, rules: [{verbs: ['*']}]}", "{before: x}", "{after: x, b: c}", "{kind: Secret}", "{data: x}",
	"{metadata: {name: b}}", "{'x: y': 'a: b'}", "{\"a\\nb: c\": d}", "{'- a': '? b', '#': '# x'}", "{'<<': {a: b}}", "{'---': '...', a: '---'}",
	`{"a": "x\", b: \"y"}`, "{'': ''}", "{on: on, 'yes': 'no'}", "{" + strings.Repeat("k", 140) + ": v, a: b}",
	"[]", "[a]", "[a, b]", "[~]", "[~, ~]", "[{a: b}]", "[{a: b, c: d}]", "[[a], [b]]", "[[a, b]]", "[{}, []]", "['- a', 'b: c']", "['# a', '---']",
}

// TestEveryStructureAtEveryPlace tries each map and list at each place: it is rejected, or the rendered objects are those with a small one, except
// for the part that it is. The golden file shows which: x for rejected, and = for accepted.
func TestEveryStructureAtEveryPlace(t *testing.T) {
	var table strings.Builder
	for _, place := range encodedPlaces {
		fmt.Fprintf(&table, "%s\n", place.name)
		results := map[bool][]string{}
		for _, value := range encodedValues {
			accepted := place.accepts(t, value)
			results[accepted] = append(results[accepted], value[:min(len(value), 40)])
		}
		for _, accepted := range []bool{true, false} {
			if len(results[accepted]) > 0 {
				fmt.Fprintf(&table, "  %s  %s\n", map[bool]string{true: "=", false: "x"}[accepted], strings.Join(results[accepted], "; "))
			}
		}
	}
	const golden = "testdata/encoded.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(table.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), table.String()); diff != "" || err != nil {
		t.Errorf("%v (-want +got; -update accepts it)\n%s", err, diff)
	}
}

// FuzzStructures checks that a map or a list that is accepted changes nothing but the part that it is.
func FuzzStructures(f *testing.F) {
	for i, value := range encodedValues {
		f.Add(uint8(i), value)
		f.Add(uint8(i+len(encodedValues)), value)
	}
	f.Fuzz(func(t *testing.T, place uint8, value string) {
		encodedPlaces[int(place)%len(encodedPlaces)].accepts(t, value)
	})
}

// accepts reports whether a place accepts a value, and checks what is rendered then.
func (p encodedPlace) accepts(t *testing.T, value string) bool {
	t.Helper()
	decoded, err := decodedStructure(value)
	if err != nil {
		return false
	}
	harmless := any(map[string]any{"harmless": nil})
	if _, isList := decoded.([]any); isList {
		harmless = []any{"harmless"}
	}
	want, err := p.render(harmless)
	if err != nil {
		return false // the place accepts nothing of this kind
	}
	got, err := p.render(decoded)
	if err != nil {
		if isEmpty(decoded) || errors.As(err, new(*StructureError)) {
			return false
		}
		t.Errorf("%s in\n%s%v, want a *StructureError", value, p.text, err)
		return false
	}
	if len(want) != len(got) {
		t.Errorf("%s in\n%s%d objects, want %d", value, p.text, len(got), len(want))
		return false
	}
	for i := range want {
		if diff := cmp.Diff(p.rest(t, want[i], harmless), p.rest(t, got[i], decoded)); diff != "" {
			t.Errorf("%s in\n%s(-want +got)\n%s", value, p.text, diff)
		}
	}
	return true
}

// decodedStructure decodes a map or a list to the values of JSON.
func decodedStructure(text string) (any, error) {
	decoded, err := parameter.Decode(kudo.MapType, text)
	if err != nil {
		if decoded, err = parameter.Decode(kudo.ArrayType, text); err != nil {
			return nil, err
		}
	}
	return decoded, nil
}

// render renders the template of a place with a value.
func (p encodedPlace) render(value any) ([]any, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	name := "LIST"
	if _, isMap := value.(map[string]any); isMap {
		name = "MAP"
	}
	c := guardedContext(strings.ReplaceAll(p.text, ".X", "."+name), map[string]string{name: string(encoded)})
	for i := range c.Version.Parameters {
		if p := &c.Version.Parameters[i]; p.Name == name {
			p.Default = new(map[string]string{"MAP": "{z: z}", "LIST": "[z]"}[name])
		}
	}
	objects, err := Objects(c, "t")
	var all []any
	for _, o := range objects {
		all = append(all, o.Object)
	}
	return all, err
}

// rest returns an object without the value that a place inserts, and checks that the value is there.
func (p encodedPlace) rest(t *testing.T, object, value any) any {
	t.Helper()
	if p.part == ofComment {
		return object
	}
	return replacedAt(object, p.path, func(node any) any {
		whole, _ := structureOf(value).(map[string]any)
		switch p.part {
		case ofText:
			if _, isText := node.(string); !isText {
				t.Errorf("%v in\n%s is %v, want a text", value, p.text, node)
			}
			return "text"
		case entries:
			rest := maps.Clone(node.(map[string]any))
			for key, item := range whole {
				if found, exists := rest[key]; !exists || !cmp.Equal(structureOf(found), item) {
					t.Errorf("%v in\n%s: %q is %v", value, p.text, key, rest[key])
				}
				delete(rest, key)
			}
			return rest
		case items:
			list, _ := structureOf(value).([]any)
			found := node.([]any)
			if len(found) < 1+len(list) || !cmp.Equal(structureOf(found[1:1+len(list)]), any(list)) {
				t.Errorf("%v in\n%s: got %v", value, p.text, found)
				return found
			}
			return slices.Delete(slices.Clone(found), 1, 1+len(list))
		default:
			if diff := cmp.Diff(structureOf(value), structureOf(node)); diff != "" {
				t.Errorf("%v in\n%s(-want +got)\n%s", value, p.text, diff)
			}
			return "value"
		}
	})
}

// structureOf returns a value with its keys, and without its scalars.
func structureOf(value any) any {
	switch v := value.(type) {
	case map[string]any:
		all := make(map[string]any, len(v))
		for key := range v {
			all[key] = structureOf(v[key])
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = structureOf(v[i])
		}
		return all
	default:
		return "scalar"
	}
}

// replacedAt returns a value with another node at a path.
func replacedAt(value any, path []any, change func(any) any) any {
	if len(path) == 0 {
		return change(value)
	}
	switch key := path[0].(type) {
	case string:
		fields := maps.Clone(value.(map[string]any))
		fields[key] = replacedAt(fields[key], path[1:], change)
		return fields
	case int:
		list := slices.Clone(value.([]any))
		list[key] = replacedAt(list[key], path[1:], change)
		return list
	default:
		panic(key)
	}
}
