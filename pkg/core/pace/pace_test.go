package pace

import (
	"testing"
	"time"
)

func TestAWriteBeyondTheBudgetWaitsLonger(t *testing.T) {
	for what, test := range map[string]struct {
		delay       Delay
		admits      bool
		want        time.Duration
		wantedToAsk bool
	}{
		"it is admitted":                        {Delay{Min: 1, Max: 10}, true, 1, true},
		"the budget is spent":                   {Delay{Min: 1, Max: 10}, false, 10, true},
		"it need not wait, and is admitted":     {Delay{Max: 10}, true, 0, true},
		"it need not wait, the budget is spent": {Delay{Max: 10}, false, 10, true},
		"it needs no budget":                    {Delay{Min: 1}, false, 1, false},
		"it needs no budget and need not wait":  {Delay{}, false, 0, false},
		"the longer wait has ended":             {Delay{Max: -1}, false, 0, false},
	} {
		asked := false
		got := test.delay.Within(func() bool {
			asked = true
			return test.admits
		})
		if got != test.want || asked != test.wantedToAsk {
			t.Errorf("%s: waits for %d, want %d; takes from the budget: %t", what, got, test.want, asked)
		}
	}
}

func TestIntervalBetweenWrites(t *testing.T) {
	limited := Interval{Min: 2 * time.Second, Retry: 10 * time.Second, Max: time.Minute}
	for what, test := range map[string]struct {
		interval     Interval
		age          time.Duration
		few, tooMany time.Duration
	}{
		"right after another":                 {limited, 0, 2 * time.Second, 2 * time.Second},
		"just before the minimum":             {limited, 2*time.Second - 1, 1, 1},
		"at the minimum":                      {limited, 2 * time.Second, 0, 10 * time.Second},
		"when a retry just fits":              {limited, 50 * time.Second, 0, 10 * time.Second},
		"when a retry would exceed the limit": {limited, 50*time.Second + 1, 0, 10*time.Second - 1},
		"just before the maximum":             {limited, time.Minute - 1, 0, 1},
		"at the maximum":                      {limited, time.Minute, 0, 0},
		"never before":                        {limited, time.Time{}.AddDate(2026, 0, 0).Sub(time.Time{}), 0, 0},
		"a clock that was set back a little":  {limited, -time.Second, time.Second, time.Second},
		"a clock that was set back by hours":  {limited, -time.Hour, 0, 0},
		"without a budget, too early":         {Interval{Min: time.Second}, time.Second - 1, 1, 1},
		"without a budget":                    {Interval{Min: time.Second}, time.Second, 0, 0},
	} {
		delay := test.interval.After(test.age)
		few, tooMany := delay.Within(func() bool { return true }), delay.Within(func() bool { return false })
		if few != test.few || tooMany != test.tooMany {
			t.Errorf("%s: waits for %s, or %s beyond the budget; want %s and %s", what, few, tooMany, test.few, test.tooMany)
		}
	}
}
