package read

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/whatif"
)

// WhatIf reads clusters with their Instances, versions of Kubernetes and OperatorVersions. What the user may not read is missing.
func WhatIf(ctx context.Context, c client.Reader, clusters []string) (map[string]whatif.Cluster, error) {
	views, err := Views(ctx, c, clusters)
	if err != nil {
		return nil, err
	}
	if err := selectAll(ctx, c, views); err != nil {
		return nil, err
	}
	versions, err := VersionsOf(func(namespace string) ([]kudo.OperatorVersion, error) {
		return StoredVersions(ctx, c, namespace)
	}, slices.Collect(maps.Values(views))...)
	if err != nil {
		return nil, err
	}
	found := make(map[string]whatif.Cluster, len(views))
	for name, view := range views {
		found[name] = whatif.Cluster{Cluster: view, Versions: versions}
	}
	return found, nil
}

// VersionsOf reads the OperatorVersions in the namespaces of those that add-ons and Instances of clusters run or are configured with. stored returns
// those in a namespace.
func VersionsOf(stored func(namespace string) ([]kudo.OperatorVersion, error), clusters ...fleet.Cluster) (whatif.Versions, error) {
	versions := whatif.Versions{Stored: map[types.NamespacedName]*kudo.OperatorVersion{}, Unread: map[string]bool{}}
	for _, namespace := range whatif.Namespaces(clusters...) {
		found, err := stored(namespace)
		if apierrors.IsForbidden(err) {
			versions.Unread[namespace] = true
			continue
		}
		if err != nil {
			return versions, err
		}
		for i := range found {
			versions.Stored[client.ObjectKeyFromObject(&found[i])] = &found[i]
		}
	}
	return versions, nil
}
