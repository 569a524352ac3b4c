package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	minBackoff = 200 * time.Millisecond
	maxBackoff = 5 * time.Second
	// backoffResetDelay is the run time after which a program's restart backoff is reset.
	backoffResetDelay = 10 * time.Second
	// killDelay is how long a program may take to exit before it is killed.
	killDelay = 10 * time.Second
	// tolerableExits is the number of exits allowed while the sandbox starts.
	tolerableExits = 3
)

// process keeps one program running until it is stopped, except while it is held.
type process struct {
	program  program
	folder   clusterFolder
	spawner  *spawner
	onChange func()

	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	state ProcessState
	exit  error
}

// startProcess starts the program with its log in the folder, and restarts it whenever it exits, with increasing delays. onChange is called
// after each change of its state.
func startProcess(p program, folder clusterFolder, spawner *spawner, onChange func()) *process {
	_ = os.Remove(folder.hold(p.Name)) // of a previous run, if there is one
	ctx, cancel := context.WithCancel(context.Background())
	proc := &process{
		program: p, folder: folder, spawner: spawner, onChange: onChange, cancel: cancel, done: make(chan struct{}),
		state: ProcessState{Name: p.Name, Port: p.Port, Log: folder.log(p.Name)},
	}
	go proc.keepRunning(ctx)
	return proc
}

func (p *process) keepRunning(ctx context.Context) {
	defer close(p.done)
	backoff := minBackoff
	for p.untilWanted(ctx) {
		started := time.Now()
		err := p.runOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if p.isHeld() {
			backoff = minBackoff
			continue
		}
		if time.Since(started) > backoffResetDelay {
			backoff = minBackoff
		}
		p.change(func() { p.exit = err })
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, maxBackoff)
		p.change(func() { p.state.Restarts++ })
	}
}

// isHeld reports whether the program is held by StopProgram.
func (p *process) isHeld() bool {
	_, err := os.Stat(p.folder.hold(p.program.Name))
	return err == nil
}

// untilWanted waits while the program is held. It reports whether the program is to run.
func (p *process) untilWanted(ctx context.Context) bool {
	if !p.isHeld() {
		return true
	}
	p.change(func() { p.state.Held = true })
	for p.isHeld() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pollInterval):
		}
	}
	p.change(func() { p.state.Held = false })
	return true
}

// runOnce runs the program until it exits. When ctx ends, the program gets a termination signal, and is killed after killDelay.
func (p *process) runOnce(ctx context.Context) error {
	log, err := openLog(p.folder.log(p.program.Name))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.CommandContext(ctx, p.program.Path, p.program.Args...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = killDelay
	command.Dir = string(p.folder)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + string(p.folder), "TMPDIR=" + os.TempDir()}
	if p.program.Root != "" {
		command.Dir, command.Env = "/", p.program.Env
	}
	command.Stdout, command.Stderr = log, log
	if err := p.spawner.start(command, p.program.Root); err != nil {
		return err
	}
	p.change(func() { p.state.PID, p.state.Since = command.Process.Pid, time.Now() })
	err = command.Wait()
	p.change(func() { p.state.PID = 0 })
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func (p *process) change(mutate func()) {
	p.mu.Lock()
	mutate()
	p.mu.Unlock()
	p.onChange()
}

// stop stops the program and returns when it has exited.
func (p *process) stop() {
	p.cancel()
	<-p.done
}

func (p *process) snapshot() ProcessState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// crashError returns an error with the end of the program's log once it has exited too often during the start of the sandbox.
func (p *process) crashError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit == nil || p.state.Restarts < tolerableExits {
		return nil
	}
	return fmt.Errorf("%s keeps exiting (%w); the end of %s:\n%s", p.state.Name, p.exit, p.state.Log, tail(p.state.Log))
}

// openLog opens a log for appending.
func openLog(file string) (*os.File, error) {
	return os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// tail returns the end of a log, indented, or an empty string if it cannot be read.
func tail(file string) string {
	const lines, limit = 15, 16 << 10
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return lastLines(string(data[max(0, len(data)-limit):]), lines)
}

// lastLines returns up to n last lines of the text, each indented by two spaces, or a note that there are none.
func lastLines(text string, n int) string {
	if strings.TrimSpace(text) == "" {
		return "  (nothing)"
	}
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return "  " + strings.Join(all[max(0, len(all)-n):], "\n  ")
}
