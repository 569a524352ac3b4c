package terminal

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/text"
)

func TestATextCannotControlTheTerminal(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"an escape sequence":                    {"a \x1b[2Jb", "a ^[[2Jb"},
		"an escape sequence of one byte":        {"a \x9b2Jb", `a \x9b2Jb`},
		"an escape sequence of one character":   {"a \u009b2Jb", `a \u009b2Jb`},
		"a link":                                {"\x1b]8;;http://a\x07b", `^[]8;;http://a\u0007b`},
		"a return to the begin of the line":     {"bad\rgood", `bad\rgood`},
		"a step back":                           {"bad\b\b\bgood", `bad\u0008\u0008\u0008good`},
		"a deletion":                            {"a\x7f", `a\u007f`},
		"text from right to left":               {"a\u202egpj.exe", `a\u202egpj.exe`},
		"an isolate":                            {"a\u2066b\u2069", `a\u2066b\u2069`},
		"a separator of lines":                  {"a\u2028b\u0085c", `a\u2028b\u0085c`},
		"nothing that is visible":               {"a\u200b\ufeffb\U000e0041", `a\u200b\ufeffb\U000e0041`},
		"an invalid byte":                       {"a\xff", `a\xff`},
		"lines, columns, and words of any kind": {"a\n\tb c\u00a0d äß 日本 العربية ✓ ├── …", "a\n\tb c\u00a0d äß 日本 العربية ✓ ├── …"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text.Escape(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			var out bytes.Buffer
			if n, err := io.WriteString(Guard(&out), test.text); n != len(test.text) || err != nil || out.String() != test.want {
				t.Errorf("wrote %d bytes, %v: %q, want %q", n, err, out.String(), test.want)
			}
		})
	}
}

func TestRaw(t *testing.T) {
	var out bytes.Buffer
	if Raw(Guard(Guard(&out))) != io.Writer(&out) || Raw(&out) != io.Writer(&out) {
		t.Error("want the guarded writer")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestGuardReturnsErrors(t *testing.T) {
	if _, err := io.WriteString(Guard(full{}), "a"); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
}

// FuzzEscape checks that nothing but line breaks, tabs and visible characters is left of any text.
func FuzzEscape(f *testing.F) {
	f.Add("a\x1b[2J\u009b\x9b\u202e\xff")
	f.Fuzz(func(t *testing.T, given string) {
		escaped := text.Escape(given)
		if strings.ContainsFunc(escaped, func(r rune) bool { return !text.Visible(r) }) || text.Escape(escaped) != escaped {
			t.Errorf("%q became %q", given, escaped)
		}
	})
}
