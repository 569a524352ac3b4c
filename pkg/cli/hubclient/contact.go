package hubclient

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tandem-addons/tandem/pkg/text"
)

// contact tracks whether the hub responds, because watches retry silently when it does not.
type contact struct {
	lock sync.Mutex
	// lost is the error of the last request, or nil if it succeeded.
	lost error
	// changed signals that the hub became unreachable or reachable; print is called on each signal.
	changed chan struct{}
	print   func() error
	// ahead is the difference between the clock of the hub and the local one at the last response with a time; dated is whether there was one.
	ahead time.Duration
	dated bool
	// hint is why nothing may change, for commands that follow the hub; empty if nothing is known.
	hint string
}

func newContact() *contact {
	return &contact{changed: make(chan struct{}, 1), print: func() error { return nil }}
}

// watch observes the requests of all clients that use the config.
func (c *contact) watch(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			sent := time.Now()
			response, err := next.RoundTrip(request)
			if err == nil {
				c.date(response.Header.Get("Date"), sent, time.Now())
			}
			if request.Context().Err() == nil { // a cancelled request says nothing about the hub
				c.note(err)
			}
			return response, err
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip executes a request.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func (c *contact) note(err error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if (c.lost == nil) == (err == nil) {
		return
	}
	c.lost = err
	select {
	case c.changed <- struct{}{}:
	default: // a signal is already pending
	}
}

// date compares the time in a response, which has no fractions of a second, with the middle of its request.
func (c *contact) date(header string, sent, received time.Time) {
	stamped, err := http.ParseTime(header)
	if err != nil {
		return
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.ahead, c.dated = stamped.Add(time.Second/2).Sub(sent.Add(received.Sub(sent)/2)), true
}

// Ahead returns the difference between the clock of the hub and the local one, and whether a response had a time.
func (h Hub) Ahead() (time.Duration, bool) {
	h.contact.lock.Lock()
	defer h.contact.lock.Unlock()
	return h.contact.ahead, h.contact.dated
}

// Now returns the time of the hub's clock; the local time before the first response.
func (h Hub) Now() time.Time {
	ahead, _ := h.Ahead()
	return time.Now().Add(ahead)
}

// text returns a message if the hub does not respond, or an empty string.
func (c *contact) text() string {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.lost == nil {
		return ""
	}
	words := strings.Split(text.JoinMessage(c.lost.Error()), ": ")
	return "is unreachable (" + words[len(words)-1] + "): operations continue there, and are shown again once it reconnects"
}
