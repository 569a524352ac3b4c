package terminal

import (
	"errors"
	"fmt"
	"testing"
)

func TestExitCodes(t *testing.T) {
	for want, err := range map[int]error{
		ExitOK:      nil,
		ExitFailure: errors.New("no"),
		ExitUsage:   fmt.Errorf("more: %w", &usageError{"no"}),
		ExitTimeout: fmt.Errorf("more: %w", Timeoutf("%s is late", "it")),
	} {
		if got := ExitCode(err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}
