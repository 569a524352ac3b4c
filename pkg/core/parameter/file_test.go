package parameter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFile(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want map[string]string
	}{
		"nothing gives nothing":                     {"", map[string]string{}},
		"comments alone give nothing":               {"# none\n", map[string]string{}},
		"scalars stay as they are written":          {"A: 2000000\nB: 1.10\nC: true\nD: text\nE: \"007\"\n", map[string]string{"A": "2000000", "B": "1.10", "C": "true", "D": "text", "E": "007"}},
		"an empty text is given":                    {`A: ""`, map[string]string{"A": ""}},
		"a name without a value is not given":       {"A:\nB: null\nC: x\n", map[string]string{"C": "x"}},
		"lists and maps become JSON":                {"A: [1, b]\nB:\n  c: 12345678901234567890\n", map[string]string{"A": `[1,"b"]`, "B": `{"c":12345678901234567890}`}},
		"characters that YAML lacks are escaped":    {`A: {b: "<\x7f\x85>"}`, map[string]string{"A": `{"b":"<\u007f\u0085>"}`}},
		"a block of text keeps its lines":           {"A: |\n  one\n  two\n", map[string]string{"A": "one\ntwo\n"}},
		"what looks like a template is only a text": {`A: "{{ .Params.B }}"`, map[string]string{"A": "{{ .Params.B }}"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := File(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrorsOfFilesQuoteNoValue(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no YAML":              {"A: x\nPASSWORD: geheim: x\n", "line 2: not valid YAML: quote values with special characters (in a template with | quote or toYaml)"},
		"an alias":             {"PASSWORD: *geheim\n", "not valid YAML: quote values with special characters (in a template with | quote or toYaml)"},
		"an anchor in a list":  {"A:\n- &geheim x\n- *geheim\n", "line 2: the list or map is not valid: it must not contain anchors, aliases or duplicate keys"},
		"no map":               {"- geheim\n", "line 1: must be a map of parameters, such as NAME: value"},
		"a text alone":         {"geheim\n", "line 1: must be a map of parameters, such as NAME: value"},
		"a name twice":         {"A: geheim\nA: geheim\n", `line 2: parameter "A" is already set on line 1: remove one of them`},
		"several documents":    {"A: geheim\n---\nB: geheim\n", "contains more than one YAML document: must be one map of parameters"},
		"a merge":              {"<<: {A: geheim}\n", "line 1: must be the name of a parameter"},
		"a key twice in a map": {"A: {geheim: 1, geheim: 2}\n", "line 1: the list or map is not valid: it must not contain anchors, aliases or duplicate keys"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := File(test.text)
			if err == nil {
				t.Fatal("there is no error")
			}
			if got := err.Error(); got != test.want || strings.Contains(got, "geheim") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
