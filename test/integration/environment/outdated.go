package environment

import (
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Outdate makes the clients of config see one resource as of a resource version, like those of an API server whose watch cache is behind, until
// current is closed. Live reads are current. It returns a channel that receives something once a client watches the resource.
func Outdate(config *rest.Config, resource, version string, current <-chan struct{}) (watched <-chan struct{}) {
	begun := make(chan struct{}, 1)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			query := request.URL.Query()
			switch {
			case request.Method != http.MethodGet || !strings.HasSuffix(request.URL.Path, "/"+resource):
			case query.Get("sendInitialEvents") == "true": // the client lists instead
				return unprocessable(request), nil
			case query.Get("watch") == "true":
				select {
				case begun <- struct{}{}:
				default:
				}
				select {
				case <-current:
				case <-request.Context().Done():
					return nil, request.Context().Err()
				}
			case query.Get("resourceVersion") == "0":
				query.Set("resourceVersion", version)
				query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
				request = request.Clone(request.Context())
				request.URL.RawQuery = query.Encode()
			}
			return next.RoundTrip(request)
		})
	})
	return begun
}

// unprocessable returns the response of an API server that does not support a parameter.
func unprocessable(request *http.Request) *http.Response {
	return &http.Response{
		StatusCode: http.StatusUnprocessableEntity, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
		Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)),
	}
}
