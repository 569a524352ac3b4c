package render

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var update = flag.Bool("update", false, "update the golden file")

// sample is a place in a template, or a YAML construct.
type sample struct{ name, text string }

// everyPlace are the kinds of places where a template inserts a value: <> is the value.
var everyPlace = []sample{
	{"plain", "data:\n  a: <>\n  b: c\n"},
	{"plain, part", "data:\n  a: x<>y\n  b: c\n"},
	{"plain, over lines", "data:\n  a: x\n    <>\n  b: c\n"},
	{"item", "data:\n- <>\n- b\n"},
	{"item, after a colon", "data:\n- a:<>\n- b\n"},
	{"double-quoted", "data:\n  a: \"<>\"\n  b: c\n"},
	{"single-quoted", "data:\n  a: '<>'\n  b: c\n"},
	{"literal block", "data:\n  a: |\n    <>\n  b: c\n"},
	{"folded block", "data:\n  a: >\n    x <> y\n  b: c\n"},
	{"literal block, after indent", "data:\n  a: |\n{{ .Params.A | indent 4 }}\n  b: c\n"},
	{"folded block, after nindent", "data:\n  a: >-{{ .Params.A | nindent 4 }}\n  b: c\n"},
	{"literal block, part", "data:\n  a: |\n    x=<>;\n    y\n  b: c\n"},
	{"key", "data:\n  <>: a\n  b: c\n"},
	{"double-quoted key", "data:\n  \"<>\": a\n  b: c\n"},
	{"comment", "# <>\ndata:\n  b: c\n"},
	{"comment after a value", "data:\n  b: c # <>\n  d: e\n"},
	{"flow list", "data: [<>, b]\n"},
	{"flow map", "data: {a: <>, b: c}\n"},
	{"flow map, double-quoted", "data: {a: \"<>\", b: c}\n"},
	{"flow map, single-quoted", "data: {a: '<>', b: c}\n"},
	{"flow map, key", "data: { <>: a, b: c}\n"},
	{"anchor's value", "data:\n  a: &a <>\n  b: *a\n"},
	{"anchor elsewhere", "x: &a y\ndata:\n  a: <>\n  b: *a\n"},
	{"item of a list of objects", "---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: b}\n  data:\n    a: <>\n"},
	{"kind", "---\napiVersion: v1\nkind: <>\nmetadata: {name: a}\n"},
}

// everyFilter are the ways in which a template prints a value that accept any text.
var everyFilter = []sample{
	{"quote", "data:\n  a: {{ .Params.A | quote }}\n"},
	{"toYaml", "data:\n  a: {{ .Params.A | toYaml }}\n"},
	{"toYaml in a flow list", "data: [{{ .Params.A | toYaml }}, b]\n"},
	{"toJson", "data:\n  a: {{ .Params.A | toJson }}\n"},
	{"toJson of a map", "data: {{ dict \"a\" .Params.A | toJson }}\n"},
	{"toYaml of a map, indented", "data: {{ dict \"a\" .Params.A | toYaml | nindent 2 }}\n"},
	{"quote, as a key", "data:\n  {{ .Params.A | quote }}: a\n"},
}

// everyConstruct are values, each with a construct of YAML 1.1 or 1.2.
var everyConstruct = []sample{
	{"text", "x"},
	{"blank", " "},
	{"key", "x: y"},
	{"key on a further line", "x\n  b2: y"},
	{"key of the object", "x\nspec: y"},
	{"key without a blank", "x:"},
	{"complex key", "? x"},
	{"merge key", "<<"},
	{"duplicate key", "b"},
	{"document", "x\n---\ny: z"},
	{"document end", "x\n...\ny: z"},
	{"directive", "%YAML 1.1"},
	{"list item", "- x"},
	{"list", "\n  - x"},
	{"flow list", "[x]"},
	{"flow map", "{x: y}"},
	{"begin of a flow list", "["},
	{"begin of a flow map", "{"},
	{"end of a flow list", "x]"},
	{"end of a flow map", "x}, y: {z: a"},
	{"flow separator", "x, y"},
	{"flow pair", "x, y: z"},
	{"anchor", "&x y"},
	{"alias", "*a"},
	{"tag", "!!binary x"},
	{"local tag", "!x"},
	{"literal", "|"},
	{"literal with indentation", "|1"},
	{"literal with text", "|\n      x"},
	{"folded", ">-"},
	{"comment", "x # y"},
	{"comment alone", "# y"},
	{"end of a comment", "x\ndata2: y\n# z"},
	{"double quote", `"`},
	{"single quote", `'`},
	{"end of double quotes", `x", "y": "z`},
	{"end of single quotes", `x', 'y': 'z`},
	{"end of double quotes with a key", "x\"\n  y: \"z"},
	{"escape", `\n\x22`},
	{"escape at the end", `x\`},
	{"null", "~"},
	{"boolean", "yes"},
	{"octal", "0o17"},
	{"sexagesimal", "12:30:45"},
	{"infinity", ".inf"},
	{"timestamp", "2026-11-23"},
	{"reserved character", "@x"},
	{"reserved backtick", "`x`"},
	{"line feed", "x\n"},
	{"carriage return", "x\r  b2: y"},
	{"carriage return, line feed", "x\r\n  b2: y"},
	{"next line", "x\u0085  b2: y"},
	{"line separator", "x\u2028  b2: y"},
	{"paragraph separator", "x\u2029  b2: y"},
	{"tab", "\tx:\ty"},
	{"byte order mark", "\ufeffx: y"},
	{"nul", "x\x00y"},
	{"deeper indentation", "      x"},
	{"a mark of the check itself", "\U0010FFFD\U00100000\U00100000"},
}

// TestEveryConstructAtEveryPlace tries each construct at each place: it is rejected, or the rendered objects have the same structure as with
// a plain text. The golden file shows which: x for rejected, ~ for accepted, and = for accepted and unchanged. Values of filters are accepted and
// unchanged, except for the marks of the check itself.
func TestEveryConstructAtEveryPlace(t *testing.T) {
	var table strings.Builder
	for _, place := range append(everyPlace, everyFilter...) {
		template := strings.ReplaceAll(place.text, "<>", "{{ .Params.A }}")
		fmt.Fprintf(&table, "%s\n", place.name)
		results := map[string][]string{}
		for _, construct := range everyConstruct {
			result := tryValue(t, template, construct.text)
			results[result] = append(results[result], construct.name)
			if slices.Contains(everyFilter, place) && result != "=" && construct.name != "a mark of the check itself" {
				t.Errorf("%s: %s is %s, want =", place.name, construct.name, result)
			}
		}
		for _, result := range []string{"=", "~", "x"} {
			if len(results[result]) > 0 {
				fmt.Fprintf(&table, "  %s  %s\n", result, strings.Join(results[result], "; "))
			}
		}
	}
	const golden = "testdata/matrix.golden"
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

// tryValue renders a template with a value.
func tryValue(t *testing.T, template, value string) string {
	t.Helper()
	const harmless = "harmless"
	with := func(value string) ([]*unstructured.Unstructured, error) {
		c := guardedContext(template, map[string]string{"A": value})
		for i := range c.Version.Parameters {
			if p := &c.Version.Parameters[i]; p.Name == "A" {
				p.Default = new("default")
			}
		}
		return Objects(c, "t")
	}
	expected, err := with(harmless)
	if strings.TrimSpace(value) == "" && strings.Contains(template, "a:{{") {
		expected, err = with("") // a blank value changes the structure as none does
	}
	if errors.As(err, new(*StructureError)) {
		return "x" // the place accepts nothing
	}
	objects, tryErr := with(value)
	switch changes := (*StructureError)(nil); {
	case errors.As(tryErr, &changes):
		return "x"
	case tryErr != nil && strings.TrimSpace(value) == "":
		return "x"
	case tryErr != nil:
		t.Errorf("%q in\n%s%v, want a *StructureError", value, template, tryErr)
		return "x"
	case err != nil:
		t.Errorf("%q in\n%s: rendered, but not with a harmless value: %v", value, template, err)
		return "~"
	}
	if len(expected) != len(objects) {
		t.Errorf("%q in\n%s%d objects, want %d", value, template, len(objects), len(expected))
		return "~"
	}
	unchanged := true
	for i := range objects {
		if diff := cmp.Diff(skeleton(expected[i].Object), skeleton(objects[i].Object)); diff != "" {
			t.Errorf("%q in\n%s(-want +got)\n%s", value, template, diff)
		}
		unchanged = unchanged && reflect.DeepEqual(replaceText(expected[i].Object, harmless, value), objects[i].Object)
	}
	if unchanged {
		return "="
	}
	return "~"
}

// replaceText returns a value with another text in its keys and texts.
func replaceText(value any, text, by string) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(v, text, by)
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = replaceText(v[i], text, by)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for key := range v {
			all[strings.ReplaceAll(key, text, by)] = replaceText(v[key], text, by)
		}
		return all
	default:
		return v
	}
}
