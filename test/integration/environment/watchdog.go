package environment

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// afterwards waits until the process $1 has exited and then kills the other processes.
const afterwards = `while kill -0 "$1" 2>/dev/null; do sleep 1; done; shift; kill -9 "$@" 2>/dev/null`

// watch starts a process that kills the children of this process after it has exited, because a killed suite cannot stop them. Without
// pgrep it returns nil.
func watch() (*exec.Cmd, error) {
	if _, err := exec.LookPath("pgrep"); err != nil {
		return nil, nil
	}
	self := strconv.Itoa(os.Getpid())
	children, err := exec.Command("pgrep", "-P", self).Output()
	if err != nil {
		return nil, fmt.Errorf("finding the programs that were started: %w", err)
	}
	watchdog := exec.Command("sh", append([]string{"-c", afterwards, "sh", self}, strings.Fields(string(children))...)...)
	watchdog.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals for the suite do not reach it
	if err := watchdog.Start(); err != nil {
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	return watchdog, nil
}

// callOff stops the watchdog, which may be nil.
func callOff(watchdog *exec.Cmd) error {
	if watchdog == nil {
		return nil
	}
	if err := watchdog.Process.Kill(); err != nil {
		return fmt.Errorf("ending the watchdog: %w", err)
	}
	var killed *exec.ExitError
	if err := watchdog.Wait(); err != nil && !errors.As(err, &killed) {
		return fmt.Errorf("ending the watchdog: %w", err)
	}
	return nil
}
