package text

import (
	"fmt"
	"slices"
	"strings"
)

// List joins the first limit names with commas and counts the others: "a, b and 3 more".
func List(names []string, limit int) string {
	if left := len(names) - limit; left > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), left)
	}
	return strings.Join(names, ", ")
}

// Limit returns the items if they are at most limit, else the first limit of them and an item with the number of others: "and 3 " + rest.
// It does not modify items.
func Limit(items []string, limit int, rest string) []string {
	if left := len(items) - limit; left > 0 {
		return append(slices.Clone(items[:limit]), fmt.Sprintf("and %d %s", left, rest))
	}
	return items
}
