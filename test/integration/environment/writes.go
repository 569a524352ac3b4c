package environment

import (
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Writes records write requests, except writes of leases and events.
type Writes struct {
	mutex    sync.Mutex
	requests []string
}

// RecordWrites returns a copy of config that records the writes of its clients.
func RecordWrites(config *rest.Config) (*rest.Config, *Writes) {
	writes := &Writes{}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			writes.record(request)
			return next.RoundTrip(request)
		})
	})
	return config, writes
}

// Requests returns the recorded writes, each as METHOD PATH.
func (w *Writes) Requests() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return append([]string(nil), w.requests...)
}

func (w *Writes) record(request *http.Request) {
	path := request.URL.Path
	if request.Method == http.MethodGet || strings.Contains(path, "/leases/") || strings.HasPrefix(path, "/apis/events.k8s.io/") {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.requests = append(w.requests, request.Method+" "+path)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
