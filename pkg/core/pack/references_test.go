package pack

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

func TestReferencesHaveTheLinesOfTheirText(t *testing.T) {
	for sentence, test := range map[string]struct {
		text string
		want []int
	}{
		"the first line":                   {"{{ .Params.A }}", []int{1}},
		"several on one line":              {"\n{{ .Params.A }}{{ .Params.B }}\n", []int{2, 2}},
		"after empty lines":                {"\n\n\n{{ .Params.A }}", []int{4}},
		"an action over several lines":     {"{{ print\n .Params.A\n .Params.B }}\n", []int{2, 3}},
		"at the very beginning of a line":  {"{{print\n.Params.A}}", []int{2}},
		"lines that end as on Windows":     {"a\r\n{{ .Params.A }}\r\n{{ .Params.B }}", []int{2, 3}},
		"beyond characters of many bytes":  {"äöü€\n{{ .Params.A }}", []int{2}},
		"a template that is defined first": {"{{ define \"x\" }}\n{{ .Params.A }}{{ end }}\n{{ .Params.B }}", []int{2, 3}},
	} {
		t.Run(sentence, func(t *testing.T) {
			parsed, err := template.Parse("t", test.text)
			if err != nil {
				t.Fatal(err)
			}
			var lines []int
			for _, found := range references(parsed, test.text) {
				lines = append(lines, found.line)
			}
			if diff := cmp.Diff(test.want, lines); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// A template of 1 MB with 100,000 references, as large as an OperatorVersion can be.
func BenchmarkReferences(b *testing.B) {
	text := strings.Repeat("{{.Name}}\n", 100_000)
	parsed, err := template.Parse("t", text)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if found := references(parsed, text); len(found) != 100_000 {
			b.Fatalf("got %d references", len(found))
		}
	}
}
