package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

// guardedContext returns a Context with a ConfigMap whose data is given, and with parameters of each kind.
func guardedContext(data string, values map[string]string) Context {
	c := newContext("t", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"+data)
	none := ""
	c.Version.Parameters = append(c.Version.Parameters,
		kudo.Parameter{Name: "A", Default: &none}, kudo.Parameter{Name: "B", Default: &none}, kudo.Parameter{Name: "ANY", Structure: new(true)},
		kudo.Parameter{Name: "MAP", Type: kudo.MapType, Default: new("{}")}, kudo.Parameter{Name: "LIST", Type: kudo.ArrayType, Default: new("[]")},
		kudo.Parameter{Name: "ITEMS", Default: new("a, b")}, kudo.Parameter{Name: "BLOCK", Default: new("x: 1\n  y: 2")})
	c.Parameters = values
	return c
}

const evil = "\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: evil}\n"

func TestAValueCannotChangeTheStructure(t *testing.T) {
	for name, test := range map[string]struct {
		data   string
		values map[string]string
	}{
		// plain
		"another document":                   {"data:\n  a: {{ .Params.A }}\n", map[string]string{"A": "100m" + evil}},
		"a document end":                     {"data:\n  a: {{ .Params.A }}\n", map[string]string{"A": "x\n...\na: b"}},
		"a key on a further line":            {"data:\n  a: {{ .Params.A }}\n", map[string]string{"A": "x\n  b: y"}},
		"a key of the object":                {"data:\n  a: {{ .Params.A }}\n", map[string]string{"A": "x\nkind: Secret"}},
		"a key below another line break":     {"data:\n  a: {{ .Params.A }}\n", map[string]string{"A": "x\u2028  b: y"}},
		"a key below a carriage return":      {"data:\n  a: {{ .Params.A }}\n", map[string]string{"A": "x\r  b: y"}},
		"a list":                             {"data:\n  a: {{ .Params.A }}\n", map[string]string{"A": "[x]"}},
		"a list in lines":                    {"data:\n  a: {{ .Params.A }}\n", map[string]string{"A": "\n  - x"}},
		"a map":                              {"data:\n  a: {{ .Params.A }}\n", map[string]string{"A": "{x: y}"}},
		"a map in lines":                     {"data:\n  a: {{ .Params.A }}\n", map[string]string{"A": "\n    x: y"}},
		"a map that does not end":            {"data:\n  a: {{ .Params.A }}\n", map[string]string{"A": "{"}},
		"a quote that does not end":          {"data:\n  a: {{ .Params.A }}\n", map[string]string{"A": `"`}},
		"an unknown alias":                   {"data:\n  a: {{ .Params.A }}\n", map[string]string{"A": "*x"}},
		"an alias of a map":                  {"x: &x {y: z}\ndata:\n  a: {{ .Params.A }}\n", map[string]string{"A": "*x"}},
		"a block that takes what follows":    {"data:\n  a: {{ .Params.A }}\n   b: c\n", map[string]string{"A": "|1"}},
		"the rest of a line as a comment":    {"data: [{{ .Params.A }}, b\n  , c]\n", map[string]string{"A": "#"}},
		"a map by a blank":                   {"data:\n- a:{{ .Params.A }}b\n", map[string]string{"A": " "}},
		"a map by a blank in front":          {"data:\n- a:{{ .Params.A }}\n", map[string]string{"A": " b"}},
		"a map by a line break":              {"data:\n- a:{{ .Params.A }}\n", map[string]string{"A": "\n    b"}},
		"a list by a line break":             {"data: {{ .Params.A }}- a\n", map[string]string{"A": "\n  "}},
		"a line break at the end":            {"data:\n  a: {{ .Params.A }}b: c\n", map[string]string{"A": "x\n  "}},
		"a line break alone":                 {"data:\n  a: {{ .Params.A }}b: c\n", map[string]string{"A": "\n  "}},
		"a deeper indentation":               {"data:\n  a:\n{{ .Params.A }}b: c\n", map[string]string{"A": "    "}},
		"a deeper indentation with a key":    {"data:\n  a:\n  {{ .Params.A }}: c\n", map[string]string{"A": "  b"}},
		"another line for a key":             {"data:\n  a:\n    {{ .Params.A }}: c\n", map[string]string{"A": "\n  b"}},
		"a line break in front of a literal": {"data:\n  a:\n    {{ .Params.A }}b: c\n", map[string]string{"A": "\n"}},
		// quoted
		"the end of a quoted text":         {"data: {a: \"{{ .Params.A }}\"}\n", map[string]string{"A": `", b: "`}},
		"the end of a single-quoted text":  {"data: {a: '{{ .Params.A }}'}\n", map[string]string{"A": `', b: '`}},
		"the end of a quoted item":         {"data: [\"{{ .Params.A }}\"]\n", map[string]string{"A": `", "`}},
		"the end of a single-quoted item":  {"data: ['{{ .Params.A }}']\n", map[string]string{"A": `', '`}},
		"a key after a quoted text":        {"data:\n  a: \"{{ .Params.A }}\"\n", map[string]string{"A": "x\"\n  b: \"y"}},
		"JSON in single quotes":            {"data: {a: '{{ toJson .Params.MAP }}'}\n", map[string]string{"MAP": `{"x": "', b: 'y"}`}},
		"a quoted text with its own quote": {"data: [\"{{ .Params.A | quote }}\"]\n", map[string]string{"A": `, `}},
		// blocks
		"the end of a block":               {"data:\n  a: |\n    {{ .Params.A }}\n", map[string]string{"A": "x\n  b: y"}},
		"the end of a block by JSON":       {"data:\n  a: |\n    {{ .Params.A }}\n", map[string]string{"A": "x\u0085  b: y"}},
		"the end of a block in the middle": {"data:\n  a: |\n    {{ .Params.A }}\n", map[string]string{"A": "x\n  b: |\n    y"}},
		"another document after indent":    {"data:\n  a: |\n{{ .Params.A | indent 4 | replace \"    -\" \"-\" }}\n", map[string]string{"A": "x" + evil}},
		"an indentation from a parameter":  {"data:\n  a: |\n    x\n{{ toYaml .Params.MAP | indent (int .Params.NODES) }}\n", map[string]string{"MAP": "{b: y}", "NODES": "2"}},
		"a key after an indented text":     {"data:\n  a: |\n    x\n{{ .Params.A | indent 2 }}\n", map[string]string{"A": "b: y"}},
		"a line of a script":               {"data:\n  a: |\n    {{ range .Params.LIST }}{{ . }}\n    {{ end }}\n", map[string]string{"LIST": `["x\n  b: y"]`}},
		"an indicator of a block":          {"data:\n  a: |{{ .Params.A }}\n    x\n", map[string]string{"A": "\n  b: y"}},
		"a block header":                   {"data:\n  a: |{{ .Params.A }}\n    x\n", map[string]string{"A": "2"}},
		// anchors
		"the content of an anchor":               {"x: &x y\ndata: {a: {{ .Params.A }}, b: c}\n", map[string]string{"A": "*x"}},
		"the content of an anchor, on a line":    {"x: &x y\ndata:\n  a: {{ .Params.A }}\n", map[string]string{"A": "\n    *x"}},
		"an anchor that exists":                  {"x: &x y\ndata: {a: {{ .Params.A }}, b: *x}\n", map[string]string{"A": "&x z"}},
		"an anchor that exists, of a value":      {"x: &x {{ .Params.B }}\ndata: {a: {{ .Params.A }}, b: *x}\n", map[string]string{"A": "&x z", "B": "y"}},
		"an anchor that exists, after a tag":     {"x: &x {{ .Params.B }}\ndata: {a: {{ .Params.A }}, b: *x}\n", map[string]string{"A": "!y &x z", "B": "y"}},
		"an anchor that exists, of another type": {"x: &x {{ .Params.B }}\ndata: {a: {{ .Params.A }}, b: *x}\n", map[string]string{"A": "!!str &x 3", "B": "y"}},
		// keys
		"a key that exists":               {"data:\n  a: x\n  {{ .Params.A }}: y\n", map[string]string{"A": "a"}},
		"a key that exists, in quotes":    {"data:\n  a: x\n  \"{{ .Params.A }}\": y\n", map[string]string{"A": "a"}},
		"a key that exists under another": {"data:\n  true: x\n  {{ .Params.A }}: y\n", map[string]string{"A": "yes"}},
		"two equal keys":                  {"data:\n  {{ .Params.A }}: x\n  {{ .Params.B }}: y\n", map[string]string{"A": "a", "B": "a"}},
		"a merged map":                    {"data:\n  x: &x {a: b}\n  {{ .Params.A }}: *x\n", map[string]string{"A": "<<"}},
		"two keys":                        {"data:\n  {{ .Params.A }}: y\n", map[string]string{"A": "a: b\n  c"}},
		"a complex key":                   {"data:\n  {{ .Params.A }}: y\n", map[string]string{"A": "? a"}},
		"the kind":                        {"{{ .Params.A }}: Secret\n", map[string]string{"A": "kind"}},
		"a key of an encoded map":         {"  {{ toYaml .Params.MAP | nindent 2 | trim }}\n", map[string]string{"MAP": "{name: b}"}},
		"the type by an encoded map":      {"{{ toYaml .Params.MAP }}\n", map[string]string{"MAP": "{kind: Secret}"}},
		// comments
		"the end of a comment":                   {"# {{ .Params.A }}\n", map[string]string{"A": "x\ndata: {a: b}"}},
		"the end of a comment, and another":      {"# {{ .Params.A }}\n", map[string]string{"A": "x\ndata: {a: b}\n# y"}},
		"the end of a comment by a return":       {"# {{ .Params.A }}\n", map[string]string{"A": "x\rdata: {a: b}\r# y"}},
		"the end of a comment with text after":   {"# {{ .Params.A }} data: {a: b}\n", map[string]string{"A": "x\n"}},
		"the end of a comment in quotes":         {"# {{ .Params.A }}\n", map[string]string{"A": "\"x\u0085data: {a: b}\u0085# y\""}},
		"an encoded map in a comment":            {"# {{ toYaml .Params.MAP }}\n", map[string]string{"MAP": "{a: b, data: {a: b}}"}},
		"an encoded list in a comment":           {"data:\n- a\n# {{ toYaml .Params.LIST }}\n", map[string]string{"LIST": "[a, b]"}},
		"a comment instead of a key":             {"data:\n  {{ .Params.A }}a: b\n", map[string]string{"A": "#"}},
		"a comment instead of a key with blanks": {"data:\n  {{ .Params.A }}a: b\n", map[string]string{"A": " # "}},
		// flow
		"an item":                {"data: [{{ .Params.A }}]\n", map[string]string{"A": "a, b"}},
		"an item of a list":      {"data: [{{ join \",\" .Params.LIST }}]\n", map[string]string{"LIST": "[a, b]"}},
		"a key in a map":         {"data: {a: {{ .Params.A }}}\n", map[string]string{"A": "x, b: y"}},
		"the end of a map":       {"data: {a: {{ .Params.A }}}\n", map[string]string{"A": "x}\nb: {c: d"}},
		"an encoded item":        {"data: [{{ toYaml .Params.A }}, {{ .Params.B }}]\n", map[string]string{"A": "a, b", "B": "c, d"}},
		"two values of one list": {"data: [{{ .Params.A }}{{ .Params.B }}]\n", map[string]string{"A": "{a: ", "B": "b}"}},
		// encoded maps and lists whose lines leave the place where the first one is
		"a rule by an encoded map":                   {"  annotations:\n    a: |\n      {{ toYaml .Params.MAP }}\n", map[string]string{"MAP": `{a: b, rules: [{apiGroups: ["*"]}]}`}},
		"a rule by an encoded map, from a variable":  {"{{ $x := toYaml .Params.MAP }}  annotations:\n    a: |\n      {{ $x }}\n", map[string]string{"MAP": `{a: b, rules: []}`}},
		"an item by an encoded list":                 {"data:\n- a: |\n    {{ toYaml .Params.LIST }}\n", map[string]string{"LIST": "[a, b]"}},
		"items without text by an encoded list":      {"data:\n- a: |\n    {{ toYaml .Params.LIST }}\n", map[string]string{"LIST": "[~, ~]"}},
		"an item by an encoded list, trimmed":        {"data:\n- a: |\n    {{ toYaml .Params.LIST | indent 4 | trim | indent 0 }}\n- b: |-\n   {{ toYaml .Params.LIST | trim }}\n", map[string]string{"LIST": "[a, b]"}},
		"a key above by a nested map":                {"  annotations:\n    a: |\n      {{ toYaml .Params.MAP }}\n", map[string]string{"MAP": "{a: {labels: b}}"}},
		"a key above by a map in a map":              {"data:\n  a: x\n  {{ toYaml .Params.MAP }}\n", map[string]string{"MAP": "{b: c, rules: []}"}},
		"a key above by a map in a list":             {"data:\n- a: x\n- {{ toYaml .Params.MAP }}\n", map[string]string{"MAP": "{b: c, rules: []}"}},
		"a key above by a smaller nindent":           {"data:\n  a: {{ toYaml .Params.MAP | nindent 4 | trim }}\n", map[string]string{"MAP": "{b: c, rules: []}"}},
		"a key above by an indent that is too small": {"data:\n  a: |\n      {{ toYaml .Params.MAP | indent 2 }}\n", map[string]string{"MAP": "{b: c, d: e}"}},
		"an item after a plain text":                 {"data:\n- a: x{{ toYaml .Params.LIST }}\n", map[string]string{"LIST": "[a, b]"}},
		"a key in a comment's next line":             {"data:\n  b: c # {{ toYaml .Params.MAP }}\n", map[string]string{"MAP": "{b: c, rules: []}"}},
		"pretty JSON in a block":                     {"data:\n  a: |\n    {{ toPrettyJson .Params.MAP }}\n", map[string]string{"MAP": "{b: c, rules: []}"}},
		"an encoded map that extends a key":          {"data:\n  x{{ toYaml .Params.MAP }}\n", map[string]string{"MAP": "{a: b}"}},
		"one of several encoded lists":               {"data:\n{{ range .Params.LIST }}- |\n  {{ toYaml . }}\n{{ end }}", map[string]string{"LIST": "[[a], [b, c]]"}},
		"an encoded map beside another":              {"data:\n{{ toYaml .Params.MAP | indent 2 }}\n{{ dict \"x\" .Params.A | toYaml | indent 2 }}\n", map[string]string{"MAP": "{x: y, b: c}", "A": "a"}},
		// other
		"a mark":                    {"data: {a: \"{{ .Params.A }}\"}\n", map[string]string{"A": "\U0010FFFD\U00100000\U00100000\", b: \"\U0010FFFD\U00100000\U00100000"}},
		"a mark that is escaped":    {"data: {a: \"{{ .Params.A }}\"}\n", map[string]string{"A": `\U0010FFFD\U00100000\U00100000", b: "\U0010FFFD\U00100000\U00100000`}},
		"a mark in a key":           {"data:\n  \"{{ .Params.A }}\": a\n", map[string]string{"A": `\U0010FFFD\U00100000\U00100000`}},
		"the API version":           {"---\napiVersion: {{ .Params.A }}\nkind: Role\nmetadata: {name: a}\n", map[string]string{"A": "v1"}},
		"the kind of an object":     {"---\napiVersion: v1\nkind: {{ .Params.A | toJson }}\nmetadata: {name: a}\n", map[string]string{"A": "Secret"}},
		"the kind of an item":       {"---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: {{ .Params.A }}\n  metadata: {name: a}\n", map[string]string{"A": "Secret"}},
		"through a variable":        {"{{ $a := .Params.A }}data:\n  a: {{ $a }}\n", map[string]string{"A": "x" + evil}},
		"through a map":             {"{{ $d := dict }}{{ $_ := set $d \"a\" .Params.A }}data:\n  a: {{ $d.a }}\n", map[string]string{"A": "x" + evil}},
		"through the parameters":    {"{{ $_ := set .Params \"B\" .Params.A }}data:\n  a: {{ .Params.B }}\n", map[string]string{"A": "x" + evil}},
		"through a template":        {"{{ define \"x\" }}a: {{ .x }}{{ end }}data:\n  {{ template \"x\" dict \"x\" .Params.A }}\n", map[string]string{"A": "x" + evil}},
		"through with":              {"data:\n  {{ with .Params.A }}a: {{ . }}{{ end }}\n", map[string]string{"A": "x" + evil}},
		"through an item":           {"data:\n  {{ range .Params.LIST }}a: {{ . }}{{ end }}\n", map[string]string{"LIST": `["x\nkind: Secret"]`}},
		"through a key":             {"data:\n  {{ range $k, $v := .Params.MAP }}{{ $k }}: {{ $v }}{{ end }}\n", map[string]string{"MAP": `{"a: b\n  c": d}`}},
		"through a computed name":   {"data:\n  a: {{ index .Params (print \"\" \"A\") }}\n", map[string]string{"A": "x" + evil}},
		"through all parameters":    {"data:\n  {{ range $k, $v := .Params }}{{ if eq $k \"A\" }}a: {{ $v }}{{ end }}{{ end }}\n", map[string]string{"A": "x" + evil}},
		"through base64":            {"data:\n  a: {{ .Params.A | b64dec }}\n", map[string]string{"A": "eAogIGI6IHk="}},
		"a free one beside another": {"data:\n  a: {{ print .Params.ANY .Params.A }}\n", map[string]string{"A": "x\n  b: y", "ANY": "z"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(guardedContext(test.data, test.values), "t")
			var problem *template.Error
			var changes *StructureError
			if !errors.As(err, &problem) || !errors.As(err, &changes) {
				t.Fatalf("got %v, %v, want a *StructureError", objects, err)
			}
			if problem.Template != "t" || problem.Line < 5 || problem.Document != 0 {
				t.Errorf("the error does not name the line: %v", err)
			}
			for value := range test.values {
				if len(test.values) == 1 && !cmp.Equal(changes.Parameters, []string{value}) {
					t.Errorf("got parameters %q, want %q", changes.Parameters, value)
				}
			}
		})
	}
}

func TestAValueMayBeAnyText(t *testing.T) {
	const hostile = "a: b\n---\n- {c: *d}\n\n  \"e\" #f\n'"
	for name, test := range map[string]struct {
		data   string
		values map[string]string
		want   any
	}{
		"in quotes":                        {"data: {{ .Params.A | quote }}\n", map[string]string{"A": hostile}, hostile},
		"as YAML":                          {"data: {{ toYaml .Params.A }}\n", map[string]string{"A": hostile}, hostile},
		"as YAML in a list":                {"data: [{{ toYaml .Params.A }}]\n", map[string]string{"A": hostile}, []any{hostile}},
		"as JSON":                          {"data: {{ .Params.A | toJson }}\n", map[string]string{"A": hostile + "\u0085"}, hostile + "\u0085"},
		"as JSON in quotes":                {"data: '{{ .Params.MAP | toJson }}'\n", map[string]string{"MAP": `{"a": "b, \"c\": d"}`}, `{"a":"b, \"c\": d"}`},
		"as a key in quotes":               {"data:\n  {{ .Params.A | quote }}: a\n", map[string]string{"A": "a: b\n"}, map[string]any{"a: b\n": "a"}},
		"indented in a block":              {"data: |\n{{ .Params.A | indent 2 }}\n", map[string]string{"A": "a: b\n---\n- c\n\n# d"}, "a: b\n---\n- c\n\n# d\n"},
		"indented in a folded block":       {"data: >\n{{ .Params.A | indent 2 }}\n", map[string]string{"A": "a: b\n---\n- c"}, "a: b --- - c\n"},
		"on new lines of a block":          {"data: |{{ .Params.A | nindent 2 }}\n", map[string]string{"A": "a: b\r\nc"}, "a: b\nc\n"},
		"on new lines in the middle":       {"data: |\n  x{{ .Params.A | nindent 4 }}y\n", map[string]string{"A": "a\nb"}, "x\n  a\n  by\n"},
		"in a line of a block":             {"data: |\n  a={{ .Params.A }}!\n", map[string]string{"A": "b: {c} # d: *e"}, "a=b: {c} # d: *e!\n"},
		"in a block with its indentation":  {"data: |\n  {{ .Params.A }}\n", map[string]string{"A": "a\n  # b\n  c\n"}, "a\n# b\nc\n"},
		"in double quotes over lines":      {"data: \"{{ .Params.A }}\"\n", map[string]string{"A": "a\n  b\n"}, "a b "},
		"plain":                            {"data: {{ .Params.A }}\n", map[string]string{"A": "a b-c"}, "a b-c"},
		"plain over lines":                 {"data: {{ .Params.A }}\n", map[string]string{"A": "a\n  b"}, "a b"},
		"with a line break at the end":     {"data: {{ .Params.A }}\n", map[string]string{"A": "a\n"}, "a"},
		"empty":                            {"data: {{ .Params.ITEMS }}\n", map[string]string{"ITEMS": ""}, nil},
		"blank":                            {"data: {{ .Params.A }}\nx: y\n", map[string]string{"A": "  \n "}, nil},
		"a boolean":                        {"data: [{{ .Params.A }}, {{ .Params.B }}]\n", map[string]string{"A": "on", "B": "yes"}, []any{true, true}},
		"a boolean as a key":               {"data:\n  {{ .Params.A }}: {{ .Params.B }}\n", map[string]string{"A": "on", "B": "0x10"}, map[string]any{"true": int64(16)}},
		"a number":                         {"data: {{ .Params.A }}\n", map[string]string{"A": "3"}, int64(3)},
		"null":                             {"data: {{ .Params.A }}\n", map[string]string{"A": "~"}, nil},
		"a block header":                   {"data: {{ .Params.A }}\nx: y\n", map[string]string{"A": "|1"}, ""},
		"a comment":                        {"data: {{ .Params.A }}\nx: y\n", map[string]string{"A": "# a"}, nil},
		"a tag":                            {"data: {{ .Params.A }}\n", map[string]string{"A": "!!str 3"}, "3"},
		"its own quotes":                   {"data: {{ .Params.A }}\n", map[string]string{"A": `"a: b"`}, "a: b"},
		"in a comment":                     {"data: a # {{ .Params.A }}\n# {{ .Params.A }}\n", map[string]string{"A": "b: {c"}, "a"},
		"in a comment of lines":            {"# {{ .Params.A }}\ndata: a\n", map[string]string{"A": "b\n# c: d\n"}, "a"},
		"a count of items":                 {"data:\n{{ range until (int .Params.NODES) }}- a{{ . }}\n{{ end }}", map[string]string{"NODES": "2"}, []any{"a0", "a1"}},
		"a condition":                      {"{{ if .Params.A }}data: {a: b}{{ else }}data: []{{ end }}\n", map[string]string{"A": "x\n---"}, map[string]any{"a": "b"}},
		"items of a list":                  {"data:\n{{ range .Params.LIST }}- {{ . }}\n{{ end }}", map[string]string{"LIST": "[a, b]"}, []any{"a", "b"}},
		"entries of a map":                 {"data:\n{{ range $k, $v := .Params.MAP }}  {{ $k }}: {{ $v }}\n{{ end }}", map[string]string{"MAP": "{a: b, c: 1}"}, map[string]any{"a": "b", "c": int64(1)}},
		"a map of several lines":           {"data:\n{{ toYaml .Params.MAP | indent 2 }}\n", map[string]string{"MAP": `{a: [b, {c: "d\ne"}], f g: 'h: i', j: {}}`}, map[string]any{"a": []any{"b", map[string]any{"c": "d\ne"}}, "f g": "h: i", "j": map[string]any{}}},
		"a list of several lines":          {"data:\n{{ .Params.LIST | toYaml | trim | indent 2 }}\n", map[string]string{"LIST": `[a, "on", "-", "", [b, c]]`}, []any{"a", "on", "-", "", []any{"b", "c"}}},
		"a map through a variable":         {"{{ $x := .Params.MAP }}{{ $y := toYaml $x }}data: {{ $y | nindent 2 }}\n", map[string]string{"MAP": "{a: b}"}, map[string]any{"a": "b"}},
		"an encoded map in parentheses":    {"data: {{ nindent 2 (toYaml .Params.MAP) }}\n", map[string]string{"MAP": "{a: b}"}, map[string]any{"a": "b"}},
		"an encoded map in a block":        {"data: |\n  {{ toYaml .Params.MAP | nindent 2 }}\n", map[string]string{"MAP": "{a: 'b: c', d: e}"}, "\na: \"b: c\"\nd: e\n"},
		"a map beside other entries":       {"data:\n  x: 1\n{{ toYaml .Params.MAP | indent 2 }}\n  z: 2\n", map[string]string{"MAP": "{a: {b: [c]}, d: e}"}, map[string]any{"x": int64(1), "z": int64(2), "a": map[string]any{"b": []any{"c"}}, "d": "e"}},
		"a map beside others and another":  {"data:\n{{ toYaml .Params.MAP | indent 2 }}\n  x: 2\n{{ dict \"z\" .Params.A | toYaml | indent 2 }}\n", map[string]string{"MAP": "{a: b, d: ~}", "A": "a"}, map[string]any{"x": int64(2), "a": "b", "d": nil, "z": "a"}},
		"an empty map beside nothing":      {"data:\n{{ toYaml .Params.MAP | indent 2 }}\n", map[string]string{"MAP": "{ }"}, map[string]any{}},
		"a list beside other items":        {"data:\n- ~\n{{ toYaml .Params.LIST }}\n- ~\n{{ toYaml .Params.LIST }}\n", map[string]string{"LIST": "[~, a, {b: c}]"}, []any{nil, nil, "a", map[string]any{"b": "c"}, nil, nil, "a", map[string]any{"b": "c"}}},
		"a list without indentation":       {"data:\n{{ toYaml .Params.LIST }}\n", map[string]string{"LIST": "[a, [b, [c]], {d: e, f: g}]"}, []any{"a", []any{"b", []any{"c"}}, map[string]any{"d": "e", "f": "g"}}},
		"a map without indentation":        {"{{ toYaml .Params.MAP }}\n", map[string]string{"MAP": "{data: {a: b}, immutable: true}"}, map[string]any{"a": "b"}},
		"a map of a document":              {"data: a\n---\n{{ toYaml .Params.MAP }}\n", map[string]string{"MAP": "{apiVersion: v1, kind: Secret, metadata: {name: b}}"}, "a"},
		"maps as items":                    {"data:\n{{ range .Params.LIST }}- {{ toYaml . | nindent 2 | trim }}\n- {{ toYaml . | nindent 2 }}\n{{ end }}", map[string]string{"LIST": "[{a: b, c: {d: e}}, f]"}, []any{map[string]any{"a": "b", "c": map[string]any{"d": "e"}}, map[string]any{"a": "b", "c": map[string]any{"d": "e"}}, "f", "f"}},
		"a map in a flow list":             {"data: [{{ toPrettyJson .Params.MAP | indent 2 | trim }}, a]\n", map[string]string{"MAP": "{a: b, c: [d, e]}"}, []any{map[string]any{"a": "b", "c": []any{"d", "e"}}, "a"}},
		"a map of an anchor":               {"data: &x {{ toYaml .Params.MAP | nindent 2 }}\nx: *x\n", map[string]string{"MAP": "{a: b, c: d}"}, map[string]any{"a": "b", "c": "d"}},
		"a map that is merged":             {"x: &x {{ toYaml .Params.MAP | nindent 2 }}\ndata: {<<: *x, e: f}\n", map[string]string{"MAP": "{a: b, c: d}"}, map[string]any{"a": "b", "c": "d", "e": "f"}},
		"a map in a comment":               {"data: a # {{ toJson .Params.MAP }}\n# {{ toYaml .Params.LIST }}\n", map[string]string{"MAP": "{a: b, c: d}", "LIST": "[a]"}, "a"},
		"a map in a folded block":          {"data: >\n  x\n  {{ toYaml .Params.MAP | nindent 2 }}\n  y\n", map[string]string{"MAP": "{a: {b: c}, d: e}"}, "x\na:\n  b: c\nd: e y\n"},
		"a map in a block of a block":      {"data: |\n  a: |\n    {{ toYaml .Params.MAP | nindent 4 }}\n  b: c\n", map[string]string{"MAP": "{a: b, c: d}"}, "a: |\n  \n  a: b\n  c: d\nb: c\n"},
		"a map with the same marks":        {"data:\n{{ toYaml .Params.MAP | indent 2 }}\n", map[string]string{"MAP": "{'? a': b, '- c': d, '#': '# e'}"}, map[string]any{"? a": "b", "- c": "d", "#": "# e"}},
		"a map as pretty JSON":             {"data: {{ .Params.MAP | toPrettyJson | indent 2 }}\n", map[string]string{"MAP": "{a: b}"}, map[string]any{"a": "b"}},
		"a long key":                       {"data: {{ toYaml .Params.MAP | nindent 2 }}\n", map[string]string{"MAP": "{" + strings.Repeat("k", 200) + ": b}"}, map[string]any{strings.Repeat("k", 200): "b"}},
		"a list that is a list by default": {"data: [{{ .Params.ITEMS }}]\n", map[string]string{"ITEMS": "c, d, e"}, []any{"c", "d", "e"}},
		"a block that is one by default":   {"data:\n  {{ .Params.BLOCK }}\n", map[string]string{"BLOCK": "z: [1]"}, map[string]any{"z": []any{int64(1)}}},
		"a parameter that inserts YAML":    {"data: {{ .Params.ANY }}\n", map[string]string{"ANY": "{a: b}"}, map[string]any{"a": "b"}},
		"an alias of an anchored scalar":   {"x: &x {{ .Params.A }}\ndata: *x\n", map[string]string{"A": "b"}, "b"},
		"two in one scalar":                {"data: {{ .Params.A }}:{{ .Params.B }}-{{ .Name }}\n", map[string]string{"A": "image", "B": "1.2"}, "image:1.2-parent-zk"},
		"a private character":              {"data: {{ .Params.A }}\n", map[string]string{"A": "\uF8FF"}, "\uF8FF"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(guardedContext(test.data, test.values), "t")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, objects[0].Object["data"]); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
