package excerpt_test

import (
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/excerpt"
)

func TestBytes(t *testing.T) {
	for sentence, test := range map[string]struct{ text, want string }{
		"a short text stays":                             {"short", "short"},
		"a text of just that length stays":               {"0123456789", "0123456789"},
		"a long text ends in an ellipsis within":         {"0123456789a", "0123456…"},
		"a character is left out rather than cut in two": {"012345é789a", "012345…"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := excerpt.Bytes(test.text, 10); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	long := strings.Repeat("é", 60)
	for sentence, test := range map[string]struct{ value, want string }{
		"a short value stands in quotes":    {"a\nb", `"a\nb"`},
		"sixty characters stand whole":      {long, `"` + long + `"`},
		"what is beyond them is left out":   {long + "x", `"` + long + `"…`},
		"nothing stands in quotes likewise": {"", `""`},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := excerpt.Quote(test.value); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
