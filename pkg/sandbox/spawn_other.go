//go:build unix && !linux

package sandbox

import "syscall"

// dieWithParent puts a child into its own process group, so that it gets no signals from the terminal. On this system the kernel does not
// end it with its parent: after a sandbox was killed, its programs have to be stopped by hand.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// confine sets the root of a child's file system, unless it is empty. This requires root.
func confine(child *syscall.SysProcAttr, root string) { child.Chroot = root }
