package text

import (
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// Diff returns the unified diff of two texts.
func Diff(name, before, after string) string {
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: linesOf(before), B: linesOf(after), FromFile: "a/" + name, ToFile: "b/" + name, Context: 3,
	})
	if err != nil {
		return err.Error() // writes to a strings.Builder do not fail
	}
	return text
}

// linesOf returns the lines of a text, including their line breaks.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return slices.Collect(strings.Lines(strings.TrimSuffix(text, "\n") + "\n"))
}
