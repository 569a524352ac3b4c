package chart

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// restrict limits the memory that this process can write to, and its seconds on all cores. If a container runs out of memory, the kernel ends this
// process first, unless it has to end all of the container.
func restrict(memory, seconds uint64) error {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // where that is forbidden, the kernel chooses
	for resource, maximum := range map[int]uint64{unix.RLIMIT_DATA: memory, unix.RLIMIT_CPU: seconds} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: maximum, Max: maximum}); err != nil {
			return fmt.Errorf("limiting the process: %w", err)
		}
	}
	return nil
}
