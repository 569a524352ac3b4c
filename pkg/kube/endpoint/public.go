package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Public serves every client that reaches its address, with limits on what clients take before a handler knows who they are: a header of 1 MiB,
// which net/http accepts by default, takes more than 20 MiB of memory if it has many fields.
type Public struct {
	// Address is HOST:PORT.
	Address string
	Handler http.Handler
	// TLS is the configuration of HTTPS; nil for HTTP.
	TLS *tls.Config
	// MaxHeaderBytes is the maximum size of the header of a request, to which net/http adds 4 KiB.
	MaxHeaderBytes int
	// MaxConnections is the maximum number of connections, and MaxClientConnections that of one client.
	MaxConnections, MaxClientConnections int
	// Started is called when the address accepts connections; nil for nothing.
	Started func()
}

// ShutdownTimeout is how long requests in progress may take when the server stops.
const ShutdownTimeout = time.Minute

// NeedLeaderElection returns false: every replica serves.
func (*Public) NeedLeaderElection() bool { return false }

// Start serves requests until the context ends.
func (p *Public) Start(ctx context.Context) error {
	server, listener, err := p.Listen(ctx)
	if err != nil {
		return err
	}
	if p.Started != nil {
		p.Started()
	}
	return p.serve(ctx, server, listener)
}

// Listen returns a server with the limits, and its listener, which accepts connections from now on.
func (p *Public) Listen(ctx context.Context) (*http.Server, net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.Address)
	if err != nil {
		return nil, nil, fmt.Errorf("listening: %w", err)
	}
	listener = Connections{
		Max: p.MaxConnections, MaxPerClient: p.MaxClientConnections, Changed: func(float64) {}, Refused: func(string) {},
	}.Listen(listener)
	if p.TLS != nil {
		listener = tls.NewListener(listener, p.TLS)
	}
	server := NewServer(p.Handler, Timeouts{})
	server.MaxHeaderBytes = p.MaxHeaderBytes
	return server, listener, nil
}

func (p *Public) serve(ctx context.Context, server *http.Server, listener net.Listener) error {
	stopped := make(chan error, 1)
	end := context.AfterFunc(ctx, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), ShutdownTimeout)
		defer cancel()
		stopped <- server.Shutdown(last)
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		end()
		return fmt.Errorf("serving %s: %w", p.Address, err)
	}
	return <-stopped
}
