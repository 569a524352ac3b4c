package sandbox

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestLastLines(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want string
	}{
		"fewer lines than wanted":   {"one\ntwo\n", "  one\n  two"},
		"the last of more":          {"one\ntwo\nthree\nfour\n", "  two\n  three\n  four"},
		"a log without any content": {"\n", "  (nothing)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lastLines(test.text, 3); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAProgramThatKeepsEndingIsGivenUp(t *testing.T) {
	p, changed := startScript(t, "echo no such device; exit 3")
	for p.crashError() == nil {
		await(t, changed)
	}
	for _, want := range []string{"script keeps exiting", "exit status 3", "no such device"} {
		if err := p.crashError(); !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}

func TestAKilledProgramIsStartedAgain(t *testing.T) {
	p, changed := startScript(t, "exec sleep 600")
	for p.snapshot().PID == 0 {
		await(t, changed)
	}
	if err := syscall.Kill(p.snapshot().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for p.snapshot().Restarts == 0 || p.snapshot().PID == 0 {
		await(t, changed)
	}
	if err := p.crashError(); err != nil {
		t.Errorf("one end is not too many: %v", err)
	}
	last := p.snapshot().PID
	p.stop()
	if err := syscall.Kill(last, 0); err != syscall.ESRCH {
		t.Errorf("after the stop the program still runs: %v", err)
	}
}

// startScript keeps a shell script running until the test ends; changed signals changes of its state.
func startScript(t *testing.T, script string) (p *process, changed <-chan struct{}) {
	t.Helper()
	changes := make(chan struct{}, 1)
	spawner := newSpawner()
	p = startProcess(program{Name: "script", Path: "/bin/sh", Args: []string{"-c", script}}, clusterFolder(t.TempDir()),
		spawner, func() {
			select {
			case changes <- struct{}{}:
			default:
			}
		})
	t.Cleanup(func() {
		p.stop()
		spawner.close()
	})
	return p, changes
}

func await(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case <-changed:
	case <-ctx.Done():
		t.Fatal("nothing changed for a minute")
	}
}
