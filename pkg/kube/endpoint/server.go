// Package endpoint limits what the clients of an HTTP server take: time, connections, concurrent requests, and checks of credentials. It does
// not touch a cluster.
package endpoint

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Timeouts are the times after which a server ends a connection: 20 s and a minute if they are zero.
type Timeouts struct {
	// Request is how long a client may take to send a request, and Response how long until it has received the response.
	Request, Response time.Duration
}

const (
	requestTimeout  = 20 * time.Second
	responseTimeout = time.Minute
	// headerTimeout is how long a client may take for the handshake and the header of a request.
	headerTimeout = 10 * time.Second
	// idleTimeout is how long a connection may be without a request.
	idleTimeout = 2 * time.Minute
	// maxHeaderBytes is the maximum size of the header of a request, which has the cookies of all applications on the host.
	maxHeaderBytes = 32 << 10
)

// OrDefault returns the timeouts, with the defaults in place of zeros.
func (t Timeouts) OrDefault() Timeouts {
	return Timeouts{Request: cmp.Or(t.Request, requestTimeout), Response: cmp.Or(t.Response, responseTimeout)}
}

// NewServer returns a server that ends slow requests and responses.
func NewServer(handler http.Handler, t Timeouts) *http.Server {
	t = t.OrDefault()
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: min(headerTimeout, t.Request), ReadTimeout: t.Request, WriteTimeout: t.Response,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
}

// ReadBody reads the whole body of a request, before anything else is done for it. Its error wraps http.MaxBytesError if the body is longer
// than the maximum, and os.ErrDeadlineExceeded if it is too slow.
func ReadBody(w http.ResponseWriter, r *http.Request, maxBytes int64) error {
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
	if err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(content))
	return nil
}
