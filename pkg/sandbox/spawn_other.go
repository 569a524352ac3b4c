//go:build unix && !linux

package sandbox

import "syscall"

// dieWithParent puts a child into its own process group, out of the terminal's reach. Here no kernel service ends it with
// its parent: after a sandbox was killed, its programs have to be stopped by hand.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// confine makes a folder the root of a child's file system, unless it is empty. Only root may do that.
func confine(child *syscall.SysProcAttr, root string) { child.Chroot = root }
