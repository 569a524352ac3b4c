// Package text formats texts for messages: it shortens them, puts them on one line, lists names and finds the closest match of a misspelt
// name. It is pure and touches no cluster.
package text

import (
	"strconv"
	"strings"
)

// Ellipsis is where a text is shortened.
const Ellipsis = "…"

// OneLine replaces line breaks and other white space by single blanks, and trims both ends.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Truncate returns the text if it has at most limit bytes, else its beginning and an ellipsis within limit bytes. The limit has to leave
// room for the ellipsis.
func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return Prefix(text, limit-len(Ellipsis)) + Ellipsis
}

// Prefix returns as many whole characters from the text's beginning as fit into limit bytes.
func Prefix(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// Head returns the text's first count characters, followed by an ellipsis if it has more.
func Head(text string, count int) string {
	if runes := []rune(text); len(runes) > count {
		return string(runes[:count]) + Ellipsis
	}
	return text
}

// Tail returns the text's last count characters, after an ellipsis if it has more.
func Tail(text string, count int) string {
	if runes := []rune(text); len(runes) > count {
		return Ellipsis + string(runes[len(runes)-count:])
	}
	return text
}

// Ends returns the text's first and last count/2 characters, with an ellipsis between them, if it has more than count.
func Ends(text string, count int) string {
	if runes := []rune(text); len(runes) > count {
		return string(runes[:count/2]) + Ellipsis + string(runes[len(runes)-count/2:])
	}
	return text
}

// quoted is the number of characters of a value that Quote shows.
const quoted = 60

// Quote returns the value in Go's quotes; of a long one the beginning, with an ellipsis after the quotes.
func Quote(value string) string {
	if runes := []rune(value); len(runes) > quoted {
		return strconv.Quote(string(runes[:quoted])) + Ellipsis
	}
	return strconv.Quote(value)
}
