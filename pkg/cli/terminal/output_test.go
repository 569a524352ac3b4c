package terminal_test

import (
	"testing"

	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

func TestFormats(t *testing.T) {
	s := terminal.Shown{Text: "a \x1b[31mtable\n", Data: map[string]any{"text": "a <b> & \x1b[31m"}, Names: []string{"x.kudo.dev/a", "x.kudo.dev/b"}}
	for format, want := range map[string]string{
		"table":                     "a ^[[31mtable\n",
		"wide":                      "a ^[[31mtable\n",
		"name":                      "x.kudo.dev/a\nx.kudo.dev/b\n",
		"json":                      "{\n    \"text\": \"a <b> & \\u001b[31m\"\n}\n",
		"yaml":                      "text: \"a <b> & \\e[31m\"\n",
		"go-template={{len .text}}": "13",
	} {
		if got := clitest.Render(t, format, s); got != want {
			t.Errorf("-o %s: got %q, want %q", format, got, want)
		}
	}
}

// One text with control characters, which YAML does not have, must not hide the output of a whole fleet.
func TestFormatsOfAnyText(t *testing.T) {
	s := terminal.Shown{Data: map[string]any{"text": "\u009b\x7f\u202e\U000e0041\ufeff"}}
	for format, want := range map[string]string{
		"json":                      "{\n    \"text\": \"\\u009b\\u007f\\u202e\U000e0041\\ufeff\"\n}\n",
		"yaml":                      "text: \"\\x9B\\x7F\u202e\\U000E0041\\uFEFF\"\n",
		"go-template={{len .text}}": "13",
	} {
		if got := clitest.Render(t, format, s); got != want {
			t.Errorf("-o %s: got %q, want %q", format, got, want)
		}
	}
}
