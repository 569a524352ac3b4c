package hubclient

import (
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// contact knows whether the hub answers: watches try again by themselves when it does not, and say nothing.
type contact struct {
	lock sync.Mutex
	// lost says why the last request had no answer; nil where it had one.
	lost error
	// changed tells whoever waits that the hub is away, or back, and say is what that one does then.
	changed chan struct{}
	say     func() error
}

func newContact() *contact {
	return &contact{changed: make(chan struct{}, 1), say: func() error { return nil }}
}

// watch sees the requests of all clients with that config.
func (c *contact) watch(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if request.Context().Err() == nil { // what is given up tells nothing
				c.note(err)
			}
			return response, err
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip does a request.
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
	default: // somebody is about to look anyway
	}
}

// text says that the hub does not answer; empty where it does.
func (c *contact) text() string {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.lost == nil {
		return ""
	}
	words := strings.Split(terminal.OneLine(c.lost.Error()), ": ")
	return "does not answer (" + words[len(words)-1] + "): what goes on there goes on, and is shown again once it does"
}
