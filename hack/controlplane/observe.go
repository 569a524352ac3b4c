package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// observe observes a program in order of preference. It runs a program on PATH to get its version, and checks the target of a link in the
// folder each time, because it may have been upgraded or removed.
func (g *getter) observe(ctx context.Context, folder string, p program, version string) observation {
	name := filepath.Join(folder, p.name)
	_, released := p.released(version, g.on)
	seen := observation{released: released}

	if seen.given = g.inAssets(p.name); seen.given != "" {
		target, err := os.Readlink(name)
		seen.linked = err == nil && target == seen.given
		return seen
	}
	if isProgram(name) {
		info, err := os.Lstat(name)
		isLink := err != nil || info.Mode()&os.ModeSymlink != 0
		seen.cached = !isLink || p.saysVersion(g.ask(ctx, name, p.question), version)
	}
	if found := onPath(p.name); !seen.cached && found != "" && filepath.Dir(found) != folder {
		if p.saysVersion(g.ask(ctx, found, p.question), version) {
			seen.onPath = found
		}
	}
	return seen
}

// inAssets returns the file of a program in KUBEBUILDER_ASSETS, or an empty string.
func (g *getter) inAssets(name string) string {
	file, err := filepath.Abs(filepath.Join(g.given, name))
	if g.given == "" || err != nil || !isProgram(file) {
		return ""
	}
	return file
}

// onPath returns the file of a program on PATH, or an empty string.
func onPath(name string) string {
	file, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	if file, err = filepath.Abs(file); err != nil {
		return ""
	}
	return file
}

// ask returns the version output of a program, or an empty string if the program fails or times out.
func (g *getter) ask(ctx context.Context, name string, question []string) string {
	ctx, cancel := context.WithTimeout(ctx, g.timeouts.version)
	defer cancel()
	var printed strings.Builder
	command := inGroup(exec.CommandContext(ctx, name, question...), g.timeouts.version)
	command.Stdout = &printed
	if err := command.Run(); err != nil {
		return ""
	}
	return printed.String()
}

// inGroup makes a command the leader of a process group, which is killed when the command's context ends. Remaining processes may keep the
// command's output open for the given time at most.
func inGroup(command *exec.Cmd, open time.Duration) *exec.Cmd {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = open
	return command
}
