package read

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
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
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	switch err := c.Get(ctx, key, addOn); {
	case err == nil:
		return nil, fmt.Errorf("add-on %q has no Instance on cluster %q yet, and therefore no plans: run 'kubectl addon why %s --cluster %s'",
			key.Name, key.Namespace, key.Name, key.Namespace)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading add-on %q of cluster %q: %w", key.Name, key.Namespace, err)
	}
	found, err := InventoryOf(ctx, c, key.Namespace)
	if err != nil {
		return nil, err
	}
	return nil, found.NotFoundError(key.Name)
}
