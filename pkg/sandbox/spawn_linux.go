package sandbox

import "syscall"

// dieWithParent puts a child into its own process group, out of the terminal's reach, and has the kernel kill it when the
// thread that started it ends.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
