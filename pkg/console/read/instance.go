package read

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

// ReadInstance reads the Instance of that key. If it does not exist, the error states why the add-on of that name has no Instance, or lists
// the existing names.
func ReadInstance(ctx context.Context, c client.Reader, key client.ObjectKey) (*kudo.Instance, error) {
	instance := &kudo.Instance{}
	err := c.Get(ctx, key, instance)
	if err == nil {
		return instance, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading Instance %q of cluster %q: %w", key.Name, key.Namespace, err)
	}
	switch err := c.Get(ctx, key, &addonv1alpha1.ManagedClusterAddOn{}); {
	case err == nil:
		definition, err := definitionOf(ctx, c, key.Name)
		return nil, cmp.Or(err, withoutInstance(key, definition))
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading add-on %q of cluster %q: %w", key.Name, key.Namespace, err)
	}
	return nil, MissingOn(ctx, c, key)
}

// withoutInstance returns the error that an enabled add-on has no Instance, given its definition, which may be nil.
func withoutInstance(key client.ObjectKey, definition *addonv1alpha1.ClusterManagementAddOn) error {
	see := fmt.Sprintf("run 'kubectl addon why %s --cluster %s'", key.Name, key.Namespace)
	if definition != nil && !install.IsPlanManaged(definition) {
		return fmt.Errorf("add-on %q is not plan-based: it has no Instance, and therefore no plans: %s", key.Name, see)
	}
	return fmt.Errorf("add-on %q has no Instance on cluster %q yet, and therefore no plans: %s", key.Name, key.Namespace, see)
}

// MissingOn returns the error that a cluster has neither an Instance nor an add-on of that name. It states how to enable the add-on if it can be, and
// lists the existing names.
func MissingOn(ctx context.Context, c client.Reader, key client.ObjectKey) error {
	found, err := InventoryOf(ctx, c, key.Namespace)
	if err != nil {
		return err
	}
	definition, err := definitionOf(ctx, c, key.Name)
	if err != nil {
		return err
	}
	found.IsDefined = definition != nil
	return found.NotFoundError(key.Name)
}

// definitionOf reads the definition of an add-on. It is nil if it does not exist, or the user may not read it.
func definitionOf(ctx context.Context, c client.Reader, name string) (*addonv1alpha1.ClusterManagementAddOn, error) {
	definition := &addonv1alpha1.ClusterManagementAddOn{}
	switch err := c.Get(ctx, client.ObjectKey{Name: name}, definition); {
	case err == nil:
		return definition, nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return nil, nil
	default:
		return nil, fmt.Errorf("reading ClusterManagementAddOn %q: %w", name, err)
	}
}
