package webhook

import (
	"net/http"
	"time"
)

// queue bounds the number of requests that are served at a time, because each one holds up to two objects in memory.
type queue struct {
	slots chan struct{}
	// patience is how long a request waits for a slot.
	patience time.Duration
}

// mostAtATime is the number of requests of one queue that are served at a time: several for each core, because some read the API server.
const mostAtATime = 8

// newQueue returns an empty queue.
func newQueue(patience time.Duration) *queue {
	return &queue{slots: make(chan struct{}, mostAtATime), patience: patience}
}

// through returns a handler that serves requests in the queue. One that waits too long is answered with 429 and Retry-After, and an API server
// repeats it until the webhook's own timeout.
func (q *queue) through(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case q.slots <- struct{}{}:
			defer func() { <-q.slots }()
			next.ServeHTTP(w, r)
		case <-time.After(q.patience):
			tooMany(w)
		case <-r.Context().Done():
		}
	})
}

// tooMany tells a client to repeat its request.
func tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many requests at a time, try again", http.StatusTooManyRequests)
}
