package inspect

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// Glance reads the add-ons and independent Instances of the selected clusters. Clusters without any are included, as far as the user
// may read them. unread gets the error if the user may not read Instances.
func Glance(ctx context.Context, h hubclient.Hub, where hubclient.Selection, unread func(error)) (fleet.Glance, error) {
	clusters, err := namedClusters(ctx, h, where)
	if err != nil {
		return nil, err
	}
	return glanceFrom(ctx, h, where, clusters, unread)
}

// namedClusters returns the selected clusters; of all clusters those that the user may read.
func namedClusters(ctx context.Context, h hubclient.Hub, where hubclient.Selection) ([]string, error) {
	if !where.IsAll() {
		return where.Clusters(ctx, h)
	}
	found, err := read.Clusters(ctx, h, "", labels.Everything())
	return found.Names, err
}

// glanceFrom reads the selected clusters from a source, given their names.
func glanceFrom(
	ctx context.Context, from source, where hubclient.Selection, clusters []string, unread func(error),
) (fleet.Glance, error) {
	found := fleet.Glance{}
	for _, cluster := range clusters {
		found[cluster] = map[fleet.Subject]fleet.Glimpse{}
	}
	if where.IsAll() {
		clusters = nil
	}
	waits := fleet.Waits{}
	err := from.EachInstance(ctx, clusters, func(instance *kudo.Instance) {
		if fleet.Independent(instance) {
			found.Add(instance.Namespace, fleet.Subject{Instance: true, Name: instance.Name}, fleet.GlimpseOfInstance(instance))
		}
		waits.Note(instance)
	}, unread)
	if err != nil {
		return nil, err
	}
	return found, from.EachAddOn(ctx, clusters, func(addOn *addonv1alpha1.ManagedClusterAddOn) {
		found.Add(addOn.Namespace, fleet.Subject{Name: addOn.Name}, waits.GlimpseOf(addOn))
	})
}
