package sandbox

import (
	"os"
	"syscall"
)

// dieWithParent puts a child into its own process group, out of the terminal's reach, and has the kernel kill it when the
// thread that started it ends.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// confine makes a folder the root of a child's file system, unless it is empty. Only root may do that, or who is it in a user namespace
// of the child's own.
func confine(child *syscall.SysProcAttr, root string) {
	child.Chroot = root
	if root == "" || os.Geteuid() == 0 {
		return
	}
	same := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	}
	child.Cloneflags = syscall.CLONE_NEWUSER
	child.UidMappings, child.GidMappings = same(os.Geteuid()), same(os.Getegid())
}
