package inspect

import (
	"context"
	"maps"
	"slices"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// viewsWith reads the add-ons and Instances of the selected clusters that have the add-on; of all selected clusters if it is empty. It
// returns an error if no cluster has it.
func viewsWith(ctx context.Context, h hubclient.Hub, where hubclient.Selection, addOn string) (map[string]fleet.Cluster, error) {
	clusters, err := where.Clusters(ctx, h)
	if err != nil {
		return nil, err
	}
	views, err := read.Views(ctx, h, clusters)
	if err != nil || addOn == "" {
		return views, err
	}
	enabled, defined := map[string]bool{}, false
	for cluster, view := range views {
		_, defined = view.Definitions[addOn]
		for name := range view.AddOns {
			enabled[name] = true
		}
		if view.AddOns[addOn] == nil {
			delete(views, cluster)
		}
	}
	if len(views) == 0 {
		return nil, notEnabled(addOn, defined, slices.Sorted(maps.Keys(enabled)))
	}
	return views, nil
}
