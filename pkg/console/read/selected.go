package read

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/core/selector"
)

// readByName is the number of clusters up to which each ManagedCluster is read by its name.
const readByName = 20

// selectClusters reads what selectors of dependencies read of the ManagedClusters, if there are any.
func selectClusters(ctx context.Context, c client.Reader, definitions map[string]fleet.Definition, views map[string]fleet.Cluster) error {
	if !anyNeed(definitions, selectsClusters) {
		return nil
	}
	return selectAll(ctx, c, views)
}

// selectAll reads what selectors of dependencies read of the ManagedClusters.
func selectAll(ctx context.Context, c client.Reader, views map[string]fleet.Cluster) error {
	var all map[string]selector.Cluster
	if len(views) > readByName {
		var err error
		if all, err = allSelected(ctx, c); err != nil || all == nil {
			return err
		}
	}
	for name, view := range views {
		found, listed := all[name]
		view.Selected = &found
		if !listed {
			var err error
			if view.Selected, err = SelectorCluster(ctx, c, name); err != nil || view.Selected == nil {
				return err
			}
		}
		views[name] = view
	}
	return nil
}

// SelectorCluster reads what selectors of dependencies read of a ManagedCluster; nil if the user lacks permission.
func SelectorCluster(ctx context.Context, c client.Reader, name string) (*selector.Cluster, error) {
	var cluster clusterv1.ManagedCluster
	err := c.Get(ctx, client.ObjectKey{Name: name}, &cluster)
	switch {
	case apierrors.IsForbidden(err):
		return nil, nil
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return &selector.Cluster{Name: name}, nil
	case err != nil:
		return nil, fmt.Errorf("reading ManagedCluster %q: %w", name, err)
	}
	return new(selector.ClusterOf(&cluster)), nil
}

// allSelected reads what selectors of dependencies read of each ManagedCluster; none if the user lacks permission.
func allSelected(ctx context.Context, c client.Reader) (map[string]selector.Cluster, error) {
	found := map[string]selector.Cluster{}
	for page := (clusterv1.ManagedClusterList{}); ; {
		next := page.Continue
		page = clusterv1.ManagedClusterList{}
		err := c.List(ctx, &page, client.Limit(PageSize), client.Continue(next))
		if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing the ManagedClusters: %w", err)
		}
		for i := range page.Items {
			found[page.Items[i].Name] = selector.ClusterOf(&page.Items[i])
		}
		if page.Continue == "" {
			return found, nil
		}
	}
}

// KubernetesVersions returns the versions of Kubernetes that ManagedClusters report, each once and without the prefix v.
func KubernetesVersions(ctx context.Context, c client.Reader) ([]string, error) {
	all, err := allSelected(ctx, c)
	var versions []string
	for _, cluster := range all {
		if version := strings.TrimPrefix(cluster.KubernetesVersion, "v"); version != "" {
			versions = append(versions, version)
		}
	}
	slices.Sort(versions)
	return slices.Compact(versions), err
}

func selectsClusters(need addonv1alpha1.AddonDependency) bool {
	return !selector.SelectsAll(need.Clusters)
}

func hasAlternatives(need addonv1alpha1.AddonDependency) bool { return len(need.Alternatives) > 0 }

func anyNeed(definitions map[string]fleet.Definition, is func(addonv1alpha1.AddonDependency) bool) bool {
	for _, definition := range definitions {
		if slices.ContainsFunc(definition.Needs, is) {
			return true
		}
	}
	return false
}
