package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape replaces all characters that control a terminal, or the order or visibility of others. Objects on the hub contain texts from
// authors of packages, agents and other users.
func Escape(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !Visible(r) }) {
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
		case Visible(r):
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

// Visible reports whether a character is shown as such: it controls neither a terminal nor the order or visibility of others.
func Visible(r rune) bool {
	return r == '\n' || r == '\t' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r)
}
