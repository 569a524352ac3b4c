package terminal

import (
	"fmt"

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

// TimeoutError is returned if the awaited state is not reached before --timeout.
type TimeoutError struct{ message string }

func (e *TimeoutError) Error() string { return e.message }

// Timeoutf returns a TimeoutError.
func Timeoutf(format string, args ...any) error {
	return &TimeoutError{fmt.Sprintf(format, args...)}
}
