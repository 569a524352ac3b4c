package spread

import "slices"

// Range is the range of a number that was measured several times; zero if it was not.
type Range struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Over returns the range of numbers.
func Over(numbers []float64) Range {
	if len(numbers) == 0 {
		return Range{}
	}
	sorted := slices.Sorted(slices.Values(numbers))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return Range{Median: median, Min: sorted[0], Max: sorted[len(sorted)-1]}
}
