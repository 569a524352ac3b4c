package environment

import (
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tandem-addons/tandem/test/faults/proxy"
)

// MakeStale makes clients built from config fill the caches of one resource with its state at a resource version, and withholds their watch
// events until current is closed: like those of a standby addon-manager whose watch hangs. The channel receives a value once a client
// starts the watch.
func MakeStale(config *rest.Config, resource, version string, current <-chan struct{}) (watched <-chan struct{}) {
	started := make(chan struct{}, 1)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			query := request.URL.Query()
			switch {
			case request.Method != http.MethodGet || !strings.HasSuffix(request.URL.Path, "/"+resource):
			case query.Get("sendInitialEvents") == "true": // the client lists instead
				return unprocessable(request), nil
			case query.Get("watch") == "true":
				select {
				case started <- struct{}{}:
				default:
				}
				select {
				case <-current:
				case <-request.Context().Done():
					return nil, request.Context().Err()
				}
			case proxy.FillsCache(query):
				query.Set("resourceVersion", version)
				query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
				request = request.Clone(request.Context())
				request.URL.RawQuery = query.Encode()
			}
			return next.RoundTrip(request)
		})
	})
	return started
}

// unprocessable returns the response of an API server that does not support a parameter.
func unprocessable(request *http.Request) *http.Response {
	return &http.Response{
		StatusCode: http.StatusUnprocessableEntity, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
		Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)),
	}
}
