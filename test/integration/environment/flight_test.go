package environment

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

func TestAWriteLandsAlthoughItsSenderHasGivenItUp(t *testing.T) {
	arrived, answer := make(chan struct{}), make(chan struct{})
	var written atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		close(arrived)
		select {
		case <-answer:
			written.Store(true)
		case <-request.Context().Done():
		}
	}))
	defer server.Close()
	e := &Environment{writes: newFlight()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		response, err := e.writes.carry(http.DefaultTransport).RoundTrip(request)
		if err != nil {
			t.Error(err)
			return
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}()
	<-arrived
	cancel()
	close(answer)
	e.AwaitWrites()
	if !written.Load() {
		t.Error("the write was given up")
	}
	if _, err := e.writes.carry(http.DefaultTransport).RoundTrip(request); err == nil {
		t.Error("a write is sent although its sender has ended")
	}
}
