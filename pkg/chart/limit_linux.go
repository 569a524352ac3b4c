package chart

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// restrict limits the memory that this process can write to, and its seconds on all cores.
func restrict(memory, seconds uint64) error {
	for resource, maximum := range map[int]uint64{unix.RLIMIT_DATA: memory, unix.RLIMIT_CPU: seconds} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: maximum, Max: maximum}); err != nil {
			return fmt.Errorf("limiting the process: %w", err)
		}
	}
	return nil
}
