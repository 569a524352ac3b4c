package text_test

import (
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/text"
)

func TestTruncate(t *testing.T) {
	for sentence, test := range map[string]struct{ whole, want string }{
		"a short text stays":                             {"short", "short"},
		"a text of just that length stays":               {"0123456789", "0123456789"},
		"a long text ends in an ellipsis within":         {"0123456789a", "0123456…"},
		"a character is left out rather than cut in two": {"012345é789a", "012345…"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := text.Truncate(test.whole, 10); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	long := strings.Repeat("é", 60)
	for sentence, test := range map[string]struct{ value, want string }{
		"a short value is quoted":         {"a\nb", `"a\nb"`},
		"sixty characters are complete":   {long, `"` + long + `"`},
		"what is beyond them is left out": {long + "x", `"` + long + `"…`},
		"an empty value is quoted, too":   {"", `""`},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := text.Quote(test.value); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCharacters(t *testing.T) {
	for sentence, test := range map[string]struct {
		shorten func(string, int) string
		whole   string
		want    string
	}{
		"a prefix counts bytes and cuts no character in two": {text.Prefix, "éé", "é"},
		"a short prefix is the text":                         {text.Prefix, "éa", "éa"},
		"a head counts characters":                           {text.Head, "éééé", "ééé…"},
		"a short head is the text":                           {text.Head, "ééé", "ééé"},
		"a tail counts characters":                           {text.Tail, "abcd", "…bcd"},
		"a short tail is the text":                           {text.Tail, "bcd", "bcd"},
		"the middle is left out":                             {text.Ends, "abcd", "a…d"},
		"a short middle is not":                              {text.Ends, "abc", "abc"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := test.shorten(test.whole, 3); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestOneLine(t *testing.T) {
	if got, want := text.OneLine(" a\n\tb\u2028c  "), "a b c"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
