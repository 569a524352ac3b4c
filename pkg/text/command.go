package text

import (
	"fmt"
	"regexp"
	"strings"
)

// Command returns a command line with each name as one word for a POSIX shell. Users copy the command line, but names come from objects and
// URLs that others wrote.
func Command(format string, names ...string) string {
	words := make([]any, len(names))
	for i, name := range names {
		words[i] = ShellWord(name)
	}
	return fmt.Sprintf(format, words...)
}

// plainWord matches texts that a shell does not change.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// ShellWord returns a text as one word of a command line.
func ShellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
