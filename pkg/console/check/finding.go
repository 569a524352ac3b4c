package check

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Level is the result of a check.
type Level string

// The levels, best first. Only Failed makes the command fail.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Unknown Level = "unknown"
	Failed  Level = "failed"
)

// Finding is the result of a check, with the fix in the message.
type Finding struct {
	Level   Level  `json:"level"`
	Subject string `json:"subject"`
	Message string `json:"message"`
	// Command inspects or fixes the problem.
	Command string `json:"command,omitempty"`
}

func ok(subject, message string) []Finding {
	return []Finding{{Level: OK, Subject: subject, Message: message}}
}

func warning(subject, message, command string) []Finding {
	return []Finding{{Level: Warning, Subject: subject, Message: message, Command: command}}
}

func failed(subject, message, command string) []Finding {
	return []Finding{{Level: Failed, Subject: subject, Message: message, Command: command}}
}

// unreadable returns the finding for a request that failed.
func unreadable(subject, object string, err error) Finding {
	message := "unknown: reading " + object + ": " + oneLine(err.Error())
	if apierrors.IsForbidden(err) {
		message = "unknown: forbidden: your user may not read " + object
	}
	return Finding{Level: Unknown, Subject: subject, Message: message}
}

// maxMessage limits texts of the hub in a message, in bytes.
const maxMessage = 300

// oneLine returns a text of the hub on one visible line.
func oneLine(message string) string {
	return text.Truncate(text.Escape(text.OneLine(message)), maxMessage)
}

// maxNames is the number of names in a message.
const maxNames = 3

func list(names []string) string { return text.List(names, maxNames) }
