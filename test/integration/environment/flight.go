package environment

import (
	"context"
	"math"
	"net/http"

	"golang.org/x/sync/semaphore"
)

// flight holds the writes that are on their way to an API server.
type flight struct{ *semaphore.Weighted }

func newFlight() flight { return flight{semaphore.NewWeighted(math.MaxInt64)} }

// carry sends writes that cannot be cancelled: the API server may carry out a request after its sender has cancelled it and ended.
func (f flight) carry(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		ctx := request.Context()
		if request.Method == http.MethodGet || ctx.Err() != nil {
			return next.RoundTrip(request)
		}
		if err := f.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer f.Release(1)
		return next.RoundTrip(request.WithContext(context.WithoutCancel(ctx)))
	})
}

// Landed waits until the API server has answered every write of clients of Config. A program that has stopped writes nothing more then.
func (e *Environment) Landed() {
	_ = e.writes.Acquire(context.Background(), math.MaxInt64) // only the end of the context is an error
	e.writes.Release(math.MaxInt64)
}
