package change

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// installed holds the objects on the hub that are to be uninstalled from one cluster.
type installed change.Removal

// gatherInstalled reads the existing objects of that key.
func gatherInstalled(ctx context.Context, c client.Reader, key client.ObjectKey) (installed, error) {
	found := installed{ObjectKey: key}
	var err error
	if found, err = found.now(ctx, c); err != nil {
		return found, err
	}
	if found.AddOn != nil {
		view, err := read.ClusterForRemoval(ctx, c, key.Namespace)
		if err != nil {
			return found, err
		}
		effects := change.RemovalOf(view, key.Name)
		found.Definition, found.Dependents, found.Order, found.After = effects.Definition, effects.Dependents, effects.Order, effects.After
	}
	return found, nil
}

// now reads the objects that still exist. An Instance that has the add-on's name but is not owned by it is ignored.
func (i installed) now(ctx context.Context, c client.Reader) (installed, error) {
	addOn, instance := &addonv1alpha1.ManagedClusterAddOn{}, &kudo.Instance{}
	next := installed{ObjectKey: i.ObjectKey, Definition: i.Definition, Dependents: i.Dependents, Order: i.Order, After: i.After}
	switch err := c.Get(ctx, i.ObjectKey, addOn); {
	case err == nil:
		next.AddOn = addOn
	case !apierrors.IsNotFound(err):
		return i, fmt.Errorf("reading ManagedClusterAddOn %q of cluster %q: %w", i.Name, i.Namespace, err)
	}
	switch err := c.Get(ctx, i.ObjectKey, instance); {
	case err == nil && (next.AddOn == nil || metav1.IsControlledBy(instance, next.AddOn)):
		next.Instance = instance
	case client.IgnoreNotFound(err) != nil:
		return i, fmt.Errorf("reading Instance %q of cluster %q: %w", i.Name, i.Namespace, err)
	}
	if next.Instance != nil && len(next.Instance.Status.Children) > 0 {
		var instances kudo.InstanceList
		if err := c.List(ctx, &instances, client.InNamespace(i.Namespace)); err != nil {
			return i, fmt.Errorf("listing Instances of cluster %q: %w", i.Namespace, err)
		}
		next.Below = fleet.Descendants(next.Instance, instances.Items)
	}
	return next, nil
}

// clustersOf returns the clusters of the found objects, which are grouped by cluster.
func clustersOf(found []installed) []string {
	var clusters []string
	for _, i := range found {
		clusters = append(clusters, i.Namespace)
	}
	return slices.Compact(clusters)
}

// refuseProtected returns the found objects without those that dependents protect from removal, and adds these to the refusals. Nothing is removed from
// detached clusters.
func refuseProtected(found []installed, detached sets.Set[string], refused change.Refusals) []installed {
	return slices.DeleteFunc(slices.Clone(found), func(i installed) bool {
		err := change.Removal(i).CheckUnprotected()
		if err == nil || detached.Has(i.Namespace) {
			return false
		}
		refused[i.Namespace] = err
		return true
	})
}

// findLeft returns the found objects that still exist.
func (i installed) findLeft(ctx context.Context, c client.Reader) (installed, error) {
	left, err := i.now(ctx, c)
	if err != nil {
		return left, err
	}
	if i.AddOn == nil || left.AddOn != nil && left.AddOn.UID != i.AddOn.UID {
		left.AddOn = nil
	}
	if left.Instance != nil && !i.includes(left.Instance) {
		left.Instance = nil
	}
	return left, nil
}

// includes reports whether the Instance is one of the found objects, and not a new one of the same name.
func (i installed) includes(instance *kudo.Instance) bool {
	if i.AddOn != nil {
		return metav1.IsControlledBy(instance, i.AddOn)
	}
	return i.Instance != nil && instance.UID == i.Instance.UID
}

func (i installed) isGone() bool { return i.AddOn == nil && i.Instance == nil }
