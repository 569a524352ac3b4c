package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// copy downloads a file up to a size limit.
func (d *downloader) copy(ctx context.Context, from string, limit int64, to io.Writer) error {
	parent := ctx
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	watch := &watch{cancel: cancel}
	defer watch.stop()

	fail := func(err error) error { return fmt.Errorf("%s: %w", redacted(from), err) }
	unreachable := func(where string, err error) error {
		if late := context.Cause(ctx); parent.Err() == nil && late != nil {
			err = late
		}
		return &hostError{host: hostOf(from), err: fail(fmt.Errorf("%s%w", where, err))}
	}
	answer, err := d.host(hostOf(from)).first(func() (*http.Response, error) { return d.send(ctx, from, watch) })
	if errors.Is(err, errGivenUp) {
		return err
	}
	if err != nil {
		return unreachable("", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		return fail(errors.New(answer.Status))
	}
	if answer.ContentLength > limit {
		return fail(fmt.Errorf("it has %s, more than %s", megabytes(answer.ContentLength), megabytes(limit)))
	}
	body := &body{from: answer.Body, watch: watch, stall: d.timeout.stall, received: &d.received}
	written, err := io.Copy(to, io.LimitReader(body, limit+1))
	switch {
	case body.err != nil:
		return unreachable("after "+megabytes(written)+": ", body.err)
	case err != nil:
		return fail(err)
	case written > limit:
		return fail(fmt.Errorf("it has more than %s", megabytes(limit)))
	}
	return nil
}

// send requests a file and follows redirects. Each response has to arrive in time. The response has the file, or reports that the host does
// not have it; any other response is an error.
func (d *downloader) send(ctx context.Context, from string, watch *watch) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "tandem-controlplane")
	late := fmt.Errorf("no response within %s", d.timeout.answer)
	client := &http.Client{Transport: d.transport, CheckRedirect: func(next *http.Request, before []*http.Request) error {
		if len(before) >= 10 {
			return errors.New("it has more than ten redirects")
		}
		if next.URL.Scheme != "https" && before[0].URL.Scheme == "https" {
			return fmt.Errorf("it redirects to %s, which is not encrypted", next.URL.Host)
		}
		watch.allow(d.timeout.answer, late)
		return nil
	}}
	watch.allow(d.timeout.answer, late)
	defer watch.stop()
	answer, err := client.Do(request)
	var failed *url.Error
	if errors.As(err, &failed) {
		return nil, failed.Err // without the URL, which is long after a redirect
	}
	if err == nil && answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotFound {
		answer.Body.Close()
		return nil, errors.New(answer.Status)
	}
	return answer, err
}

// watch cancels a request that receives no data in time.
type watch struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func (w *watch) allow(timeout time.Duration, otherwise error) {
	w.stop()
	w.timer = time.AfterFunc(timeout, func() { w.cancel(otherwise) })
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// body is the body of a response that must keep arriving.
type body struct {
	from     io.Reader
	watch    *watch
	stall    time.Duration
	received *atomic.Int64
	err      error // why the response broke off
}

func (b *body) Read(into []byte) (int, error) {
	b.watch.allow(b.stall, fmt.Errorf("no data received for %s", b.stall))
	n, err := b.from.Read(into)
	b.watch.stop()
	b.received.Add(int64(n))
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}
