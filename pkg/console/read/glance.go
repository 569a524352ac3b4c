package read

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
)

// Glance reads the summarized status of the add-ons and independent Instances of the clusters with the labels. It includes clusters without
// any, as far as the user may read them, and no Instances if the user lacks permission or the hub does not have the kind. The reader has to
// be a cache: lists are not paged.
func Glance(ctx context.Context, cached client.Reader, of labels.Selector) (fleet.Glance, error) {
	found := fleet.Glance{}
	clusters, err := Clusters(ctx, cached, "", of)
	if err != nil {
		return nil, err
	}
	for _, cluster := range clusters.Names {
		found[cluster] = map[fleet.Subject]fleet.Glimpse{}
	}
	meant := func(cluster string) bool { return of.Empty() || found[cluster] != nil }
	waits := fleet.Waits{}
	if err := glanceAtInstances(ctx, cached, found, meant, waits); err != nil {
		return nil, err
	}
	var addOns addonv1alpha1.ManagedClusterAddOnList
	if err := cached.List(ctx, &addOns, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the add-ons of all clusters: %w", err)
	}
	for i := range addOns.Items {
		if addOn := &addOns.Items[i]; meant(addOn.Namespace) {
			found.Add(addOn.Namespace, fleet.Subject{Name: addOn.Name}, waits.GlimpseOf(addOn))
		}
	}
	return found, nil
}

// glanceAtInstances adds the independent Instances of the clusters that are meant, and notes which of add-ons wait, if the user may read them.
func glanceAtInstances(ctx context.Context, cached client.Reader, found fleet.Glance, meant func(cluster string) bool, waits fleet.Waits) error {
	var instances kudo.InstanceList
	err := cached.List(ctx, &instances, client.UnsafeDisableDeepCopy)
	if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing the Instances of all clusters: %w", err)
	}
	for i := range instances.Items {
		waits.Note(&instances.Items[i])
		if instance := &instances.Items[i]; meant(instance.Namespace) && fleet.Independent(instance) {
			found.Add(instance.Namespace, fleet.Subject{Instance: true, Name: instance.Name}, fleet.GlimpseOfInstance(instance))
		}
	}
	return nil
}
