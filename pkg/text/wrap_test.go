package text

import "testing"

func TestWrap(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		width int
		want  string
	}{
		"a text that fits":      {"• one two", 20, "• one two"},
		"a line that is full":   {"• one two three four five", 20, "• one two three four\n  five"},
		"a long word":           {"see kubectl.kubernetes.io/last-applied is long", 20, "see\n  kubectl.kubernetes.io/last-applied\n  is long"},
		"a very narrow line":    {"• one two three four five", 3, "• one two three four\n  five"},
		"more than one white":   {"a  b\nc", 20, "a b c"},
		"nothing":               {"", 20, ""},
		"characters, not bytes": {"ä ö ü ä ö ü ä ö ü ä ö", 20, "ä ö ü ä ö ü ä ö ü ä\n  ö"},
	} {
		if got := Wrap(test.text, test.width, "  "); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
