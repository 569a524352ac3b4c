package structure

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

func output(t *testing.T, text, value string) template.Output {
	t.Helper()
	parsed, err := template.Parse("t", text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := template.Execute(parsed, map[string]any{
		"Name": "name", "Params": map[string]any{"A": value, "LIST": []any{value}, "MAP": map[string]any{"k": value}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// visible shows marks as <0>, with the number of their piece.
func visible(text string) string {
	var out strings.Builder
	for {
		before, id, after := cutAtMark(text)
		out.WriteString(before)
		if id < 0 {
			return out.String()
		}
		fmt.Fprintf(&out, "<%d>", id)
		text = after
	}
}

func TestMarks(t *testing.T) {
	for name, test := range map[string]struct{ template, value, want string }{
		"around a value":                              {"a: {{ .Params.A }}\n", "x", "a: <0>x<0>\n"},
		"around each of two":                          {"a: {{ .Params.A }}{{ .Params.A }}\n", "x", "a: <0>x<0><1>x<1>\n"},
		"around nothing else":                         {"a: {{ .Name }}{{ \"x\" }}\n", "x", "a: namex\n"},
		"around no empty value":                       {"a: {{ .Params.A }}\n", "", "a: \n"},
		"around no blank value at the end of a line":  {"a: {{ .Params.A }}\n", " \n ", "a:  \n \n"},
		"around a blank value in front of others":     {"a: {{ .Params.A }}b\n", " \n ", "a: <0> \n <0>b\n"},
		"around a blank value at the begin of a line": {"{{ .Params.A }}b\n", "\n", "<0>\n<0>b\n"},
		"before the blanks at the end":                {"a: {{ .Params.A }}\n", "x \n", "a: <0>x<0> \n\n"},
		"after the blanks at the end":                 {"a: {{ .Params.A }}b\n", "x \n", "a: <0>x \n<0>b\n"},
		"before the blanks at the begin":              {"a: {{ .Params.A }}\n", "\n x", "a: <0>\n <0>x<0>\n"},
		"after the indentation":                       {"  {{ .Params.A }}\n", "  x", "    <0>x<0>\n"},
		"at each line":                                {"a: {{ .Params.A }}\n", "x\n  y\n\nz", "a: <0>x\n  <0>y\n\n<0>z<0>\n"},
		"at each line, whatever ends it":              {"a: {{ .Params.A }}\n", "w\r\nx\ry\u2028 z", "a: <0>w\r\n<0>x\r<0>y\u2028 <0>z<0>\n"},
		"inside of a comment":                         {"{{ .Params.A }}\n", "# x\n# y", "#<0> x\n#<0> y<0>\n"},
		"not inside of what may be no comment":        {"a: {{ .Params.A }}\n{{ .Params.A }}b\n", "# x", "a: <0># x<0>\n<1># x<1>b\n"},
		"inside of quotes":                            {"a: {{ .Params.A | quote }}{{ .Params.A | squote }}\n", "x", "a: \"<0>x<0>\"'<1>x<1>'\n"},
		"outside of quotes that do not end":           {"a: {{ .Params.A }}\n", `"x\"`, `a: <0>"x\"<0>` + "\n"},
		"after what indent writes":                    {"{{ .Params.A | indent 2 }}\n", " x\ny", "   <0>x\n  <0>y<0>\n"},
		"after what nindent writes":                   {"a: |{{ .Params.A | nindent 2 }}b\n", "x\ny", "a: |\n  <0>x\n  <0>y<0>b\n"},
		"before what an unknown indent writes":        {"a: {{ .Params.A | indent (len .Params.A) }}\n", "xy", "a: <0>  xy<0>\n"},
		"inside of the texts of JSON":                 {"a: {{ .Params.MAP | toJson }}\n", `"`, `a: {"<0>k<0>":"<1>\"<1>"}` + "\n"},
		"at the words of YAML":                        {"a: {{ .Params.MAP | toYaml | nindent 2 }}\n", "x: y", "a: \n  <0>k<0>: \"<1>x: y<1>\"\n"},
		"at the items of YAML":                        {"a:\n{{ toYaml .Params.LIST }}\n", "x y", "a:\n- <0>x<0> <1>y<1>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out := output(t, test.template, test.value)
			if got := visible(newTwin(out, setOf(actions(out, func(*template.Action) bool { return true }))).text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	for name, test := range map[string]struct{ template, value, want string }{
		"an entry for a map":                       {"a:\n{{ toYaml .Params.MAP | indent 2 }}\nb: c\n", "x", "a:\n  <0>: <0>\nb: c\n"},
		"an item for a list":                       {"a: {{ toYaml .Params.LIST | nindent 0 }}\n", "x", "a: \n- <0>\n"},
		"a scalar for JSON of several lines":       {"a: {{ toPrettyJson .Params.MAP }}\n", "x", "a: <0>\n"},
		"one for each print":                       {"{{ range .Params.LIST }}a:\n  {{ dict . . | toYaml }}\n{{ end }}{{ toYaml .Params.MAP }}", "x", "a:\n  <0>: <0>\n<1>: <1>"},
		"none for JSON in one line":                {"a: {{ toJson .Params.MAP }}\n", "x", "a: {\"k\":\"x\"}\n"},
		"none for a text":                          {"a: {{ toYaml .Params.A }}\n", "x: y", "a: \"x: y\"\n"},
		"none for an empty list":                   {"a: {{ toYaml (without .Params.LIST .Params.A) }}\n", "x", "a: []\n"},
		"none for what another function changes":   {"a: {{ toYaml .Params.MAP | replace \"k\" \"l\" }}\n", "x", "a: l: x\n"},
		"the first line's blanks are not its own":  {"a:\n{{ toYaml .Params.MAP | indent 2 | nindent 2 }}\n", "x", "a:\n\n    <0>: <0>\n"},
		"a nested map counts by its own structure": {"{{ dict \"a\" .Params.MAP | toYaml | nindent 4 | trim }}\n", "x", "<0>: <0>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out := output(t, test.template, test.value)
			all := setOf(actions(out, func(*template.Action) bool { return true }))
			if got := visible(replaceUnits(out, Rules{Read: readYAML}.units(out, all))); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func readYAML(text string) ([]any, error) {
	var value any
	err := yaml.Unmarshal([]byte(text), &value)
	return []any{value}, err
}

func TestChangedNamesTheAction(t *testing.T) {
	const text = "a: {{ .Name }}\nb: {{ .Params.LIST | toJson }}\nc: {{ .Params.A }}\nd: {{ .Params.A | quote }}\n"
	for name, test := range map[string]struct {
		value string
		line  int
	}{
		"that adds a key":       {"x\ne: f", 3},
		"that makes a list":     {"[x]", 3},
		"that ends the YAML":    {"{", 3},
		"none for a plain text": {"x", 0},
	} {
		t.Run(name, func(t *testing.T) {
			line := 0
			if action := (Rules{Read: readYAML}).FindChange(output(t, text, test.value), func(*template.Action) bool { return true }); action != nil {
				line = action.Line
			}
			if line != test.line {
				t.Errorf("got line %d, want %d", line, test.line)
			}
		})
	}
}

func TestChangedNamesTheActionWhoseLinesLeaveTheirPlace(t *testing.T) {
	const text = "a:\n{{ toYaml .Params.MAP | indent 2 }}\nb: |\n  {{ toYaml .Params.MAP }}\nc: |\n  {{ dict \"k\" .Params.A \"l\" .Params.A | toYaml }}\n"
	action := (Rules{Read: readYAML}).FindChange(output(t, text, "x"), func(*template.Action) bool { return true })
	if action == nil || action.Line != 6 {
		t.Errorf("got %+v, want the action in line 6", action)
	}
}

func TestEdges(t *testing.T) {
	const text = " a \n\n  b\r\n\u2028c \t\n  \n"
	for begin := range text {
		e := &edges{text: text}
		for at := range text + "." {
			if at < begin {
				continue
			}
			line, _, _ := strings.Cut(text[at:], "\n")
			if got, want := e.blankBefore(at), isBlank(lastLine(text[:at])); got != want {
				t.Errorf("from %d, before %d: got %t", begin, at, got)
			}
			if got, want := e.blankAfter(at), isBlank(line); got != want {
				t.Errorf("from %d, after %d: got %t", begin, at, got)
			}
		}
		if got, want := e.blankBefore(begin), isBlank(lastLine(text[:begin])); got != want {
			t.Errorf("before %d again: got %t", begin, got)
		}
		if line, _, _ := strings.Cut(text[begin:], "\n"); e.blankAfter(begin) != isBlank(line) {
			t.Errorf("after %d again: got %t", begin, !isBlank(line))
		}
	}
}

func TestOnlyCheckedActionsAreJudged(t *testing.T) {
	out := output(t, "a: {{ .Params.A }}\n", "x\nb: c")
	if action := (Rules{Read: readYAML}).FindChange(out, func(*template.Action) bool { return false }); action != nil {
		t.Errorf("got %+v", action)
	}
}
