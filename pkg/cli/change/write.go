package change

import (
	"context"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/console/change"
)

// forbiddenText is the warning of a dry run about a change that the user may not make.
const forbiddenText = "you do not have the permission to make this change"

// checkAll asks the hub whether it would refuse the changes of each cluster: for a dry run all of them, else those that a refusal could leave
// incomplete.
func checkAll(ctx context.Context, h hubclient.Hub, changes [][]change.Change, isShown bool) []error {
	check := change.CheckParts
	if isShown {
		check = change.Check
	}
	problems := make([]error, len(changes))
	atOnce(len(changes), func(i int) { problems[i] = check(ctx, requester(h), changes[i]) }, func(int) {})
	return problems
}

// requester returns a client that writes as the plugin.
func requester(c client.Client) client.Client {
	return client.WithFieldOwner(c, hubclient.FieldManager)
}

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
