package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// Escape replaces all characters that control a terminal, or the order or visibility of others. Objects on the hub contain texts from
// authors of packages, agents and other users.
func Escape(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !visible(r) }) {
		return text
	}
	var b strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\x1b':
			b.WriteString("^[") // as in kubectl
		case r == '\r':
			b.WriteString(`\r`)
		case visible(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r) // also JSON's notation
		}
		text = text[size:]
	}
	return b.String()
}

// escapeJSON returns the same JSON with escapes for characters that Escape replaces: YAML has no control characters. Characters of more than
// 16 bits stay, because YAML does not have JSON's escapes for them.
func escapeJSON(encoded []byte) []byte {
	hidden := func(r rune) bool { return !visible(r) && r <= 0xffff }
	if !bytes.ContainsFunc(encoded, hidden) {
		return encoded
	}
	var b bytes.Buffer
	for _, r := range string(encoded) {
		if hidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// YAML returns an object as YAML, whatever characters its texts have.
func YAML(object any) ([]byte, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(escapeJSON(encoded))
}

func visible(r rune) bool {
	return r == '\n' || r == '\t' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r)
}

// Guard returns a writer that escapes all text. Everything that a command writes passes it, except what is written to Raw.
func Guard(out io.Writer) io.Writer { return guard{out} }

// Raw returns the writer below Guard: for archives, for data that no terminal shows, and for the plugin's own control sequences.
func Raw(out io.Writer) io.Writer {
	for {
		guarded, ok := out.(guard)
		if !ok {
			return out
		}
		out = guarded.out
	}
}

type guard struct{ out io.Writer }

func (g guard) Write(text []byte) (int, error) {
	if _, err := io.WriteString(g.out, Escape(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
