package spread_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/test/bench/spread"
)

func TestOf(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100-i) * time.Millisecond
	}
	for sentence, test := range map[string]struct {
		durations []time.Duration
		want      spread.Spread
	}{
		"nothing":           {nil, spread.Spread{}},
		"one is everything": {[]time.Duration{1500 * time.Microsecond}, spread.Spread{P50: 1.5, P99: 1.5, Max: 1.5}},
		"the longest is all there is of the last hundredth": {hundred, spread.Spread{P50: 50, P99: 99, Max: 100}},
		"of three the longest is the last hundredth": {
			[]time.Duration{30 * time.Millisecond, 5 * time.Millisecond, 7 * time.Millisecond}, spread.Spread{P50: 7, P99: 30, Max: 30},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, spread.Of(test.durations)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
