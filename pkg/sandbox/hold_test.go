package sandbox

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// startSandbox runs a sandbox of a single program, with a state file.
func startSandbox(t *testing.T, script string) (path string, p *process) {
	t.Helper()
	h := home(t.TempDir())
	if err := os.MkdirAll(string(h.cluster(hubName)), 0o700); err != nil {
		t.Fatal(err)
	}
	release, err := h.lock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	spawner := newSpawner()
	publish := make(chan struct{}, 100)
	p = startProcess(program{Name: "script", Path: "/bin/sh", Args: []string{"-c", script}}, h.cluster(hubName), spawner,
		func() { publish <- struct{}{} })
	published, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for range publish {
			state := State{Phase: Ready, Clusters: []ClusterState{{Name: hubName, Processes: []ProcessState{p.snapshot()}}}}
			if err := writeState(h, state); err != nil {
				t.Error(err)
			}
			select {
			case published <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() {
		p.stop()
		spawner.close()
		close(publish)
		<-ended
	})
	publish <- struct{}{}
	<-published
	return string(h), p
}

func TestAProgramThatIsStoppedStaysAwayUntilItIsStarted(t *testing.T) {
	path, p := startSandbox(t, "exec sleep 600")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		if err := StopProgram(ctx, path, hubName, "script"); err != nil {
			t.Fatal(err)
		}
		if s := p.snapshot(); s.PID != 0 || !s.Held || s.Restarts != 0 || p.crashError() != nil {
			t.Errorf("after the stop it is %+v", s)
		}
	}
	for range 2 {
		if err := StartProgram(ctx, path, hubName, "script"); err != nil {
			t.Fatal(err)
		}
		if s := p.snapshot(); s.PID == 0 || s.Held || s.Restarts != 0 {
			t.Errorf("after the start it is %+v", s)
		}
	}
}

func TestAProgramThatIsHeldEndsWithTheSandbox(t *testing.T) {
	path, p := startSandbox(t, "exec sleep 600")
	if err := StopProgram(t.Context(), path, hubName, "script"); err != nil {
		t.Fatal(err)
	}
	p.stop()
}

func TestAProgramThatDoesNotExistCannotBeStopped(t *testing.T) {
	path, _ := startSandbox(t, "exec sleep 600")
	for name, test := range map[string]struct{ path, program, want string }{
		"there is no such program": {path, "../script", "the sandbox has no program hub ../script: available programs are hub script"},
		"there is no sandbox":      {t.TempDir(), "script", "no sandbox is ready in"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, do := range []func(context.Context, string, string, string) error{StopProgram, StartProgram} {
				if err := do(t.Context(), test.path, hubName, test.program); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			}
		})
	}
}
