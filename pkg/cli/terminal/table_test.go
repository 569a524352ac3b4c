package terminal

import (
	"strings"
	"testing"
)

// A name or message cannot look like another row, column, field or branch.
func TestATextCannotAddLines(t *testing.T) {
	for name, test := range map[string]struct {
		write func(b *strings.Builder)
		want  string
	}{
		"of a table": {func(b *strings.Builder) {
			b.WriteString(Table([]string{"NAME", "READY"}, [][]string{{"a\nb\tTrue", "False\fx"}, {"c", "True"}}))
		}, "NAME           READY\n\"a\\nb\\tTrue\"   \"False\\fx\"\nc              True\n"},
		"of a tree": {func(b *strings.Builder) {
			WriteTree(b, Node{Text: "a\nb", Children: []Node{{Text: "c\n└── d"}}})
		}, "a; b\n└── c; └── d\n"},
		"of fields": {func(b *strings.Builder) { WriteField(b, "Ready", "False\nReady: True") }, "Ready:            False; Ready: True\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			test.write(&b)
			if got := b.String(); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}
