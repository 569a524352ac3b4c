// Package spread says how times are distributed. It touches no cluster.
package spread

import (
	"math"
	"slices"
	"time"
)

// Spread is the distribution of some times, in milliseconds; zero where there are none.
type Spread struct {
	P50 float64 `json:"p50Milliseconds"`
	P99 float64 `json:"p99Milliseconds"`
	Max float64 `json:"maxMilliseconds"`
}

// Of is the distribution of durations.
func Of(durations []time.Duration) Spread {
	sorted := slices.Sorted(slices.Values(durations))
	return Spread{P50: percentile(sorted, 0.50), P99: percentile(sorted, 0.99), Max: percentile(sorted, 1)}
}

// percentile is the smallest of the durations that a fraction of them does not exceed.
func percentile(sorted []time.Duration, fraction float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := max(0, int(math.Ceil(fraction*float64(len(sorted))))-1)
	return float64(sorted[at].Microseconds()) / 1000
}
