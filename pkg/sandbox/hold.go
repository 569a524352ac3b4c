package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// StopProgram stops a program of a cluster of the running sandbox, and returns when it has exited. It is held until StartProgram is called
// or the sandbox restarts.
func StopProgram(ctx context.Context, path, cluster, name string) error {
	if _, err := findProgram(path, cluster, name); err != nil {
		return err
	}
	file := home(path).cluster(cluster).hold(name)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return fmt.Errorf("stopping %s of %s: %w", name, cluster, err)
	}
	deadline, asked := time.Now().Add(killDelay), 0
	return untilProgram(ctx, path, cluster, name, func(p ProcessState) bool {
		switch {
		case p.Held:
			return true
		case p.PID != 0 && time.Now().After(deadline):
			_ = syscall.Kill(p.PID, syscall.SIGKILL) // if it fails, the process has exited
		case p.PID != asked && p.PID != 0:
			_ = syscall.Kill(p.PID, syscall.SIGTERM)
			asked = p.PID
		}
		return false
	})
}

// StartProgram starts a program that StopProgram has stopped, and returns once it runs.
func StartProgram(ctx context.Context, path, cluster, name string) error {
	if _, err := findProgram(path, cluster, name); err != nil {
		return err
	}
	if err := os.Remove(home(path).cluster(cluster).hold(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("starting %s of %s: %w", name, cluster, err)
	}
	return untilProgram(ctx, path, cluster, name, func(p ProcessState) bool { return !p.Held && p.PID != 0 })
}

// untilProgram waits until done reports true for a program.
func untilProgram(ctx context.Context, path, cluster, name string, done func(ProcessState) bool) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, stopTimeout, true, func(context.Context) (bool, error) {
		state, err := findProgram(path, cluster, name)
		return err == nil && done(state), err
	})
	if err != nil {
		return fmt.Errorf("waiting for %s of %s: %w", name, cluster, err)
	}
	return nil
}

// findProgram returns a program of the running sandbox. If it does not exist, the error lists the existing programs.
func findProgram(path, cluster, name string) (ProcessState, error) {
	state, err := Read(path)
	if err != nil {
		return ProcessState{}, err
	}
	if state.Phase != Ready {
		return ProcessState{}, fmt.Errorf("no sandbox is ready in %s: its phase is %s", path, state.Phase)
	}
	var names []string
	for _, c := range state.Clusters {
		for _, process := range c.Processes {
			if c.Name == cluster && process.Name == name {
				return process, nil
			}
			names = append(names, c.Name+" "+process.Name)
		}
	}
	return ProcessState{}, fmt.Errorf("the sandbox has no program %s %s: available programs are %s", cluster, name, strings.Join(names, ", "))
}
