package hubclient

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// Listed visits add-ons and Instances as a Hub does, from the cache of a watch.
type Listed struct{ client.Reader }

// EachAddOn visits the add-ons of the clusters, with nil for all.
func (l Listed) EachAddOn(ctx context.Context, clusters []string, visit func(*addonv1alpha1.ManagedClusterAddOn)) error {
	meant := clusterFilter(clusters)
	for _, namespace := range read.NamespacesOf(clusters) {
		var list addonv1alpha1.ManagedClusterAddOnList
		if err := l.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return read.ListingProblem("add-ons", namespace, err)
		}
		for i := range list.Items {
			if meant(list.Items[i].Namespace) {
				visit(&list.Items[i])
			}
		}
	}
	return nil
}

// EachInstance visits the Instances of the clusters, with nil for all, without children. A watch that the user may not start ends before.
func (l Listed) EachInstance(ctx context.Context, clusters []string, visit func(*kudo.Instance), _ func(error)) error {
	meant := clusterFilter(clusters)
	for _, namespace := range read.NamespacesOf(clusters) {
		var list kudo.InstanceList
		if err := l.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return read.ListingProblem("Instances", namespace, err)
		}
		for i := range list.Items {
			if meant(list.Items[i].Namespace) && list.Items[i].Parent() == nil {
				visit(&list.Items[i])
			}
		}
	}
	return nil
}
