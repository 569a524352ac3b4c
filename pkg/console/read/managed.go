package read

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/console/fleet"
)

// ManagedByName reads what the ManagedClusters report about themselves; nil if the user lacks permission or the hub does not have the kind. The
// reader has to be a cache: the list is not paged.
func ManagedByName(ctx context.Context, cached client.Reader) (map[string]fleet.Managed, error) {
	var list clusterv1.ManagedClusterList
	err := cached.List(ctx, &list, client.UnsafeDisableDeepCopy)
	if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the ManagedClusters: %w", err)
	}
	found := make(map[string]fleet.Managed, len(list.Items))
	for i := range list.Items {
		found[list.Items[i].Name] = fleet.ManagedOf(&list.Items[i])
	}
	return found, nil
}
