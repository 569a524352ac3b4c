// Package read reads the state of add-ons and Instances from the hub, or from a cache of it. It writes nothing.
package read

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/progress"
)

// WatchedByName is the number of clusters that are watched individually. For more clusters a single watch covers the whole fleet.
const WatchedByName = 20

// Fleet reads the definitions of the hub and the add-ons of the clusters.
func Fleet(ctx context.Context, c client.Reader, clusters []string) (map[string]fleet.Definition, map[string]fleet.Cluster, error) {
	return FleetIn(ctx, c, clusters, NamespacesOf(clusters))
}

// FleetIn is Fleet with the namespaces to list.
func FleetIn(
	ctx context.Context, c client.Reader, clusters, namespaces []string,
) (map[string]fleet.Definition, map[string]fleet.Cluster, error) {
	definitions, err := Definitions(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	clusterViews := make(map[string]fleet.Cluster, len(clusters))
	for _, cluster := range clusters {
		clusterViews[cluster] = fleet.Cluster{Name: cluster, Definitions: definitions, AddOns: map[string]*addonv1alpha1.ManagedClusterAddOn{}}
	}
	for _, namespace := range namespaces {
		for page := (addonv1alpha1.ManagedClusterAddOnList{}); ; {
			next := page.Continue
			page = addonv1alpha1.ManagedClusterAddOnList{}
			if err := c.List(ctx, &page, client.InNamespace(namespace), client.Limit(PageSize), client.Continue(next)); err != nil {
				return nil, nil, ListingProblem("add-ons", namespace, err)
			}
			for i := range page.Items {
				if view, meant := clusterViews[page.Items[i].Namespace]; meant {
					progress.TrimManagedFields(&page.Items[i])
					view.AddOns[page.Items[i].Name] = &page.Items[i]
				}
			}
			if page.Continue == "" {
				break
			}
		}
	}
	return definitions, clusterViews, selectClusters(ctx, c, definitions, clusterViews)
}

// Views is Fleet with the Instances of the clusters. There are none if the user may not list them or the hub does not have the kind.
func Views(ctx context.Context, c client.Reader, clusters []string) (map[string]fleet.Cluster, error) {
	_, views, err := Fleet(ctx, c, clusters)
	if err != nil {
		return nil, err
	}
	return views, addInstances(ctx, c, clusters, views)
}

// FleetForRemoval is Fleet for the effects of removals. It includes the Instances, as Views does, if a dependency has alternatives: the version of one of them that runs
// decides whether it replaces the removed add-on.
func FleetForRemoval(ctx context.Context, c client.Reader, clusters []string) (map[string]fleet.Definition, map[string]fleet.Cluster, error) {
	definitions, views, err := Fleet(ctx, c, clusters)
	if err == nil && anyNeed(definitions, hasAlternatives) {
		err = addInstances(ctx, c, clusters, views)
	}
	return definitions, views, err
}

// addInstances adds the Instances to clusters.
func addInstances(ctx context.Context, c client.Reader, clusters []string, views map[string]fleet.Cluster) error {
	for _, namespace := range NamespacesOf(clusters) {
		found := map[string]map[string]*kudo.Instance{}
		err := eachInstance(ctx, c, namespace, func(instance *kudo.Instance) {
			if found[instance.Namespace] == nil {
				found[instance.Namespace] = map[string]*kudo.Instance{}
			}
			found[instance.Namespace][instance.Name] = instance
		})
		if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return ListingProblem("Instances", namespace, err)
		}
		for cluster, view := range views {
			if namespace != metav1.NamespaceAll && namespace != cluster {
				continue
			}
			if view.Instances = found[cluster]; view.Instances == nil {
				view.Instances = map[string]*kudo.Instance{} // they were read
			}
			views[cluster] = view
		}
	}
	return nil
}

// eachInstance visits the Instances of a namespace, or of all, with trimmed managed fields.
func eachInstance(ctx context.Context, c client.Reader, namespace string, visit func(*kudo.Instance)) error {
	for next, first := "", true; first || next != ""; first = false {
		page := kudo.InstanceList{}
		if err := c.List(ctx, &page, client.InNamespace(namespace), client.Limit(PageSize), client.Continue(next)); err != nil {
			return err
		}
		for i := range page.Items {
			progress.TrimManagedFields(&page.Items[i])
			visit(&page.Items[i])
		}
		next = page.Continue
	}
	return nil
}

// NamespacesOf returns the namespaces to list for the clusters, with nil for all: each one separately, or all in one list.
func NamespacesOf(clusters []string) []string {
	if clusters == nil || len(clusters) > WatchedByName {
		return []string{metav1.NamespaceAll}
	}
	return clusters
}

// ListingProblem returns the error of a list in a namespace, or in all.
func ListingProblem(objects, namespace string, err error) error {
	if namespace == metav1.NamespaceAll {
		return fmt.Errorf("listing the %s of all clusters: %w", objects, err)
	}
	return fmt.Errorf("listing the %s of cluster %q: %w", objects, namespace, err)
}
