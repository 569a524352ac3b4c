package ui

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// versionPath is the path of the hub's version, which users may not be permitted to read.
const versionPath = "/version"

// contact tracks whether the hub was read completely, and since when it cannot be read.
type contact struct {
	lock     sync.Mutex
	complete bool
	// lost has the paths of the lists and watches whose last request failed, with the time of the first failure. What is shown is current only
	// if there are none, because requests for different kinds succeed again at different times.
	lost map[string]time.Time
	// ahead is the difference between the clock of the hub and the local one at the last response with a time.
	ahead time.Duration
}

// observe returns a config for the cache. Its requests show whether the hub can be read.
func (c *contact) observe(config *rest.Config, changed func()) *rest.Config {
	observed := rest.CopyConfig(config)
	observed.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil {
				c.date(response.Header.Get("Date"), time.Now())
			}
			stopped := errors.Is(request.Context().Err(), context.Canceled) // which says nothing about the hub
			if !stopped && c.note(request.URL.Path, fails(request.URL.Path, response, err), time.Now()) {
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
	return response.StatusCode >= http.StatusBadRequest && path != versionPath
}

// note records the result of a request, and reports whether that changes the state.
func (c *contact) note(path string, failed bool, now time.Time) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	if _, lost := c.lost[path]; lost == failed {
		return false
	}
	if !failed {
		delete(c.lost, path)
		return true
	}
	if c.lost == nil {
		c.lost = map[string]time.Time{}
	}
	c.lost[path] = now
	return true
}

// date compares the time in a response with the local one.
func (c *contact) date(header string, now time.Time) {
	stamped, err := http.ParseTime(header)
	if err != nil {
		return
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.ahead = stamped.Sub(now)
}

// now returns the time of the hub's clock; the local time before the first response.
func (c *contact) now() time.Time {
	c.lock.Lock()
	defer c.lock.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *contact) markComplete() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.complete = true
}

// state reports whether the hub was read completely, and since when it cannot be read; zero if it can.
func (c *contact) state() (complete bool, lost time.Time) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, since := range c.lost {
		if lost.IsZero() || since.Before(lost) {
			lost = since
		}
	}
	return c.complete, lost
}
