package change

import (
	"golang.org/x/sync/errgroup"
)

// writesAtOnce is how many clusters are written to at a time.
const writesAtOnce = 10

// atOnce does so many things, writesAtOnce at a time, and tells of each in their order, as soon as it and all before it are done.
func atOnce(count int, do, tell func(i int)) {
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
		tell(i)
	}
}
