package text_test

import (
	"slices"
	"testing"

	"github.com/tandem-addons/tandem/pkg/text"
)

func TestList(t *testing.T) {
	for want, names := range map[string][]string{
		"":                {},
		"a":               {"a"},
		"a, b":            {"a", "b"},
		"a, b and 1 more": {"a", "b", "c"},
	} {
		if got := text.List(names, 2); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLimit(t *testing.T) {
	names := []string{"a", "b", "c"}
	if got := text.Limit(names, 3, "more"); !slices.Equal(got, names) {
		t.Errorf("got %q, want all", got)
	}
	if got, want := text.Limit(names, 1, "more problems"), []string{"a", "and 2 more problems"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if names[1] != "b" {
		t.Errorf("the names have become %q", names)
	}
}
