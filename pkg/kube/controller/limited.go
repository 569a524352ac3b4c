package controller

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tandem-addons/tandem/pkg/kube/inflight"
)

// limited limits the requests in flight. A request that the server answers with 429 is not in flight while client-go waits to repeat it.
type limited struct {
	next    http.RoundTripper
	limiter *inflight.Limiter
}

// RoundTrip sends the request as soon as the limit permits.
func (l *limited) RoundTrip(request *http.Request) (response *http.Response, err error) {
	to := endpointOf(request)
	if to.exempt(request) {
		return l.next.RoundTrip(request)
	}
	late := l.limiter.Do(request.Context(), func() inflight.Request {
		began := time.Now()
		response, err = l.next.RoundTrip(request)
		return inflight.Request{Kind: to.kind(request.Method), Began: began, Ended: time.Now(), Result: resultOf(response, err)}
	})
	if late == nil {
		return response, err
	}
	if request.Body != nil {
		_ = request.Body.Close() // a RoundTripper closes it also if it fails
	}
	return nil, fmt.Errorf("waiting for other requests to the API server: %w", late)
}

// WrappedRoundTripper lets client-go find the settings of the connection.
func (l *limited) WrappedRoundTripper() http.RoundTripper { return l.next }

// resultOf returns what a response says about the load of the API server. Requests that it rejects for another reason, such as a
// conflict, cost less than those that it executes, and do not count.
func resultOf(response *http.Response, err error) inflight.Result {
	switch {
	case err != nil:
		return inflight.Failed
	case response.StatusCode == http.StatusTooManyRequests:
		return inflight.Throttled
	case response.StatusCode >= http.StatusBadRequest:
		return inflight.Failed
	}
	return inflight.Completed
}

// endpoint is the destination of a request, without the names of namespace and object.
type endpoint struct {
	// groupVersion is such as v1 or apps/v1; the others are empty outside of the API groups.
	groupVersion, resource, subresource string
	// named distinguishes a request for one object from one for a collection.
	named bool
}

// endpointOf parses the path of a request, as the API server does.
func endpointOf(request *http.Request) endpoint {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	start := slices.IndexFunc(parts, func(part string) bool { return part == "api" || part == "apis" }) // after the path of a proxy
	switch {
	case start >= 0 && parts[start] == "api" && len(parts) > start+2:
		return endpointIn(parts[start+1], parts[start+2:])
	case start >= 0 && parts[start] == "apis" && len(parts) > start+3:
		return endpointIn(parts[start+1]+"/"+parts[start+2], parts[start+3:])
	}
	return endpoint{}
}

// endpointIn parses the rest of a path in an API group.
func endpointIn(groupVersion string, parts []string) endpoint {
	namespaced := parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize"
	if namespaced {
		parts = parts[2:]
	}
	e := endpoint{groupVersion: groupVersion, resource: parts[0], named: len(parts) > 1}
	if len(parts) > 2 {
		e.subresource = parts[2]
	}
	return e
}

// kind returns the name of the requests of similar cost.
func (e endpoint) kind(method string) string {
	if method == http.MethodGet && e.resource != "" && !e.named {
		method = "LIST"
	}
	return strings.Join([]string{method, e.groupVersion, e.resource, e.subresource}, " ")
}

// exempt reports whether a request is not limited: because it ends with its client's interest and not with an answer, or because it is a
// heartbeat, which must not wait for any other.
func (e endpoint) exempt(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1" || request.Header.Get("Upgrade") != "" ||
		slices.Contains([]string{"log", "exec", "attach", "portforward", "proxy"}, e.subresource) ||
		e.resource == "leases" && strings.HasPrefix(e.groupVersion, "coordination.k8s.io/")
}
