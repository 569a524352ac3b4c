package read

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DetachedClusters returns those of the clusters from which nothing is removed, whatever is deleted on the hub: their ManagedCluster is deleted or being
// deleted, or their namespace is being deleted. Clusters whose objects the user may not read count as attached.
func DetachedClusters(ctx context.Context, c client.Reader, clusters []string) (sets.Set[string], error) {
	registered, readable, err := objectsNamed(ctx, c, ManagedClusterKind, clusters)
	if err != nil || !readable {
		return nil, err
	}
	namespaces, _, err := objectsNamed(ctx, c, corev1.SchemeGroupVersion.WithKind("Namespace"), clusters)
	if err != nil {
		return nil, err
	}
	detached := sets.New[string]()
	for _, cluster := range clusters {
		registration, namespace := registered[cluster], namespaces[cluster]
		if registration == nil || registration.DeletionTimestamp != nil || namespace != nil && namespace.DeletionTimestamp != nil {
			detached.Insert(cluster)
		}
	}
	return detached, nil
}

// objectsNamed returns the cluster-scoped objects of a kind, by name, and whether the user may read them: the one of that name, or all if there are
// several names.
func objectsNamed(
	ctx context.Context, c client.Reader, kind schema.GroupVersionKind, names []string,
) (found map[string]*metav1.PartialObjectMetadata, readable bool, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	var one []client.ListOption
	if len(names) == 1 {
		one = append(one, client.MatchingFields{"metadata.name": names[0]})
	}
	err = c.List(ctx, list, one...)
	if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("listing the objects of kind %s: %w", kind.Kind, err)
	}
	found = map[string]*metav1.PartialObjectMetadata{}
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	return found, true, nil
}
