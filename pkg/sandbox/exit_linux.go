package sandbox

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// waitForExit returns when the process has exited, reaped or not, or ctx has ended. A process that cannot be watched counts as exited.
func waitForExit(ctx context.Context, pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	const interval = 500 // milliseconds between checks of ctx
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, interval)
		if n > 0 || (err != nil && !errors.Is(err, unix.EINTR)) {
			return
		}
	}
}
