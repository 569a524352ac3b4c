package change

import (
	"context"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/action"
	"github.com/tandem-addons/tandem/pkg/survey"
)

// uninstallChanges returns the changes made by uninstalling the found objects. Nothing changes on detached clusters.
func uninstallChanges(ctx context.Context, c client.Client, found []installed, detached sets.Set[string]) ([]action.Change, error) {
	state := action.NewState(ctx, survey.Remembering(c))
	changes := make([]action.Change, len(found))
	for i, removed := range found {
		if detached.Has(removed.Namespace) {
			changes[i] = action.Change{Cluster: removed.Namespace, Object: removed.String(), Warnings: []string{detachedText}}
			continue
		}
		var err error
		if changes[i], err = state.Remove(ctx, action.Removal(removed)); err != nil {
			return nil, err
		}
	}
	return changes, nil
}
