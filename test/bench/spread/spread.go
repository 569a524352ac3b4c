// Package spread summarizes repeated measurements: the distribution of durations, and the range of a number. It touches no cluster.
package spread

import (
	"math"
	"slices"
	"time"
)

// Spread is the distribution of durations in milliseconds; zero if there are none.
type Spread struct {
	P50 float64 `json:"p50Milliseconds"`
	P99 float64 `json:"p99Milliseconds"`
	Max float64 `json:"maxMilliseconds"`
}

// Of returns the distribution of durations.
func Of(durations []time.Duration) Spread {
	sorted := slices.Sorted(slices.Values(durations))
	return Spread{P50: percentile(sorted, 0.50), P99: percentile(sorted, 0.99), Max: percentile(sorted, 1)}
}

// percentile returns the smallest duration that is not exceeded by a fraction of the durations.
func percentile(sorted []time.Duration, fraction float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := max(0, int(math.Ceil(fraction*float64(len(sorted))))-1)
	return float64(sorted[at].Microseconds()) / 1000
}
