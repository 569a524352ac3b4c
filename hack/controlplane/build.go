package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// wholeBuild is the time to build all programs with an empty build cache.
const wholeBuild = "about six minutes on two cores"

// build compiles programs in a single call of go, which keeps all processors busy.
func (g *getter) build(ctx context.Context, folder, work string, items []*item, versions map[string]string) error {
	g.log.say("building %s from Go modules (a whole control plane takes %s, once)", versioned(items), wholeBuild)
	// GOTMPDIR: files left by a killed go process are removed together with the working folder.
	b := &builder{getter: g, to: filepath.Join(work, "built"), temporary: filepath.Join(work, "go"), items: items, flags: linkerFlags(versions)}
	if err := b.build(ctx); err != nil {
		return err
	}
	for _, i := range items {
		if err := place(filepath.Join(b.to, executable(i.main)), filepath.Join(folder, i.name)); err != nil {
			return err
		}
	}
	return nil
}

// builder builds programs of the tool module.
type builder struct {
	*getter
	to        string // the folder of the compiled programs
	temporary string // go's temporary folder
	items     []*item
	flags     string
}

func (b *builder) build(ctx context.Context) error {
	if err := errors.Join(os.Mkdir(b.to, 0o755), os.Mkdir(b.temporary, 0o755)); err != nil {
		return fmt.Errorf("creating a build folder: %w", err)
	}
	var packages []string
	for _, i := range b.items {
		packages = append(packages, i.main)
	}
	b.log.say("reading the Go modules of %s", strings.Join(names(b.items), ", "))
	started, listed := time.Now(), &output{}
	needed, err := b.run(ctx, listed, (*output).listing, append([]string{"list", "-deps"}, packages...))
	if err != nil {
		return fmt.Errorf("reading the Go modules of %s: %w", strings.Join(names(b.items), ", "), err)
	}
	if listed.downloaded > 0 {
		b.log.say("%s", listed.listing(time.Since(started)))
	}
	built := &output{packages: map[string]bool{}}
	for name := range strings.FieldsSeq(needed) {
		built.packages[name] = true
	}
	started = time.Now()
	report := func(o *output, took time.Duration) string { return o.compiling(b.unlinked(), took) }
	b.log.say("%s", report(built, 0))
	flags := []string{"build", "-v", "-trimpath", "-ldflags", b.flags, "-o", b.to + string(filepath.Separator)}
	if _, err := b.run(ctx, built, report, append(flags, packages...)); err != nil {
		return fmt.Errorf("building %s: %w", strings.Join(names(b.items), ", "), err)
	}
	b.log.say("%s", built.built(names(b.items), time.Since(started)))
	return nil
}

// run runs the go command in the tool module, reports its progress, and returns its standard output.
func (b *builder) run(ctx context.Context, seen *output, report func(*output, time.Duration) string, arguments []string) (string, error) {
	var mu sync.Mutex
	var printed strings.Builder
	command := inGroup(exec.CommandContext(ctx, b.compiler, arguments...), 10*time.Second)
	command.Dir = b.source
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOTMPDIR="+b.temporary)
	if os.Getenv("GOGC") == "" {
		command.Env = append(command.Env, "GOGC=200") // more memory, less time
	}
	command.Stdout, command.Stderr = &printed, locked{&mu, seen}

	started := time.Now()
	stop := every(b.interval, func() {
		mu.Lock()
		defer mu.Unlock()
		b.log.say("%s", report(seen, time.Since(started)))
	})
	err := command.Run()
	stop()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", b.compiler, arguments[0], err, seen.failure())
	}
	return printed.String(), nil
}

// unlinked returns the programs that go build has not linked yet.
func (b *builder) unlinked() []string {
	var left []string
	for _, i := range b.items {
		if _, err := os.Stat(filepath.Join(b.to, executable(i.main))); err != nil {
			left = append(left, i.name)
		}
	}
	return left
}

// locked is a buffer that can be read while it is being written.
type locked struct {
	mu *sync.Mutex
	*output
}

func (l locked) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.output.Write(text)
}
