// Package excerpt shortens texts that are too long to be shown or stored whole. It is pure and touches no cluster.
package excerpt

import (
	"strconv"
	"strings"
)

const ellipsis = "…"

// Bytes is the text if it has at most limit bytes, else its beginning, with which and an ellipsis it has no more. The limit has to leave room
// for that.
func Bytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}

// shown is the number of characters of a value that a message shows.
const shown = 60

// Quote is a value as messages show it: in Go's quotes, of a long one the beginning, with an ellipsis behind.
func Quote(value string) string {
	if runes := []rune(value); len(runes) > shown {
		return strconv.Quote(string(runes[:shown])) + ellipsis
	}
	return strconv.Quote(value)
}
