package terminal

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes of the plugin.
const (
	ExitOK = 0
	// ExitFailure: what was asked for could not be done, or a package is not valid.
	ExitFailure = 1
	// ExitUsage: the command line makes no sense.
	ExitUsage = 2
	// ExitTimeout: what was waited for did not come in time, and goes on.
	ExitTimeout = 3
)

// ExitCode is the exit code for what the command returned.
func ExitCode(err error) int {
	var usage *usageError
	var timeout *timeoutError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &timeout):
		return ExitTimeout
	default:
		return ExitFailure
	}
}

// usageError is an error in the command line.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func Usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{fmt.Sprintf("%s\nSee '%s --help'", fmt.Sprintf(format, args...), cmd.CommandPath())}
}

// timeoutError says that what was waited for did not come in the time that --timeout gives.
type timeoutError struct{ message string }

func (e *timeoutError) Error() string { return e.message }

func Timeoutf(format string, args ...any) error {
	return &timeoutError{fmt.Sprintf(format, args...)}
}
