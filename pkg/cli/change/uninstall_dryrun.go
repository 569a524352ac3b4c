package change

import (
	"context"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/kube/content"
)

// uninstallChanges returns the changes made by uninstalling the found objects. Nothing changes on detached clusters.
func uninstallChanges(ctx context.Context, c client.Client, found []installed, detached sets.Set[string]) ([]change.Change, error) {
	state := change.NewState(ctx, read.NewCachingReader(content.NewFillingReader(c)))
	changes := make([]change.Change, len(found))
	for i, removed := range found {
		if detached.Has(removed.Namespace) {
			changes[i] = change.Change{Cluster: removed.Namespace, Object: removed.String(), Warnings: []string{detachedText}}
			continue
		}
		var err error
		if changes[i], err = state.Remove(ctx, change.Removal(removed)); err != nil {
			return nil, err
		}
	}
	return changes, nil
}
