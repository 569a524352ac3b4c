package text

import (
	"path"
	"strings"
)

const (
	// maxEdits is the maximum number of wrong, missing or additional letters.
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

// distance returns the number of bytes to insert, delete or replace to turn a into b (Levenshtein's); limit if it is not below that.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal, lowest := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
			lowest = min(lowest, row[j+1])
		}
		if lowest >= limit {
			return limit
		}
	}
	return row[len(b)]
}
