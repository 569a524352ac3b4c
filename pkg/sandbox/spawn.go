package sandbox

import (
	"os/exec"
	"runtime"
)

// spawner starts processes from one thread with the same lifetime, so that the kernel can kill them when that thread, and with it this
// process, ends (dieWithParent). Started from an ordinary goroutine they would be killed with whichever thread started them.
type spawner struct {
	requests chan func()
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan func())}
	go func() {
		// Never unlocked: the thread ends with this goroutine.
		runtime.LockOSThread()
		for request := range s.requests {
			request()
		}
	}()
	return s
}

// start calls command.Start on the spawner's thread. If root is not empty, it is the root of the process's file system.
func (s *spawner) start(command *exec.Cmd, root string) error {
	command.SysProcAttr = dieWithParent()
	confine(command.SysProcAttr, root)
	result := make(chan error)
	s.requests <- func() { result <- command.Start() }
	return <-result
}

// close ends the thread, and on Linux every process that is still running.
func (s *spawner) close() { close(s.requests) }
