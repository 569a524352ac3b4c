package read

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
)

// Suspensions returns the objects that suspend an Instance: the ConfigMap of that name, which configs reads, its ManagedCluster, and the
// ClusterManagementAddOn of the add-on to which it, or the root of its tree, belongs.
func Suspensions(ctx context.Context, c, configs client.Reader, everything types.NamespacedName, instance *kudo.Instance) ([]suspension.Origin, error) {
	config := &corev1.ConfigMap{}
	err := configs.Get(ctx, everything, config)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", everything, err)
	}
	var found []suspension.Origin
	if err == nil {
		found = append(found, suspension.Origin{Kind: suspension.KindEverything, Name: everything.String(), Reason: ViewSuspendConfig(config)})
	}
	cluster, err := clusterOf(ctx, c, instance.Namespace)
	if err != nil {
		return nil, err
	}
	if cluster != nil {
		found = append(found, originOf(suspension.KindCluster, cluster)...)
	}
	name, err := addOnOf(ctx, c, instance)
	if err != nil || name == "" {
		return found, err
	}
	definition, err := Definition(ctx, c, name)
	if definition == nil || err != nil {
		return found, err
	}
	return append(found, originOf(suspension.KindAddOn, definition)...), nil
}

// originOf returns the suspension by the annotation of an object; none if it lacks the annotation.
func originOf(kind suspension.Kind, o client.Object) []suspension.Origin {
	reason, suspended := suspension.ReasonOf(o)
	if !suspended {
		return nil
	}
	return []suspension.Origin{{Kind: kind, Name: o.GetName(), Reason: reason}}
}

// addOnOf returns the name of the add-on to which an Instance, or the root of its tree, belongs; empty if there is none.
func addOnOf(ctx context.Context, c client.Reader, instance *kudo.Instance) (string, error) {
	root := instance
	for parent := root.Parent(); parent != nil; parent = root.Parent() { // ends, because the name of a child is longer than that of its parent
		above, key := &kudo.Instance{}, types.NamespacedName{Namespace: instance.Namespace, Name: parent.Name}
		err := c.Get(ctx, key, above, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) || err == nil && above.UID != parent.UID {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("reading Instance %s: %w", key, err)
		}
		root = above
	}
	owner := metav1.GetControllerOfNoCopy(root)
	if owner == nil || owner.Kind != "ManagedClusterAddOn" || owner.Name != root.Name {
		return "", nil
	}
	return owner.Name, nil
}

// ViewSuspend returns the suspension by a ClusterManagementAddOn, for a predicate.
func ViewSuspend(definition *addonv1alpha1.ClusterManagementAddOn) suspendView {
	return viewSuspend(definition)
}

// ViewSuspendConfig returns the reason in the ConfigMap that suspends everything.
func ViewSuspendConfig(config *corev1.ConfigMap) string {
	return suspension.Bound(config.Data[kudo.SuspendKey])
}

// InstancesOfAddOn returns requests for the Instances of an add-on on all clusters, with their descendants.
func InstancesOfAddOn(ctx context.Context, c client.Reader, name string) ([]reconcile.Request, error) {
	return InstanceRequests(ctx, c, client.MatchingFields{byRoot: name})
}
