package change

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/action"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
)

// uninstallChanges returns the changes made by uninstalling the found objects.
func uninstallChanges(ctx context.Context, c client.Client, found []installed) ([]action.Change, error) {
	state := action.NewState(ctx, hubclient.Remembering(c, c))
	var changes []action.Change
	for _, i := range found {
		if i.Instance == nil {
			continue // the add-on has no applied objects
		}
		going, err := state.Remove(ctx, action.Removal(i))
		if err != nil {
			return nil, err
		}
		changes = append(changes, going)
	}
	return changes, nil
}
