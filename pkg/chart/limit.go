package chart

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// Limits of one rendering or inspection.
type Limits struct {
	// MemoryBytes is what the process may allocate, and CPU its time on all cores; both only on Linux.
	MemoryBytes uint64
	CPU         time.Duration
	// Timeout is the time after which the process is killed if it has neither ended nor asked a question. That says nothing about the chart: a busy
	// machine gives it no more CPU.
	Timeout time.Duration
	// OutputBytes limits what is rendered, in JSON.
	OutputBytes int64
	// Questions is how many objects and lists templates may look up, and Answer the time for each.
	Questions int
	Answer    time.Duration
}

// DefaultLimits are enough for every public chart that was tried. Most need less than 96 MiB and a second; one with definitions of 8 MB and 230
// objects needs 256 MiB.
func DefaultLimits() Limits {
	return Limits{
		MemoryBytes: 512 << 20, CPU: 30 * time.Second, Timeout: 5 * time.Minute, OutputBytes: 64 << 20, Questions: 1000, Answer: 30 * time.Second,
	}
}

// LimitError reports that the process for a chart was ended because it reached a limit.
type LimitError struct{ Limit string }

func (e *LimitError) Error() string { return "processing the chart requires more than " + e.Limit }

// ProcessError reports that the process for a chart had no result. That says nothing about the chart, and may pass.
type ProcessError struct{ cause error }

func (e *ProcessError) Error() string { return e.cause.Error() }

func (e *ProcessError) Unwrap() error { return e.cause }

// maxStackBytes limits the depth of templates that execute each other: Helm limits include, and not tpl.
const maxStackBytes = 64 << 20

// limitFormat is the argument with which a process receives its limits.
const limitFormat = "%d,%d"

func (l Limits) argument() string {
	return fmt.Sprintf(limitFormat, l.MemoryBytes, int64(l.CPU/time.Second))
}

// limit limits this process.
func limit(argument string) error {
	var memory, seconds uint64
	if _, err := fmt.Sscanf(argument, limitFormat, &memory, &seconds); err != nil {
		return fmt.Errorf("invalid limits %q: %w", argument, err)
	}
	debug.SetMaxStack(maxStackBytes)
	debug.SetMemoryLimit(int64(memory - memory/4))
	return restrict(memory, seconds)
}

// reached returns which limit ended a process without an output. It is no *LimitError if another process has killed it.
func (l Limits) reached(ended *os.ProcessState, stderr string) error {
	killed := ended.ExitCode() < 0 // by a signal, and not by Render
	switch {
	case killed && ended.UserTime()+ended.SystemTime() >= l.CPU-l.CPU/10:
		return &LimitError{Limit: l.CPU.String() + " of CPU time"}
	case killed:
		return &ProcessError{fmt.Errorf("the process for the chart was killed (%s): the container or the machine may lack memory", ended)}
	case strings.Contains(stderr, "stack exceeds"):
		return &LimitError{Limit: fmt.Sprintf("%d MiB of stack: its templates call each other endlessly", maxStackBytes>>20)}
	case strings.Contains(stderr, "fatal error: "): // the runtime gives up in many places when it gets no memory
		return &LimitError{Limit: fmt.Sprintf("%d MiB of memory", l.MemoryBytes>>20)}
	}
	return &ProcessError{fmt.Errorf("the process for the chart ended: %s", ended)}
}
