// Package census lists the objects of all kinds on a cluster. It only reads the cluster.
package census

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// OfTandem returns all objects that Tandem has created on a managed cluster, including its mirrors.
func OfTandem(ctx context.Context, config *rest.Config) ([]string, error) {
	return names(ctx, config, func(group string) []client.ListOption {
		if group == kudo.GroupVersion.Group {
			return nil
		}
		return []client.ListOption{client.MatchingLabels{kudo.LabelHeritage: kudo.Heritage}}
	})
}

// OfAll returns all objects of a cluster.
func OfAll(ctx context.Context, config *rest.Config) ([]string, error) {
	return names(ctx, config, func(string) []client.ListOption { return nil })
}

// names returns the names of all objects that match the options for their API group.
func names(ctx context.Context, config *rest.Config, options func(group string) []client.ListOption) ([]string, error) {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := kinds.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, resources := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		gv, err := schema.ParseGroupVersion(resources.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range resources.APIResources {
			found := &metav1.PartialObjectMetadataList{}
			found.SetGroupVersionKind(gv.WithKind(resource.Kind + "List"))
			if err := c.List(ctx, found, options(gv.Group)...); err != nil {
				return nil, fmt.Errorf("listing %s: %w", resource.Name, err)
			}
			for _, o := range found.Items {
				names = append(names, resource.Kind+" "+o.Namespace+"/"+o.Name)
			}
		}
	}
	return names, nil
}
