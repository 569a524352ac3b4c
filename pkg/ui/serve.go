package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Serve serves requests and keeps the cache up to date until the context ends, or one of them fails.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, // streams end with it
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
