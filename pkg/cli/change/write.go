package change

import (
	"golang.org/x/sync/errgroup"
)

// writesAtOnce is the number of concurrent writes.
const writesAtOnce = 10

// atOnce calls do for count items, writesAtOnce at a time. It calls report in item order, as soon as an item and all previous items are
// done.
func atOnce(count int, do, report func(i int)) {
	done := make([]chan struct{}, count)
	for i := range done {
		done[i] = make(chan struct{})
	}
	go func() {
		var group errgroup.Group
		group.SetLimit(writesAtOnce)
		for i := range count {
			group.Go(func() error { do(i); close(done[i]); return nil })
		}
	}()
	for i := range count {
		<-done[i]
		report(i)
	}
}
