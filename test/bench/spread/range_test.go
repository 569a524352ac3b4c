package spread_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/test/bench/spread"
)

func TestOver(t *testing.T) {
	for sentence, test := range map[string]struct {
		numbers []float64
		want    spread.Range
	}{
		"nothing":                         {nil, spread.Range{}},
		"one is everything":               {[]float64{1.5}, spread.Range{Median: 1.5, Min: 1.5, Max: 1.5}},
		"the median of five is the third": {[]float64{5, 1, 9, 2, 3}, spread.Range{Median: 3, Min: 1, Max: 9}},
		"the median of two is the number between them": {[]float64{4, 1}, spread.Range{Median: 2.5, Min: 1, Max: 4}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, spread.Over(test.numbers)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
