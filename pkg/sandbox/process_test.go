package sandbox

import "testing"

func TestLastLines(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want string
	}{
		"fewer lines than wanted":   {"one\ntwo\n", "  one\n  two"},
		"the last of more":          {"one\ntwo\nthree\nfour\n", "  two\n  three\n  four"},
		"a log without any content": {"\n", "  (nothing)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lastLines(test.text, 3); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
