package change

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
)

// showChanges prints the changes. It returns an error with the number of clusters on which the change is refused.
func showChanges(streams genericiooptions.IOStreams, o *terminal.Output, changes []change.Change, refused change.Refusals) error {
	data := change.DryRunOf(changes, refused)
	if err := o.Print(streams.Out, terminal.Shown{Text: dryRunText(data, o.Format == terminal.FormatWide), Data: data}); err != nil {
		return err
	}
	return failingError(data, refused)
}

// failingError returns an error with the number of clusters on which a change that is only shown would fail; nil if there is none.
func failingError(data change.DryRun, refused change.Refusals) error {
	failing := slices.Collect(maps.Keys(refused))
	for _, group := range data.Changes {
		if group.Err() != nil {
			failing = append(failing, group.Clusters...)
		}
	}
	slices.Sort(failing)
	failing = slices.Compact(failing)
	if len(failing) == 0 {
		return nil
	}
	return fmt.Errorf("the change would fail on %s; nothing was written", terminal.OnClusters(failing))
}
