package text

import (
	"path"
	"slices"
	"strings"
)

const (
	// maxEdits is the maximum number of wrong, missing, additional or swapped letters.
	maxEdits = 2
	// maxLength limits the work: longer names are not corrected.
	maxLength = 64
)

// ClosestMatch returns the one of names that is closest to name: equal except for case, separators and a file's extension, or else with few
// edits. It returns the first of equally close names, and "" if none is close.
func ClosestMatch(name string, names []string) string {
	wanted := fold(name)
	if wanted == "" || len(wanted) > maxLength {
		return ""
	}
	// In a short name, two letters would be half of it.
	closest, fewest := "", min(maxEdits, len(wanted)/3)+1
	for _, candidate := range names {
		if len(candidate) > 2*maxLength {
			continue
		}
		if edits := distance(wanted, fold(candidate), fewest); edits < fewest {
			closest, fewest = candidate, edits
		}
	}
	return closest
}

var separators = strings.NewReplacer("_", "", "-", "", ".", "")

// fold returns a name without case, separators and extension.
func fold(name string) string {
	return separators.Replace(strings.ToLower(strings.TrimSuffix(name, path.Ext(name))))
}

// distance returns the number of bytes to insert, delete or replace, or of neighbours to swap, that turn a into b (the optimal string alignment
// distance); limit if it is not below that.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, above, row = above, row, before
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(above[j]+cost(a[i] != b[j]), above[j+1]+1, row[j]+1)
			if isSwapped(a, b, i, j) {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		if slices.Min(row) >= limit { // a later row is not lower: a swap adds one to the row before the last, which is at most one lower
			return limit
		}
	}
	return row[len(b)]
}

// cost returns 1 for a replaced byte.
func cost(replaced bool) int {
	if replaced {
		return 1
	}
	return 0
}

// isSwapped reports whether the bytes of a and b at these positions are those before them of the other one.
func isSwapped(a, b string, i, j int) bool {
	return i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j]
}
