package environment

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Writes records write requests, except writes of leases and events.
type Writes struct {
	mutex    sync.Mutex
	requests []string
	answers  []string
}

// RecordWrites returns a copy of config that records the writes of its clients.
func RecordWrites(config *rest.Config) (*rest.Config, *Writes) {
	writes := &Writes{}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			recorded := writes.record(request)
			response, err := next.RoundTrip(request)
			if recorded {
				writes.answer(request, response, err)
			}
			return response, err
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

// Of returns the recorded writes whose path contains the text. Objects that earlier specs left behind may be written, too: a spec judges the
// writes of its own ones.
func (w *Writes) Of(part string) []string {
	return slices.DeleteFunc(w.Requests(), func(request string) bool { return !strings.Contains(request, part) })
}

// Answers returns the recorded writes that have been answered, each as STATUS METHOD PATH, in the order of the answers.
func (w *Writes) Answers() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return append([]string(nil), w.answers...)
}

func (w *Writes) answer(request *http.Request, response *http.Response, err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	status := fmt.Sprint(err)
	if err == nil {
		status = strconv.Itoa(response.StatusCode)
	}
	w.answers = append(w.answers, status+" "+request.Method+" "+request.URL.Path)
}

func (w *Writes) record(request *http.Request) (recorded bool) {
	path := request.URL.Path
	if request.Method == http.MethodGet || request.URL.Query().Has("dryRun") || strings.Contains(path, "/leases/") || strings.HasPrefix(path, "/apis/events.k8s.io/") {
		return false
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.requests = append(w.requests, request.Method+" "+path)
	return true
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
