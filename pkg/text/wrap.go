package text

import (
	"strings"
	"unicode/utf8"
)

// minWrapped is the number of characters below which a line is not wrapped.
const minWrapped = 20

// Wrap breaks a text between its words into lines of at most width characters, as far as its words fit. All lines after the first begin with
// the indent.
func Wrap(text string, width int, indent string) string {
	width = max(width, minWrapped)
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		count := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+count > width:
			b.WriteString("\n" + indent)
			column = utf8.RuneCountInString(indent)
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += count
	}
	return b.String()
}
