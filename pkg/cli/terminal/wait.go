package terminal

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
)

// WaitFlags holds the flags --wait and --timeout.
type WaitFlags struct {
	Wait    bool
	Timeout time.Duration
}

// AddWait adds --wait and --timeout.
func (w *WaitFlags) AddWait(cmd *cobra.Command, byDefault bool, until string) {
	cmd.Flags().BoolVar(&w.Wait, "wait", byDefault, until)
	TimeoutFlag(cmd, &w.Timeout)
}

// TimeoutFlag adds --timeout to a command that waits.
func TimeoutFlag(cmd *cobra.Command, timeout *time.Duration) {
	cmd.Flags().Var((*timeoutValue)(timeout), "timeout", "Time to wait before giving up; 0 means no limit.")
}

// timeoutValue is a timeout; 0 means none.
type timeoutValue time.Duration

func (p *timeoutValue) String() string {
	if *p == 0 {
		return "0"
	}
	return time.Duration(*p).String()
}

// Type returns the placeholder of the flag's value in help texts.
func (p *timeoutValue) Type() string { return "duration" }

// Set sets the flag's value.
func (p *timeoutValue) Set(text string) error {
	duration, err := time.ParseDuration(text)
	if err != nil || duration < 0 {
		return errors.New("must be a duration such as 90s or 5m, or 0 for no limit")
	}
	*p = timeoutValue(duration)
	return nil
}
