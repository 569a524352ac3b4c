package main

import (
	"errors"
	"net/http"
	"sync"
)

// host is a server that serves files.
type host struct {
	mu       sync.Mutex
	reached  bool
	failed   bool
	reported bool
}

var errGivenUp = errors.New("the host has failed before")

// hostError is the error of a server that is unreachable, breaks off a response, or rejects a request.
type hostError struct {
	host string
	err  error
}

func (e *hostError) Error() string { return e.err.Error() }
func (e *hostError) Unwrap() error { return e.err }

func (d *downloader) host(name string) *host {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hosts[name] == nil {
		d.hosts[name] = &host{}
	}
	return d.hosts[name]
}

// first sends a request, unless the host has failed. Other requests wait for the response to the first one, so that without a network only
// one request times out.
func (h *host) first(send func() (*http.Response, error)) (*http.Response, error) {
	h.mu.Lock()
	if h.failed {
		h.mu.Unlock()
		return nil, errGivenUp
	}
	if h.reached {
		h.mu.Unlock()
		return send()
	}
	defer h.mu.Unlock()
	answer, err := send()
	h.reached, h.failed = err == nil, err != nil
	return answer, err
}

// giveUp makes all later requests fail, and reports whether this is the first call.
func (h *host) giveUp() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := !h.reported
	h.failed, h.reported = true, true
	return first
}
