package why

import (
	"strings"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Bullets returns the explanation for a terminal of that width: a headline, a bullet for each further sentence, and the commands, which are
// not wrapped.
func (e *Explanation) Bullets(width int) string {
	var b strings.Builder
	for i, sentence := range e.sentences {
		if i > 0 {
			sentence = "• " + sentence
		}
		indent := ""
		if i > 0 {
			indent = "  "
		}
		if i == 1 {
			b.WriteString("\n")
		}
		b.WriteString(text.Wrap(sentence, width, indent) + "\n")
	}
	if len(e.commands) > 0 {
		b.WriteString("\n  " + strings.Join(e.commands, "\n  ") + "\n")
	}
	return b.String()
}
