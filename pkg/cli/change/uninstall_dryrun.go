package change

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/action"
	"github.com/tandem-addons/tandem/pkg/survey"
)

// uninstallChanges returns the changes made by uninstalling the found objects.
func uninstallChanges(ctx context.Context, c client.Client, found []installed) ([]action.Change, error) {
	state := action.NewState(ctx, survey.Remembering(c))
	changes := make([]action.Change, len(found))
	for i, removed := range found {
		var err error
		if changes[i], err = state.Remove(ctx, action.Removal(removed)); err != nil {
			return nil, err
		}
	}
	return changes, nil
}
