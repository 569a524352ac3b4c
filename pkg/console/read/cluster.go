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

// Cluster reads the add-ons of a cluster. If the cluster does not exist, the error lists the existing ones.
func Cluster(ctx context.Context, c client.Reader, cluster string) (fleet.Cluster, error) {
	definitions, err := Definitions(ctx, c)
	if err != nil {
		return fleet.Cluster{}, err
	}
	return AddOns(ctx, c, cluster, definitions)
}

// ClusterForRemoval is Cluster for the effects of removals, see FleetForRemoval.
func ClusterForRemoval(ctx context.Context, c client.Reader, cluster string) (fleet.Cluster, error) {
	view, err := Cluster(ctx, c, cluster)
	if err == nil && view.Instances == nil && anyNeed(view.Definitions, hasAlternatives) {
		view.Instances, err = Instances(ctx, c, cluster)
	}
	return view, err
}

// AddOns reads the add-ons of a cluster, given the definitions of the hub. If the cluster does not exist, the error lists the existing ones.
func AddOns(ctx context.Context, c client.Reader, cluster string, definitions map[string]fleet.Definition) (fleet.Cluster, error) {
	view := fleet.Cluster{Name: cluster, Definitions: definitions, AddOns: map[string]*addonv1alpha1.ManagedClusterAddOn{}}
	var addOns addonv1alpha1.ManagedClusterAddOnList
	if err := c.List(ctx, &addOns, client.InNamespace(cluster)); err != nil {
		return view, fmt.Errorf("listing the add-ons of cluster %q: %w", cluster, err)
	}
	for i := range addOns.Items {
		view.AddOns[addOns.Items[i].Name] = &addOns.Items[i]
	}
	if err := readCompared(ctx, c, &view); err != nil || len(view.AddOns) > 0 {
		return view, err
	}
	found, err := Clusters(ctx, c, cluster, labels.Everything())
	if err != nil {
		return view, err
	}
	return view, found.CheckExists()
}

// readCompared reads what the verdicts on dependencies with a version or a selector of clusters are based on.
func readCompared(ctx context.Context, c client.Reader, view *fleet.Cluster) (err error) {
	if anyNeed(view.Definitions, selectsClusters) {
		if view.Selected, err = SelectorCluster(ctx, c, view.Name); err != nil {
			return err
		}
	}
	if anyNeed(view.Definitions, func(n addonv1alpha1.AddonDependency) bool { return n.Version != "" }) {
		view.Instances, err = Instances(ctx, c, view.Name)
	}
	return err
}

// Instances reads the Instances of a cluster. It returns none if the user lacks permission or the hub does not have the kind.
func Instances(ctx context.Context, c client.Reader, cluster string) (map[string]*kudo.Instance, error) {
	var list kudo.InstanceList
	err := c.List(ctx, &list, client.InNamespace(cluster))
	if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the Instances of cluster %q: %w", cluster, err)
	}
	instances := make(map[string]*kudo.Instance, len(list.Items))
	for i := range list.Items {
		instances[list.Items[i].Name] = &list.Items[i]
	}
	return instances, nil
}

// Definitions reads the declarations of all ClusterManagementAddOns.
func Definitions(ctx context.Context, c client.Reader) (map[string]fleet.Definition, error) {
	var list addonv1alpha1.ClusterManagementAddOnList
	if err := c.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the ClusterManagementAddOns: %w", err)
	}
	definitions := make(map[string]fleet.Definition, len(list.Items))
	for i := range list.Items {
		definitions[list.Items[i].Name] = fleet.DefinitionOf(&list.Items[i])
	}
	return definitions, nil
}
