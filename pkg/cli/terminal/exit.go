package terminal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// UsageError is an error in the command line.
type UsageError struct{ message string }

func (e *UsageError) Error() string { return e.message }

// Usagef returns a UsageError that refers to the command's help.
func Usagef(cmd *cobra.Command, format string, args ...any) error {
	return &UsageError{fmt.Sprintf("%s\nSee '%s --help' for usage.", fmt.Sprintf(format, args...), cmd.CommandPath())}
}

// InterruptedError is returned if the user interrupts a command that waits. It is no failure: what the command has started continues.
type InterruptedError struct{ message string }

func (e *InterruptedError) Error() string { return e.message }

// Interruptedf returns an InterruptedError.
func Interruptedf(format string, args ...any) error {
	return &InterruptedError{fmt.Sprintf(format, args...)}
}

// IsInterrupted reports whether an error is an InterruptedError and nothing else: a joined error may also have failures.
func IsInterrupted(err error) bool {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !IsInterrupted(e) })
	}
	return errors.As(err, new(*InterruptedError))
}

// TimeoutError is returned if the awaited state is not reached before --timeout.
type TimeoutError struct{ message string }

func (e *TimeoutError) Error() string { return e.message }

// Timeoutf returns a TimeoutError.
func Timeoutf(format string, args ...any) error {
	return &TimeoutError{fmt.Sprintf(format, args...)}
}
