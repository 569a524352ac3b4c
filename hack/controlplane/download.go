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
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// download downloads the released programs concurrently. It reports why a program could not be downloaded; the caller builds it.
func (i *installer) download(ctx context.Context, programs []program, version, work, folder string) {
	var downloading sync.WaitGroup
	var received atomic.Int64
	for _, p := range programs {
		if !p.released {
			continue
		}
		downloading.Go(func() {
			url := fmt.Sprintf("%s/release/%s/bin/%s/%s", i.mirror, version, i.platform, p.name)
			i.log("downloading %s %s for %s", p.name, version, i.platform)
			if err := i.save(ctx, url, filepath.Join(work, p.name), filepath.Join(folder, p.name), &received); err != nil && ctx.Err() == nil {
				i.log("%s is not downloaded: %v", p.name, err)
			}
		})
	}
	started := time.Now()
	stop := every(i.interval, func() { i.log("%d MB downloaded (%s)", received.Load()>>20, time.Since(started).Round(time.Second)) })
	downloading.Wait()
	stop()
}

// save downloads a program that has the checksum published beside it.
func (i *installer) save(ctx context.Context, url, temporary, name string, received *atomic.Int64) error {
	if err := i.fetchVerified(ctx, url, temporary, received); err != nil {
		return err
	}
	return place(temporary, name)
}

// fetchVerified downloads a file that has the checksum published beside it.
func (i *installer) fetchVerified(ctx context.Context, url, to string, received *atomic.Int64) error {
	var published bytes.Buffer
	if err := i.fetch(ctx, url+".sha256", &published, received); err != nil {
		return err
	}
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if err := errors.Join(i.fetch(ctx, url, io.MultiWriter(file, sum), received), file.Close()); err != nil {
		return err
	}
	if got, want := fmt.Sprintf("%x", sum.Sum(nil)), strings.TrimSpace(published.String()); got != want {
		return fmt.Errorf("its SHA-256 is %s, but the published one is %q", got, want)
	}
	return nil
}

// fetch writes the content of a URL. It fails when the server has sent nothing for a time, so that a run without a network continues soon.
func (i *installer) fetch(ctx context.Context, url string, to io.Writer, received *atomic.Int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(i.stall, func() { cancel(fmt.Errorf("no data received for %s", i.stall)) })
	defer timer.Stop()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{CheckRedirect: checkRedirect}
	response, err := client.Do(request)
	if err == nil {
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		_, err = io.Copy(to, reading(func(into []byte) (int, error) {
			n, err := response.Body.Read(into)
			received.Add(int64(n))
			timer.Reset(i.stall)
			return n, err
		}))
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// checkRedirect refuses to leave encrypted connections, because the checksum comes from the same server.
func checkRedirect(next *http.Request, before []*http.Request) error {
	if len(before) >= 10 || next.URL.Scheme != "https" && before[0].URL.Scheme == "https" {
		return errors.New("it redirects too often, or to a server without encryption")
	}
	return nil
}

// reading is a function that reads.
type reading func([]byte) (int, error)

func (r reading) Read(into []byte) (int, error) { return r(into) }
