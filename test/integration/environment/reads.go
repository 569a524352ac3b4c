package environment

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Reads record read requests.
type Reads struct {
	mutex    sync.Mutex
	requests []string
	times    []time.Time // of the requests
}

// RecordReads returns a copy of config that records the reads of its clients.
func RecordReads(config *rest.Config) (*rest.Config, *Reads) {
	reads := &Reads{}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodGet {
				reads.mutex.Lock()
				reads.requests, reads.times = append(reads.requests, request.URL.String()), append(reads.times, time.Now())
				reads.mutex.Unlock()
			}
			return next.RoundTrip(request)
		})
	})
	return config, reads
}

// Of returns the reads whose URL contains the text.
func (r *Reads) Of(part string) []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(r.requests), func(request string) bool { return !strings.Contains(request, part) })
}

// Rests reports whether the last read whose URL contains the text was more than three seconds ago. There must have been one.
func (r *Reads) Rests(part string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for i := len(r.requests) - 1; i >= 0; i-- {
		if strings.Contains(r.requests[i], part) {
			return time.Since(r.times[i]) > 3*time.Second
		}
	}
	return false
}
