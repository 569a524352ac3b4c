package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/tandem-addons/tandem/pkg/kube/endpoint"
)

// The limits of a request. API servers send two objects at most, accept none of more than 3 MiB themselves, and wait for 30 s at most.
const (
	maxRequest     = 8 << 20
	requestTimeout = 30 * time.Second
)

// The limits of the requests of a queue.
const (
	// maxBodyBytes is the size of the bodies of all requests that are read, wait or are served.
	maxBodyBytes = 16 << 20
	// maxConversionCost and maxAdmissionCost are the memory of one request, and of all requests of one peer that are served at a time. An object
	// of the add-on API of 1.5 MiB can be converted: etcd stores no larger ones, and without conversion API servers cannot read it, nor any list
	// with it.
	maxConversionCost = 120 << 20
	maxAdmissionCost  = 72 << 20
	// maxServed and maxPeerServed are how many requests are served at a time, at most: several for each core, because some read the API server.
	maxServed     = 8
	maxPeerServed = 6
)

// queue bounds the memory of the requests that are read and served at the same time.
type queue struct {
	bodies *endpoint.Intake
	memory *limiter
	cost   cost
	// timeout is how long a request waits.
	timeout time.Duration
}

// newQueue returns a queue for requests that cost up to max each.
func newQueue(of cost, max int64, timeout time.Duration) *queue {
	return &queue{bodies: endpoint.NewIntake(maxBodyBytes), memory: newLimiter(max/maxPeerServed*maxServed, max), cost: of, timeout: timeout}
}

// through returns a handler that serves requests in the queue. They are read before they wait: one that is sent slowly takes no place in it. They
// are decoded after their cost fits. One that waits too long is answered with 429 and Retry-After, and an API server repeats it until the
// webhook's own timeout.
func (q *queue) through(next http.Handler) http.Handler {
	return limitRequests(q.readBodies(q.limitMemory(next)), maxRequest, requestTimeout)
}

// readBodies returns a handler that reads the bodies of requests and determines their cost, as long as there is memory for them.
func (q *queue) readBodies(next func(w http.ResponseWriter, r *http.Request, body []byte, cost int64)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		weighed := &weighing{ReadCloser: r.Body, of: q.cost, max: q.memory.maxPerPeer}
		r.Body = weighed
		body, release, err := q.bodies.Read(w, r)
		var large *http.MaxBytesError
		switch {
		case errors.Is(err, endpoint.ErrFull):
			tooMany(w)
		case errors.Is(err, errCostly):
			http.Error(w, fmt.Sprintf("decoding the request takes more than the limit of %d MiB", q.memory.maxPerPeer>>20), http.StatusRequestEntityTooLarge)
		case errors.As(err, &large):
			http.Error(w, fmt.Sprintf("the request has more than %d bytes", large.Limit), http.StatusRequestEntityTooLarge)
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		default:
			defer release()
			next(w, r, body, weighed.cost())
		}
	})
}

// limitMemory returns a handler that serves each request once its cost fits. Bodies must be JSON objects: the API's decoders would take
// other texts for YAML, which expands.
func (q *queue) limitMemory(next http.Handler) func(w http.ResponseWriter, r *http.Request, body []byte, cost int64) {
	return func(w http.ResponseWriter, r *http.Request, body []byte, cost int64) {
		if !isObject(body) || !json.Valid(body) {
			http.Error(w, "the request is not a JSON object", http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), q.timeout)
		defer cancel()
		release, err := q.memory.acquire(ctx, peerOf(r), max(cost, q.memory.total/maxServed))
		if err != nil {
			tooMany(w)
			return
		}
		defer release()
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	}
}

// tooMany asks a client to repeat its request.
func tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many requests at a time, try again", http.StatusTooManyRequests)
}

// limitRequests ends requests that are longer or slower than any from an API server: a client that reaches the port could exhaust the
// process's memory.
func limitRequests(next http.Handler, length int64, duration time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, end := http.NewResponseController(w), time.Now().Add(duration)
		if err := errors.Join(connection.SetReadDeadline(end), connection.SetWriteDeadline(end)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, length)
		next.ServeHTTP(w, r)
	})
}

// isObject reports whether a JSON text is an object.
func isObject(text []byte) bool {
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{'
}

// peerOf returns the address of a request's sender, without the port.
func peerOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
