package fleet

import (
	"cmp"
	"slices"
	"strings"
)

// Search returns the items with a name that contains the query, in any case. Items with a name that equals it are first, then those with a name
// that begins with it; items that match equally well keep their order. An empty query finds none.
func Search[T any](query string, items []T, namesOf func(T) []string) []T {
	wanted := strings.ToLower(query)
	if wanted == "" {
		return nil
	}
	type match struct {
		item T
		rank int
	}
	var found []match
	for _, item := range items {
		if rank := rankOf(wanted, namesOf(item)); rank < noMatch {
			found = append(found, match{item, rank})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return cmp.Compare(a.rank, b.rank) })
	sorted := make([]T, len(found))
	for i, m := range found {
		sorted[i] = m.item
	}
	return sorted
}

// noMatch is the rank of an item that does not match.
const noMatch = 3

// rankOf returns how well the best of the names matches: 0 if it equals what is wanted, 1 if it begins with it, 2 if it contains it.
func rankOf(wanted string, names []string) int {
	best := noMatch
	for _, name := range names {
		switch name = strings.ToLower(name); {
		case name == wanted:
			best = 0
		case strings.HasPrefix(name, wanted):
			best = min(best, 1)
		case strings.Contains(name, wanted):
			best = min(best, 2)
		}
	}
	return best
}
