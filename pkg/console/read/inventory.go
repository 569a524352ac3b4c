package read

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
	"github.com/tandem-addons/tandem/pkg/text"
)

// Inventory lists the existing names for the error about a missing one. All names are sorted.
type Inventory struct {
	ManagedClusters
	Instances, AddOns []string
	// IsDefined is set if an add-on of the requested name can be enabled.
	IsDefined bool
}

// ManagedClusters lists the existing managed clusters, apart from the requested one.
type ManagedClusters struct {
	Cluster    string
	Names      []string
	Unreadable bool
}

// InventoryOf reads the names on the cluster and, if the user has permission, the existing clusters.
func InventoryOf(ctx context.Context, c client.Reader, cluster string) (Inventory, error) {
	var found Inventory
	var err error
	if found.Instances, err = NamesIn(ctx, c, cluster, kudo.GroupVersion.WithKind("Instance")); err != nil {
		return found, fmt.Errorf("listing the Instances of cluster %q: %w", cluster, err)
	}
	if found.AddOns, err = NamesIn(ctx, c, cluster, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn")); err != nil {
		return found, fmt.Errorf("listing the add-ons of cluster %q: %w", cluster, err)
	}
	found.ManagedClusters, err = Clusters(ctx, c, cluster, labels.Everything())
	return found, err
}

// PageSize limits the memory needed on both sides.
const PageSize = 1000

var ManagedClusterKind = schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1", Kind: "ManagedCluster"}

// Clusters reads the clusters that match the labels. They are marked unreadable if the user lacks permission or the hub does not have
// the kind.
func Clusters(ctx context.Context, c client.Reader, cluster string, of labels.Selector) (ManagedClusters, error) {
	names, err := NamesIn(ctx, c, "", ManagedClusterKind, client.MatchingLabelsSelector{Selector: of})
	if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return ManagedClusters{Cluster: cluster, Unreadable: true}, nil
	}
	if err != nil {
		return ManagedClusters{}, fmt.Errorf("listing the managed clusters: %w", err)
	}
	return ManagedClusters{Cluster: cluster, Names: names}, nil
}

// NamesIn returns the sorted names of all objects of a kind in the namespace.
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

// NotFoundError returns the error for a name that is neither an Instance nor an add-on of the cluster.
func (i Inventory) NotFoundError(name string) error {
	if err := i.CheckExists(); err != nil {
		return err
	}
	if i.IsDefined {
		return fmt.Errorf("add-on %q is not enabled on cluster %q: run 'kubectl addon enable %s --cluster %s'; Instances: %s; add-ons: %s",
			name, i.Cluster, name, i.Cluster, text.ListOrNone(i.Instances), text.ListOrNone(i.AddOns))
	}
	return fmt.Errorf("cluster %q has no Instance or add-on %q%s; Instances: %s; add-ons: %s",
		i.Cluster, name, text.DidYouMean(name, slices.Concat(i.Instances, i.AddOns)), text.ListOrNone(i.Instances), text.ListOrNone(i.AddOns))
}

// CheckExists returns an error if the cluster is known not to exist.
func (c ManagedClusters) CheckExists() error {
	if c.Unreadable || slices.Contains(c.Names, c.Cluster) {
		return nil
	}
	return &MissingError{fmt.Sprintf("managed cluster %q not found%s; managed clusters: %s",
		c.Cluster, text.DidYouMean(c.Cluster, c.Names), text.ListOrNone(c.Names))}
}

// MissingError is the error for a managed cluster that does not exist. It lists the existing ones.
type MissingError struct{ text string }

// Error returns the message.
func (e *MissingError) Error() string { return e.text }
