// Package pace decides how long a write may wait that a later one probably replaces. It touches no cluster.
package pace

import "time"

// Delay is how long a write waits: Min if the budget of such writes admits it, else Max. It needs no budget if Max is not longer.
type Delay struct{ Min, Max time.Duration }

// Within returns how long the write waits, zero if it does not; admit takes it from the budget, and reports whether that was not spent.
func (d Delay) Within(admit func() bool) time.Duration {
	if d.Max > d.Min && !admit() {
		return d.Max
	}
	return d.Min
}

// Interval limits how often something is written.
type Interval struct {
	// Min is how long every write waits, and Max how long a write waits if the budget is spent. Meanwhile, the budget is asked again after Retry.
	Min, Retry, Max time.Duration
}

// After returns the delay of a write that could have been made that long ago. The clock may have been set back since then.
func (i Interval) After(age time.Duration) Delay {
	age = age.Abs()
	if age < i.Min {
		return Delay{Min: i.Min - age}
	}
	return Delay{Max: min(i.Retry, i.Max-age)}
}
