package sourcing

import (
	"regexp"

	"github.com/tandem-addons/tandem/pkg/text"
)

// The limits of texts in the status, and of its list of refused versions.
const (
	maxMessage        = 2048
	maxRefusedMessage = 1024
	maxVersion        = 256
	maxRefused        = 10
)

// ephemeral matches the local address of a connection in messages of errors, which has another port each time.
var ephemeral = regexp.MustCompile(`(\d+\.\d+\.\d+\.\d+|\[[0-9a-fA-F:%a-z]*\]):\d+->`)

// bound returns a text of others as it is stored: without what changes with each attempt, and with control characters escaped.
func bound(message string, limit int) string {
	return text.Truncate(text.Escape(text.JoinMessage(ephemeral.ReplaceAllString(message, ""))), limit)
}
