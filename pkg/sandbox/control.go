package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// stopTimeout is the timeout for stopping a sandbox.
const stopTimeout = time.Minute

// Supervise runs a sandbox until ctx ends or, if forPID is not 0, until that process ends. It runs in the process that Up starts.
func Supervise(ctx context.Context, options Options, forPID int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if forPID != 0 {
		go func() {
			waitForExit(ctx, forPID)
			cancel(fmt.Errorf("process %d of --for-pid has ended", forPID))
		}()
	}
	s, err := Start(ctx, options)
	if err != nil {
		return err
	}
	<-ctx.Done()
	s.Stop()
	return nil
}

// Up starts a sandbox in options.Home unless one is running. The sandbox runs in a separate process: this executable, called with the
// arguments supervise, which must call Supervise with the same options. Up returns once the sandbox is ready; found reports whether it was
// already running. If ctx ends earlier, a process started by Up is stopped.
func Up(ctx context.Context, options Options, supervise []string) (state State, found bool, err error) {
	if options, err = options.complete(); err != nil {
		return State{}, false, err
	}
	h := home(options.Home)
	running, err := h.isRunning()
	if err != nil {
		return State{}, false, err
	}
	if running {
		state, err = find(ctx, h, options)
		return state, true, err
	}
	if _, err := findAssets(options.Assets, os.Getenv); err != nil {
		return State{}, false, err
	}
	if err := h.prepare(); err != nil {
		return State{}, false, err
	}
	if _, err := previousState(h, options); err != nil {
		return State{}, false, err
	}
	supervisor, err := startSupervisor(h, supervise)
	if err != nil {
		return State{}, false, err
	}
	state, err = follow(ctx, h, supervisor, options.Progress)
	if ctx.Err() != nil {
		supervisor.stop()
	}
	return state, false, err
}

// find waits for a sandbox run by another process, and checks that it matches the options.
func find(ctx context.Context, h home, options Options) (State, error) {
	state, err := readState(h)
	if err == nil && state.Phase != Ready {
		state, err = follow(ctx, h, nil, options.Progress)
	}
	if err != nil {
		return state, err
	}
	if problem := mismatch(state, options); problem != "" {
		return state, fmt.Errorf("the sandbox in %s %s: stop it first (`%s`)", options.Home, problem, options.DownCommand)
	}
	return state, nil
}

// mismatch describes the difference between a sandbox and the options, or returns an empty string.
func mismatch(state State, options Options) string {
	had := len(state.Clusters) - 1
	switch {
	case had != options.Clusters:
		return fmt.Sprintf("has %s, not %d", ManagedClusters(had), options.Clusters)
	case state.ocmText() != options.ocmText():
		return state.ocmText()
	case state.Images != options.Images:
		return fmt.Sprintf("runs pods with images in %q, not in %q", state.Images, options.Images)
	case state.Tandem == options.Tandem:
		return ""
	case options.Tandem == "":
		return "runs with Tandem, not without it"
	case state.Tandem == "":
		return "runs without Tandem"
	default:
		return fmt.Sprintf("has Tandem's programs from %q, not from %q", state.Tandem, options.Tandem)
	}
}

// supervisor is a process started to run a sandbox.
type supervisor struct {
	process *os.Process
	ended   chan struct{}
}

// startSupervisor starts this executable in a new session, so that it outlives this process and its terminal.
func startSupervisor(h home, arguments []string) (*supervisor, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this executable: %w", err)
	}
	log, err := openLog(h.logFile())
	if err != nil {
		return nil, fmt.Errorf("opening the sandbox's log: %w", err)
	}
	defer log.Close()
	command := exec.Command(executable, arguments...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the sandbox's process: %w", err)
	}
	s := &supervisor{process: command.Process, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		// The result is in the state file and in the log.
		_ = command.Wait()
	}()
	return s, nil
}

func (s *supervisor) stop() {
	_ = s.process.Signal(syscall.SIGTERM)
	<-s.ended
}

// follow reports a sandbox's progress until it is ready or has failed. Without a supervisor it follows whichever process runs the sandbox.
func follow(ctx context.Context, h home, supervisor *supervisor, progress func(string)) (State, error) {
	var state State
	printed := 0
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		ended := supervisor.hasEnded(h)
		current, err := readState(h)
		if err != nil {
			return false, err
		}
		if supervisor == nil || current.PID == supervisor.process.Pid {
			state = current
		}
		for ; printed < len(state.Progress); printed++ {
			if progress != nil {
				progress(state.Progress[printed])
			}
		}
		return ended || state.Phase == Ready, nil
	})
	switch {
	case err != nil:
		return state, fmt.Errorf("waiting for the sandbox: %w", err)
	case state.Phase == Failed:
		return state, errors.New(state.Error)
	case state.Phase != Ready:
		return state, fmt.Errorf("the sandbox's process ended; the end of %s:\n%s", h.logFile(), tail(h.logFile()))
	}
	return state, nil
}

// hasEnded reports whether no process runs the sandbox any more.
func (s *supervisor) hasEnded(h home) bool {
	if s == nil {
		running, err := h.isRunning()
		return err == nil && !running
	}
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Down stops the sandbox in the home, if one is running, and deletes its data unless keep is set.
func Down(ctx context.Context, path string, keep bool) (stopped bool, err error) {
	h := home(path)
	running, err := h.isRunning()
	if err != nil {
		return false, err
	}
	if running {
		if err := stopOwner(ctx, h); err != nil {
			return false, err
		}
	}
	if keep {
		return running, nil
	}
	return running, Remove(path)
}

// stopOwner signals the process that runs the sandbox to stop it, and waits until it has.
func stopOwner(ctx context.Context, h home) error {
	state, err := readState(h)
	if err != nil {
		return err
	}
	if state.PID == 0 {
		return fmt.Errorf("the sandbox in %s has not recorded its process id yet; try again", string(h))
	}
	if err := syscall.Kill(state.PID, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping the sandbox's process %d: %w", state.PID, err)
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, stopTimeout, false, func(context.Context) (bool, error) {
		running, err := h.isRunning()
		return !running, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the sandbox's process %d to stop: %w", state.PID, err)
	}
	return nil
}

// Read returns the state of the sandbox in a home, whichever process runs it.
func Read(path string) (State, error) {
	h := home(path)
	state, err := readState(h)
	if err != nil {
		return State{}, err
	}
	running, err := h.isRunning()
	if err != nil {
		return State{}, err
	}
	if !running && state.Phase != Failed {
		state.Phase = Stopped
	}
	return state, nil
}
