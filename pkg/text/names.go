package text

import (
	"fmt"
	"strconv"
	"strings"
)

// Word returns a name as a single word on a terminal, quoted if necessary.
func Word(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` || strings.ContainsRune(name, ' ') {
		return quoted
	}
	return name
}

// listLimit is the number of names listed in an error.
const listLimit = 20

// ListOrNone returns a list of names for a message, limited in length; "none" if it is empty.
func ListOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return List(names, listLimit)
}

// DidYouMean returns a suggestion of similar names, or an empty string.
func DidYouMean(name string, names []string) string {
	closest := ClosestMatch(name, names)
	if closest == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", closest)
}

// JoinMessage joins the lines of a message, so that it fits into a tree. Lines that are not sentences are separated by semicolons.
func JoinMessage(message string) string {
	return JoinLines(strings.TrimSpace(message))
}

// JoinLines is JoinMessage without trimming.
func JoinLines(lines string) string {
	return strings.NewReplacer(".\n", ". ", "\n", "; ").Replace(lines)
}

// Plural returns a number with a noun, in the plural unless it is one.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ObjectName returns an object's name as kubectl prints it.
func ObjectName(group, kind, name string) string {
	return fmt.Sprintf("%s.%s/%s", strings.ToLower(kind), group, name)
}
