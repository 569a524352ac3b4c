package environment

import (
	"context"
	"math"
	"net/http"

	"golang.org/x/sync/semaphore"
)

// flight tracks the writes in flight to an API server.
type flight struct{ *semaphore.Weighted }

func newFlight() flight { return flight{semaphore.NewWeighted(math.MaxInt64)} }

// carry sends writes without cancellation, because the API server may execute a request after its sender has cancelled it and ended.
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

// AwaitWrites waits until the API server has responded to every write of Config's clients. A stopped program writes nothing after that.
func (e *Environment) AwaitWrites() {
	_ = e.writes.Acquire(context.Background(), math.MaxInt64) // fails only if the context ends
	e.writes.Release(math.MaxInt64)
}
