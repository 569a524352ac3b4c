package sandbox

import (
	"os"
	"syscall"
)

// dieWithParent puts a child into its own process group, so that it gets no signals from the terminal, and has the kernel kill it when the
// thread that started it ends.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// confine sets the root of a child's file system, unless it is empty. This requires root, or being root in a user namespace of the child.
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
