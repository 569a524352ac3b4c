package cli

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

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// inventory is what a user may have meant who asked for something that does not exist. All names are sorted.
type inventory struct {
	clusters
	instances, addOns []string
}

// clusters are the managed clusters that there are, beside the one that was asked for.
type clusters struct {
	cluster    string
	names      []string
	unreadable bool
}

// gatherInventory reads what the cluster has, and which clusters there are where the user may read that.
func gatherInventory(ctx context.Context, c client.Reader, cluster string) (inventory, error) {
	var found inventory
	var err error
	if found.instances, err = namesIn(ctx, c, cluster, kudo.GroupVersion.WithKind("Instance")); err != nil {
		return found, fmt.Errorf("listing the Instances of cluster %q: %w", cluster, err)
	}
	if found.addOns, err = namesIn(ctx, c, cluster, addon.GroupVersion.WithKind("ManagedClusterAddOn")); err != nil {
		return found, fmt.Errorf("listing the add-ons of cluster %q: %w", cluster, err)
	}
	found.clusters, err = gatherClusters(ctx, c, cluster, labels.Everything())
	return found, err
}

var managedClusterKind = schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1", Kind: "ManagedCluster"}

// gatherClusters reads which clusters of those labels there are; they are unreadable where the user may not, or the hub has no such kind.
func gatherClusters(ctx context.Context, c client.Reader, cluster string, of labels.Selector) (clusters, error) {
	names, err := namesIn(ctx, c, "", managedClusterKind, client.MatchingLabelsSelector{Selector: of})
	if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return clusters{cluster: cluster, unreadable: true}, nil
	}
	if err != nil {
		return clusters{}, fmt.Errorf("listing the managed clusters: %w", err)
	}
	return clusters{cluster: cluster, names: names}, nil
}

// namesIn are the names of all objects of a kind in the namespace, sorted.
func namesIn(
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

// lacks is the error for a name that is neither an Instance nor an add-on of the cluster.
func (i inventory) lacks(name string) error {
	if err := i.missing(); err != nil {
		return err
	}
	return fmt.Errorf("cluster %q has neither an Instance nor an add-on %q; Instances: %s; add-ons: %s",
		i.cluster, name, listed(i.instances), listed(i.addOns))
}

// missing is the error for a cluster that does not exist; nil where it does, or nobody can say.
func (c clusters) missing() error {
	if c.unreadable || slices.Contains(c.names, c.cluster) {
		return nil
	}
	return fmt.Errorf("there is no managed cluster %q; managed clusters: %s", c.cluster, listed(c.names))
}

// listLimit is how many names an error lists; a fleet has thousands.
const listLimit = 20

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return text.List(names, listLimit)
}

// meant says which of the names somebody may have meant; empty if none is like it.
func meant(name string, names []string) string {
	closest := text.ClosestMatch(name, names)
	if closest == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", closest)
}
