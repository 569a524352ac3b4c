package hub

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isManaged says whether the namespace is a managed cluster's, and that cluster is to stay.
func isManaged(ctx context.Context, c client.Reader, namespace string) (bool, error) {
	cluster := managedCluster()
	err := c.Get(ctx, types.NamespacedName{Name: namespace}, cluster)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading ManagedCluster %q: %w", namespace, err)
	}
	return cluster.DeletionTimestamp.IsZero(), nil
}

// isDetached says whether nothing is to be removed from the cluster any more, whatever is deleted in its namespace: its ManagedCluster
// or the namespace itself is gone or being deleted.
func isDetached(ctx context.Context, c client.Reader, namespace string) (bool, error) {
	managed, err := isManaged(ctx, c, namespace)
	if err != nil || !managed {
		return err == nil, err
	}
	of := namespaceMetadata()
	if err := c.Get(ctx, types.NamespacedName{Name: namespace}, of); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading namespace %q: %w", namespace, err)
	}
	return !of.DeletionTimestamp.IsZero(), nil // where a cache does not have it yet, it is new
}

// namespaceMetadata is a namespace of which only the metadata is read.
func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.APIVersion, namespace.Kind = "v1", "Namespace"
	return namespace
}
