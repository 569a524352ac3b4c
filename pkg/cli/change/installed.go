package change

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/dependency"
	"github.com/tandem-addons/tandem/pkg/survey"
)

// installed holds the objects on the hub that are to be uninstalled from one cluster.
type installed struct {
	client.ObjectKey
	addOn    *addonv1alpha1.ManagedClusterAddOn
	instance *kudo.Instance
	// below lists the Instance's descendants, each before its own children.
	below []kudo.Instance
	// dependents lists the dependents on the cluster.
	dependents []dependency.Dependent
}

// gatherInstalled reads the existing objects of that key.
func gatherInstalled(ctx context.Context, c client.Reader, key client.ObjectKey) (installed, error) {
	found := installed{ObjectKey: key}
	var err error
	if found, err = found.now(ctx, c); err != nil {
		return found, err
	}
	if found.addOn != nil {
		view, err := survey.Cluster(ctx, c, key.Namespace)
		if err != nil {
			return found, err
		}
		found.dependents = view.Dependents(key.Name)
		return found, nil
	}
	return found, nil
}

// now reads the objects that still exist. An Instance that has the add-on's name but is not owned by it is ignored.
func (i installed) now(ctx context.Context, c client.Reader) (installed, error) {
	addOn, instance := &addonv1alpha1.ManagedClusterAddOn{}, &kudo.Instance{}
	next := installed{ObjectKey: i.ObjectKey, dependents: i.dependents}
	switch err := c.Get(ctx, i.ObjectKey, addOn); {
	case err == nil:
		next.addOn = addOn
	case !apierrors.IsNotFound(err):
		return i, fmt.Errorf("reading ManagedClusterAddOn %q of cluster %q: %w", i.Name, i.Namespace, err)
	}
	switch err := c.Get(ctx, i.ObjectKey, instance); {
	case err == nil && (next.addOn == nil || metav1.IsControlledBy(instance, next.addOn)):
		next.instance = instance
	case client.IgnoreNotFound(err) != nil:
		return i, fmt.Errorf("reading Instance %q of cluster %q: %w", i.Name, i.Namespace, err)
	}
	if next.instance != nil && len(next.instance.Status.Children) > 0 {
		var instances kudo.InstanceList
		if err := c.List(ctx, &instances, client.InNamespace(i.Namespace)); err != nil {
			return i, fmt.Errorf("listing Instances of cluster %q: %w", i.Namespace, err)
		}
		next.below = below(next.instance, instances.Items)
	}
	return next, nil
}

// below returns the Instance's descendants among instances, each before its own children.
func below(root *kudo.Instance, instances []kudo.Instance) []kudo.Instance {
	var found []kudo.Instance
	met := map[types.UID]bool{root.UID: true} // owner references that form a cycle end here
	var add func(parent *kudo.Instance)
	add = func(parent *kudo.Instance) {
		for i := range instances {
			if child := &instances[i]; metav1.IsControlledBy(child, parent) && !met[child.UID] {
				met[child.UID] = true
				found = append(found, *child)
				add(child)
			}
		}
	}
	add(root)
	return found
}

// refuse returns an error for a child Instance, because its parent would re-create it.
func (i installed) refuse(force bool) error {
	if i.addOn != nil || i.instance == nil || force {
		return nil
	}
	if owner := metav1.GetControllerOf(i.instance); owner != nil && owner.Kind == "Instance" && i.instance.DeletionTimestamp.IsZero() {
		return fmt.Errorf("%q is a child of Instance %q, which would re-create it; uninstall the parent, or change its parameters",
			i.Name, owner.Name)
	}
	return nil
}

// clustersOf returns the clusters of the found objects, which are grouped by cluster.
func clustersOf(found []installed) []string {
	var clusters []string
	for _, i := range found {
		clusters = append(clusters, i.Namespace)
	}
	return slices.Compact(clusters)
}

// left returns the found objects that still exist.
func (i installed) left(ctx context.Context, c client.Reader) (installed, error) {
	left, err := i.now(ctx, c)
	if err != nil {
		return left, err
	}
	if i.addOn == nil || left.addOn != nil && left.addOn.UID != i.addOn.UID {
		left.addOn = nil
	}
	if left.instance != nil && !i.includes(left.instance) {
		left.instance = nil
	}
	return left, nil
}

// includes reports whether the Instance is one of the found objects, and not a new one of the same name.
func (i installed) includes(instance *kudo.Instance) bool {
	if i.addOn != nil {
		return metav1.IsControlledBy(instance, i.addOn)
	}
	return i.instance != nil && instance.UID == i.instance.UID
}

func (i installed) gone() bool { return i.addOn == nil && i.instance == nil }
