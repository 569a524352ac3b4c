package sandbox

import (
	"os/exec"
	"runtime"
)

// spawner starts processes from one thread that lives as long as it does: the kernel can then end them when that thread,
// and with it this process, is gone (dieWithParent). From an ordinary goroutine they would die with whatever thread
// happened to start them.
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

// start is command.Start on the spawner's thread. If root is not empty, that folder is all that the process sees of the file system.
func (s *spawner) start(command *exec.Cmd, root string) error {
	command.SysProcAttr = dieWithParent()
	confine(command.SysProcAttr, root)
	result := make(chan error)
	s.requests <- func() { result <- command.Start() }
	return <-result
}

// close ends the thread, and on Linux every process that still runs.
func (s *spawner) close() { close(s.requests) }
