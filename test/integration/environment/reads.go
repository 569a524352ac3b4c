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
	last     time.Time
}

// RecordReads returns a copy of config that records the reads of its clients.
func RecordReads(config *rest.Config) (*rest.Config, *Reads) {
	reads := &Reads{last: time.Now()}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodGet {
				reads.mutex.Lock()
				reads.requests, reads.last = append(reads.requests, request.URL.String()), time.Now()
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

// Quiet reports whether nothing was read for three seconds.
func (r *Reads) Quiet() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return time.Since(r.last) > 3*time.Second
}
