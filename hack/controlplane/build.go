package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// build compiles programs in a single call of go, which keeps all processors busy and verifies the modules with go.sum.
func (i *installer) build(ctx context.Context, programs []program, versions map[string]string, work, folder string) error {
	built, temporary := filepath.Join(work, "built"), filepath.Join(work, "go")
	if err := errors.Join(os.Mkdir(built, 0o755), os.Mkdir(temporary, 0o755)); err != nil {
		return err
	}
	i.log("building %s from Go modules (a whole control plane takes about six minutes on two cores, once)", strings.Join(namesOf(programs), ", "))
	arguments := []string{"build", "-v", "-trimpath", "-ldflags", linkerFlags(versions), "-o", built + string(filepath.Separator)}
	for _, p := range programs {
		arguments = append(arguments, p.main)
	}
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = i.source
	// GOTMPDIR is in the work folder, so that it is removed even if go is killed. GOGC takes more memory, and less time.
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOTMPDIR="+temporary, "GOGC=200")
	// The compilers and linkers that go starts are killed with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 10 * time.Second

	printed := &progress{}
	command.Stderr = printed
	started := time.Now()
	stop := every(i.interval, func() { i.log("%s (%s)", printed, time.Since(started).Round(time.Second)) })
	err := command.Run()
	stop()
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", err, strings.Join(printed.others, "\n"))
	}
	for _, p := range programs {
		err = errors.Join(err, place(filepath.Join(built, p.output), filepath.Join(folder, p.name)))
	}
	return err
}

// progress counts the modules and packages that go build prints. It keeps all other lines.
type progress struct {
	mu                   sync.Mutex
	downloaded, compiled int
	others               []string
	unfinished           []byte
}

var packageLine = regexp.MustCompile(`^[^\s:]+$`)

func (p *progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := bytes.Split(append(p.unfinished, text...), []byte("\n"))
	p.unfinished = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		switch line := string(line); {
		case strings.HasPrefix(line, "go: downloading "):
			p.downloaded++
		case packageLine.MatchString(line):
			p.compiled++
		default:
			p.others = append(p.others, line)
		}
	}
	return len(text), nil
}

func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%d modules downloaded, %d packages compiled", p.downloaded, p.compiled)
}
