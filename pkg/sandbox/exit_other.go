//go:build unix && !linux

package sandbox

import (
	"context"
	"syscall"

	"k8s.io/apimachinery/pkg/util/wait"
)

// waitForExit returns when the process has exited and was reaped, or ctx has ended.
func waitForExit(ctx context.Context, pid int) {
	_ = wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		return syscall.Kill(pid, 0) == syscall.ESRCH, nil
	})
}
