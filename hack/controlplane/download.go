package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Size limits of downloaded files.
const (
	largestProgram   = 512 << 20
	largestChecksums = 4 << 20
)

// download downloads the released programs concurrently and reports progress. Programs whose download fails are marked to be built.
func (g *getter) download(ctx context.Context, folder, work string, items []*item) (received int64, err error) {
	d := &downloader{mirror: g.mirror, timeout: g.timeouts, log: g.log, hosts: map[string]*host{}}
	d.transport = http.DefaultTransport.(*http.Transport).Clone() // uses the proxies set in the environment
	d.transport.DisableCompression = true
	defer d.transport.CloseIdleConnections()

	g.log.say("downloading %s for %s%s", versioned(items), g.on, g.mirror.mention())
	started := time.Now()
	left := &remaining{names: names(items)}
	stop := every(g.interval, func() { g.log.say("%s", receiving(d.received.Load(), left.list(), time.Since(started))) })
	defer stop()

	failures := make([]error, len(items))
	var downloading sync.WaitGroup
	for n, i := range items {
		downloading.Go(func() {
			defer left.remove(i.name)
			file, err := d.program(ctx, i, g.on, work)
			if err == nil {
				failures[n] = place(file, filepath.Join(folder, i.name))
				return
			}
			i.from = fromModules
			d.report(ctx, i.name, err)
		})
	}
	downloading.Wait()
	return d.received.Load(), errors.Join(failures...)
}

// downloader downloads files. It stops using a host after the first failure.
type downloader struct {
	transport *http.Transport
	mirror    mirror
	timeout   timeouts
	log       *log
	received  atomic.Int64

	mu    sync.Mutex
	hosts map[string]*host
}

// program downloads the program of an item and returns its file. The file, or the tarball that contains it, matches the published checksum.
func (d *downloader) program(ctx context.Context, i *item, on platform, work string) (string, error) {
	published, _ := i.released(i.version, on)
	checksums, file := d.mirror.of(published.checksums), d.mirror.of(published.file)

	var list bytes.Buffer
	if err := d.copy(ctx, checksums, largestChecksums, &list); err != nil {
		return "", err
	}
	want, err := published.checksum(list.Bytes(), fileName(published.file))
	if err != nil {
		return "", fmt.Errorf("%s: %w", redacted(checksums), err)
	}
	name := filepath.Join(work, i.name)
	got, err := d.save(ctx, file, name)
	if err != nil {
		return "", err
	}
	if got != want {
		return "", fmt.Errorf("%s: its SHA-256 is %s, but %s has %s", redacted(file), got, redacted(checksums), want)
	}
	if published.member == "" {
		return name, nil
	}
	member := name + ".member"
	if err := unpack(name, published.member, member); err != nil {
		return "", fmt.Errorf("%s: %w", redacted(file), err)
	}
	return member, nil
}

// save downloads a new file and returns its SHA-256.
func (d *downloader) save(ctx context.Context, from, to string) (string, error) {
	file, err := os.Create(to)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	err = d.copy(ctx, from, largestProgram, io.MultiWriter(file, sum))
	if err := errors.Join(err, file.Close()); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// report reports why a program is built instead of downloaded, once for each failing host.
func (d *downloader) report(ctx context.Context, name string, err error) {
	var failed *hostError
	switch {
	case ctx.Err() != nil || errors.Is(err, errGivenUp):
	case !errors.As(err, &failed):
		d.log.say("%s: %v; building it instead", name, err)
	case d.host(failed.host).giveUp():
		d.log.say("%s: %v; building it instead, and all other programs from %s", name, err, failed.host)
	}
}

// remaining is the set of programs that are still being downloaded.
type remaining struct {
	mu    sync.Mutex
	names []string
}

func (r *remaining) remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = slices.DeleteFunc(r.names, func(other string) bool { return other == name })
}

func (r *remaining) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.names)
}
