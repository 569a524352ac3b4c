package inflight

import "time"

// Request is a request that has ended.
type Request struct {
	// Kind groups requests of similar cost, such as reads of one resource: only the latencies of the same kind are compared.
	Kind         string
	Began, Ended time.Time
	Result       Result

	// inFlight is the number of requests in flight when it began, including itself.
	inFlight int
}

// Result is what a request's end says about the load of the server.
type Result int

const (
	// Completed: the server executed the request. Its latency counts.
	Completed Result = iota
	// Throttled: the server refused the request because it has too many.
	Throttled
	// Failed: the request was not executed. Its latency says nothing.
	Failed
)
