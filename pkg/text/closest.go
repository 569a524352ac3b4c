package text

import (
	"path"
	"strings"
)

const (
	// maxEdits is how many letters may be wrong, left out or too much.
	maxEdits = 2
	// maxLength bounds the work: longer names are no slips of the pen.
	maxLength = 64
)

// ClosestMatch returns the one of names that is most like name: equal but for case, separators and a file's extension, or else a few letters away.
// The first one wins where several are alike; it is "" if none is.
func ClosestMatch(name string, names []string) string {
	wanted := folded(name)
	if wanted == "" || len(wanted) > maxLength {
		return ""
	}
	// In a short name two letters would be half of it.
	closest, fewest := "", min(maxEdits, len(wanted)/3)+1
	for _, candidate := range names {
		if len(candidate) > 2*maxLength {
			continue
		}
		if edits := distance(wanted, folded(candidate), fewest); edits < fewest {
			closest, fewest = candidate, edits
		}
	}
	return closest
}

var separators = strings.NewReplacer("_", "", "-", "", ".", "")

// folded is a name without what people forget of it.
func folded(name string) string {
	return separators.Replace(strings.ToLower(strings.TrimSuffix(name, path.Ext(name))))
}

// distance is the number of bytes to insert, delete or replace to make b of a (Levenshtein's); limit if it is not below that.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal, least := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
			least = min(least, row[j+1])
		}
		if least >= limit {
			return limit
		}
	}
	return row[len(b)]
}
