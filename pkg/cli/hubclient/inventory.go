package hubclient

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// Inventory is what a user may have meant who asked for something that does not exist. All names are sorted.
type Inventory struct {
	ManagedClusters
	Instances, AddOns []string
}

// ManagedClusters are the managed clusters that there are, beside the one that was asked for.
type ManagedClusters struct {
	Cluster    string
	Names      []string
	Unreadable bool
}

// GatherInventory reads what the cluster has, and which clusters there are where the user may read that.
func GatherInventory(ctx context.Context, c client.Reader, cluster string) (Inventory, error) {
	var found Inventory
	var err error
	if found.Instances, err = NamesIn(ctx, c, cluster, kudo.GroupVersion.WithKind("Instance")); err != nil {
		return found, fmt.Errorf("listing the Instances of cluster %q: %w", cluster, err)
	}
	if found.AddOns, err = NamesIn(ctx, c, cluster, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn")); err != nil {
		return found, fmt.Errorf("listing the add-ons of cluster %q: %w", cluster, err)
	}
	found.ManagedClusters, err = GatherClusters(ctx, c, cluster, labels.Everything())
	return found, err
}

var ManagedClusterKind = schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1", Kind: "ManagedCluster"}

// GatherClusters reads which clusters of those labels there are; they are unreadable where the user may not, or the hub has no such kind.
func GatherClusters(ctx context.Context, c client.Reader, cluster string, of labels.Selector) (ManagedClusters, error) {
	names, err := NamesIn(ctx, c, "", ManagedClusterKind, client.MatchingLabelsSelector{Selector: of})
	if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return ManagedClusters{Cluster: cluster, Unreadable: true}, nil
	}
	if err != nil {
		return ManagedClusters{}, fmt.Errorf("listing the managed clusters: %w", err)
	}
	return ManagedClusters{Cluster: cluster, Names: names}, nil
}

// NamesIn are the names of all objects of a kind in the namespace, sorted.
func NamesIn(
	ctx context.Context, c client.Reader, namespace string, kind schema.GroupVersionKind, options ...client.ListOption,
) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := c.List(ctx, list, append(options, client.InNamespace(namespace))...); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	slices.Sort(names)
	return names, nil
}

// Lacks is the error for a name that is neither an Instance nor an add-on of the cluster.
func (i Inventory) Lacks(name string) error {
	if err := i.missing(); err != nil {
		return err
	}
	return fmt.Errorf("cluster %q has neither an Instance nor an add-on %q; Instances: %s; add-ons: %s",
		i.Cluster, name, terminal.Listed(i.Instances), terminal.Listed(i.AddOns))
}

// missing is the error for a cluster that does not exist; nil where it does, or nobody can say.
func (c ManagedClusters) missing() error {
	if c.Unreadable || slices.Contains(c.Names, c.Cluster) {
		return nil
	}
	return fmt.Errorf("there is no managed cluster %q; managed clusters: %s", c.Cluster, terminal.Listed(c.Names))
}
