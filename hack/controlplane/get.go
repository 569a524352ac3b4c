package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// getter installs programs into a folder of the cache.
type getter struct {
	programs []program
	source   string // the folder of the tool module
	cache    string
	given    string // KUBEBUILDER_ASSETS
	mirror   mirror
	on       platform
	timeouts timeouts
	interval time.Duration // between progress reports
	compiler string        // the go command
	log      *log
}

// timeouts holds the timeouts for other programs and servers.
type timeouts struct {
	answer  time.Duration // for the first byte of a server's response
	stall   time.Duration // between bytes of a server's response
	version time.Duration // for a program on PATH to print its version
}

// get installs the programs of the given names and returns their folder.
func (g *getter) get(ctx context.Context, names []string) (folder string, err error) {
	started := time.Now()
	wanted, err := pick(g.programs, names)
	if err != nil {
		return "", err
	}
	pins, err := g.readPins()
	if err != nil {
		return "", err
	}
	folder, err = g.openFolder(pins)
	if err != nil {
		return "", err
	}
	unlock, err := g.lock(ctx, folder)
	if err != nil {
		return "", err
	}
	defer unlock()

	items := g.gather(ctx, folder, wanted, pins.versions)
	cost, err := g.act(ctx, folder, items, pins)
	if ctx.Err() != nil {
		return "", errors.New("interrupted; incomplete programs are removed")
	}
	if err != nil {
		return "", err
	}
	cost.all = time.Since(started)
	if text := summary(items, cost); text != "" {
		g.log.say("%s", text)
	}
	return folder, nil
}

// gather observes all requested programs concurrently and decides the origin of each.
func (g *getter) gather(ctx context.Context, folder string, wanted []program, versions map[string]string) []*item {
	items := make([]*item, len(wanted))
	var looking sync.WaitGroup
	for n, p := range wanted {
		looking.Go(func() {
			seen := g.observe(ctx, folder, p, versions[p.pin])
			items[n] = &item{program: p, version: versions[p.pin], seen: seen, from: decide(seen, !g.mirror.off)}
		})
	}
	looking.Wait()
	return items
}

// act installs the programs that are missing in the folder. Items that cannot be downloaded are built and reported afterwards.
func (g *getter) act(ctx context.Context, folder string, items []*item, pins pins) (cost costs, err error) {
	for _, i := range items {
		if err := i.link(folder); err != nil {
			return cost, err
		}
	}
	if len(those(items, fromRelease))+len(those(items, fromModules)) == 0 {
		return cost, nil
	}
	work, err := os.MkdirTemp(folder, workPattern)
	if err != nil {
		return cost, fmt.Errorf("creating a work folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	if released := those(items, fromRelease); len(released) > 0 {
		started := time.Now()
		if cost.bytes, err = g.download(ctx, folder, work, released); err != nil {
			return cost, err
		}
		cost.download = time.Since(started)
	}
	if ctx.Err() != nil {
		return cost, ctx.Err()
	}
	if unbuilt := those(items, fromModules); len(unbuilt) > 0 {
		started := time.Now()
		if err := g.build(ctx, folder, work, unbuilt, pins.versions); err != nil {
			return cost, err
		}
		cost.build = time.Since(started)
	}
	return cost, nil
}

// link links a program installed on this machine into the folder.
func (i *item) link(folder string) error {
	switch name := filepath.Join(folder, i.name); i.from {
	case fromGiven:
		return link(i.seen.given, name)
	case fromPath:
		return link(i.seen.onPath, name)
	default:
		return nil
	}
}

// log writes human-readable lines from several goroutines.
type log struct {
	mu sync.Mutex
	to io.Writer
}

func (l *log) say(format string, arguments ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.to, "control plane: %s\n", strings.TrimRight(fmt.Sprintf(format, arguments...), "\n"))
}

// every calls report at each interval until stop is called.
func every(interval time.Duration, report func()) (stop func()) {
	done := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				report()
			case <-done:
				return
			}
		}
	})
	return func() { close(done); reporting.Wait() }
}
