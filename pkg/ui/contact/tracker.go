// Package contact tracks whether the dashboard reaches the hub, and keeps the answers of the hub for a short time.
package contact

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// VersionPath is the path of the hub's version, which users may not be permitted to read.
const VersionPath = "/version"

// Tracker tracks whether the hub was read completely, and since when it cannot be read.
type Tracker struct {
	lock     sync.Mutex
	complete bool
	// lost has the paths of the lists and watches whose last request failed, with the time of the first failure. What is shown is current only
	// if there are none, because requests for different kinds succeed again at different times.
	lost map[string]time.Time
	// ahead is the difference between the clock of the hub and the local one at the last response with a time.
	ahead time.Duration
}

// Observe returns a config for the cache. Its requests show whether the hub can be read.
func (t *Tracker) Observe(config *rest.Config, changed func()) *rest.Config {
	observed := rest.CopyConfig(config)
	observed.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil {
				t.date(response.Header.Get("Date"), time.Now())
			}
			stopped := errors.Is(request.Context().Err(), context.Canceled) // which says nothing about the hub
			if !stopped && t.note(request.URL.Path, fails(request.URL.Path, response, err), time.Now()) {
				changed()
			}
			return response, err
		})
	})
	return observed
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip executes a request.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// fails reports whether the response to a request means that the hub cannot be read.
func fails(path string, response *http.Response, err error) bool {
	if err != nil || response.StatusCode >= http.StatusInternalServerError {
		return true
	}
	return response.StatusCode >= http.StatusBadRequest && path != VersionPath
}

// note records the result of a request, and reports whether that changes the state.
func (t *Tracker) note(path string, failed bool, now time.Time) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	if _, lost := t.lost[path]; lost == failed {
		return false
	}
	if !failed {
		delete(t.lost, path)
		return true
	}
	if t.lost == nil {
		t.lost = map[string]time.Time{}
	}
	t.lost[path] = now
	return true
}

// date compares the time in a response with the local one.
func (t *Tracker) date(header string, now time.Time) {
	stamped, err := http.ParseTime(header)
	if err != nil {
		return
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	t.ahead = stamped.Sub(now)
}

// Now returns the time of the hub's clock; the local time before the first response.
func (t *Tracker) Now() time.Time {
	t.lock.Lock()
	defer t.lock.Unlock()
	return time.Now().Add(t.ahead)
}

// MarkComplete records that the hub was read completely.
func (t *Tracker) MarkComplete() {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.complete = true
}

// State reports whether the hub was read completely, and since when it cannot be read; zero if it can.
func (t *Tracker) State() (complete bool, lost time.Time) {
	t.lock.Lock()
	defer t.lock.Unlock()
	for _, since := range t.lost {
		if lost.IsZero() || since.Before(lost) {
			lost = since
		}
	}
	return t.complete, lost
}
