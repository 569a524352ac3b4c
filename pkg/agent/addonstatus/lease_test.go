package addonstatus

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLeasesOfAgentsThatStartTogetherAreRenewedAllThroughThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const agents, period, minutes = 1000, time.Minute, 10
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var mutex sync.Mutex
		renewals := map[int]int{} // by the second
		var group sync.WaitGroup
		for range agents {
			group.Go(func() {
				periodically(ctx, period, func(context.Context) {
					mutex.Lock()
					defer mutex.Unlock()
					renewals[int(time.Since(start)/time.Second)]++
				})
			})
		}
		<-time.After(minutes*period + time.Second)
		cancel()
		group.Wait()
		if renewals[0] < agents {
			t.Errorf("%d agents renew their leases at once, want all %d", renewals[0], agents)
		}
		delete(renewals, 0)
		all := 0
		for second, count := range renewals {
			all += count
			if count > 3*agents/60 {
				t.Errorf("%d agents renew their leases in second %d, want about %d", count, second, agents/60)
			}
		}
		if want := agents * minutes; all < want*9/10 || all > want*11/10 {
			t.Errorf("the leases are renewed %d times in %d minutes, want about %d", all, minutes, want)
		}
	})
}
