package ui

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tandem-addons/tandem/pkg/kube/endpoint"
)

// Collectors returns the metrics of the server and of its gate.
func (s *Server) Collectors() []prometheus.Collector {
	own := []prometheus.Collector{s.meters.connections, s.meters.livePages, s.meters.refusals}
	if gate, ok := s.Gate.(interface{ Collectors() []prometheus.Collector }); ok {
		own = append(own, gate.Collectors()...)
	}
	return own
}

// Serve serves requests and keeps the cache up to date until the context ends, or one of them fails.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := endpoint.NewServer(s, s.Limits.Timeouts)
	server.BaseContext = func(net.Listener) context.Context { return ctx } // streams end with it
	listener = s.Limits.connections(s.meters).Listen(listener)
	if s.TLS != nil {
		listener = tls.NewListener(listener, s.TLS)
	}
	ended := make(chan error, 2)
	go func() { ended <- s.Hub.Run(ctx) }()
	go func() { ended <- server.Serve(listener) }()
	var problem error
	select {
	case <-ctx.Done():
	case problem = <-ended:
	}
	stop()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if server.Shutdown(last) != nil { // browsers keep connections that they have not used yet
		problem = errors.Join(problem, server.Close())
	}
	if problem != nil {
		return fmt.Errorf("serving the dashboard: %w", problem)
	}
	return nil
}
