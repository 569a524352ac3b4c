package read

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// Instance reads everything that decides about an Instance, except for the problems of its OperatorVersion and its tree of child operators.
func Instance(ctx context.Context, c client.Reader, instance *kudo.Instance, packagesNamespace string) (install.Instance, error) {
	state := install.Instance{Instance: instance, PackagesNamespace: packagesNamespace}
	var err error
	if state.Version, err = WantedVersion(ctx, c, instance, packagesNamespace); err != nil {
		return state, err
	}
	if state.Started, err = StartedVersion(ctx, c, instance, state.Version, packagesNamespace); err != nil {
		return state, err
	}
	state.Instances, err = InstancesOn(ctx, c, instance.Namespace)
	return state, err
}

// WantedVersion returns the OperatorVersion that the Instance's spec names; nil if it does not exist or must not be read.
func WantedVersion(ctx context.Context, c client.Reader, instance *kudo.Instance, packagesNamespace string) (*kudo.OperatorVersion, error) {
	return versionFor(ctx, c, instance, install.VersionOf(instance), packagesNamespace)
}

// StartedVersion returns the OperatorVersion that was last started, usually the current one; nil if it no longer exists or must not be read.
func StartedVersion(
	ctx context.Context, c client.Reader, instance *kudo.Instance, current *kudo.OperatorVersion, packagesNamespace string,
) (*kudo.OperatorVersion, error) {
	if instance.Status.Execution == nil {
		return nil, nil
	}
	started := instance.Status.Execution.OperatorVersion
	if current != nil && current.UID == started.UID {
		return current, nil
	}
	name := types.NamespacedName{Namespace: started.Namespace, Name: started.Name}
	version, err := versionFor(ctx, c, instance, name, packagesNamespace)
	if err != nil || version == nil || version.UID != started.UID {
		return nil, err
	}
	return version, nil
}

// versionFor returns the OperatorVersion of that name; nil if it does not exist or must not be read for the Instance.
func versionFor(
	ctx context.Context, c client.Reader, instance *kudo.Instance, name types.NamespacedName, packagesNamespace string,
) (*kudo.OperatorVersion, error) {
	if !install.MayRead(instance.Namespace, name.Namespace, packagesNamespace) {
		return nil, nil
	}
	return Version(ctx, c, name)
}

// Version returns the OperatorVersion of that name; nil if it does not exist.
func Version(ctx context.Context, c client.Reader, name types.NamespacedName) (*kudo.OperatorVersion, error) {
	if !install.MayExist(name) {
		return nil, nil
	}
	version := &kudo.OperatorVersion{}
	err := c.Get(ctx, name, version)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading OperatorVersion %s: %w", name, err)
	}
	return version, nil
}

// InstancesOn returns all Instances of a cluster. They belong to the cache and are read-only.
func InstancesOn(ctx context.Context, c client.Reader, cluster string) ([]kudo.Instance, error) {
	var found kudo.InstanceList
	if err := c.List(ctx, &found, client.InNamespace(cluster), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Instances in %q: %w", cluster, err)
	}
	return found.Items, nil
}

// InstancesNamed returns the Instance of that name, if it exists.
func InstancesNamed(ctx context.Context, c client.Reader, name types.NamespacedName) ([]kudo.Instance, error) {
	var found kudo.Instance
	err := c.Get(ctx, name, &found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Instance %s: %w", name, err)
	}
	return []kudo.Instance{found}, nil
}

// InstanceRequests returns requests for the listed Instances.
func InstanceRequests(ctx context.Context, c client.Reader, which client.ListOption) ([]reconcile.Request, error) {
	var found kudo.InstanceList
	if err := c.List(ctx, &found, which, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Instances: %w", err)
	}
	requests := make([]reconcile.Request, 0, len(found.Items))
	for at := range found.Items {
		requests = append(requests, RequestFor(&found.Items[at]))
	}
	return requests, nil
}

// instanceView holds the fields of an Instance that the hub depends on.
type instanceView struct {
	generation int64
	deleting   bool
	held       bool
	removed    bool
	forced     bool
	released   bool      // annotated, before the deletion
	handled    types.UID // of the last manual plan request
	whole      bool      // an OperatorVersion was applied completely
	resolved   controller.ConditionView
}

// ViewInstance returns the view for a predicate.
func ViewInstance(i *kudo.Instance) instanceView {
	var handled types.UID
	if requests := i.Status.HandledRequests; len(requests) > 0 {
		handled = requests[len(requests)-1]
	}
	return instanceView{
		handled:    handled,
		whole:      i.Status.Whole != nil,
		generation: i.Generation,
		deleting:   !i.DeletionTimestamp.IsZero(),
		held:       controllerutil.ContainsFinalizer(i, kudo.Finalizer),
		removed:    i.IsRemoved(),
		forced:     i.IsForceReleased(),
		released:   i.Annotations[kudo.AnnotationForceRelease] == "true",
		resolved:   controller.ViewCondition(i.Status.Conditions, kudo.ConditionResolved),
	}
}

// isDeferred reports whether the removal of an add-on that is being deleted, which may be nil, has not started: addon-manager has not deleted its Instance.
func isDeferred(ctx context.Context, c client.Reader, addOn *addonv1alpha1.ManagedClusterAddOn) (bool, error) {
	if addOn == nil || addOn.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(addOn, kudo.Finalizer) {
		return false, nil
	}
	instance, key := &kudo.Instance{}, client.ObjectKeyFromObject(addOn)
	err := c.Get(ctx, key, instance, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Instance %s: %w", key, err)
	}
	return err == nil && metav1.IsControlledBy(instance, addOn) && instance.DeletionTimestamp.IsZero(), nil
}

// Children returns the children of an Instance. They belong to the cache and are read-only.
func Children(ctx context.Context, c client.Reader, parent *kudo.Instance) ([]kudo.Instance, error) {
	var found kudo.InstanceList
	err := c.List(ctx, &found, client.InNamespace(parent.Namespace), client.MatchingFields{byParent: string(parent.UID)},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the children of Instance %s: %w", client.ObjectKeyFromObject(parent), err)
	}
	return found.Items, nil
}

// Parent returns the request for the parent of a changed Instance.
func Parent(_ context.Context, child client.Object) ([]reconcile.Request, error) {
	owner := child.(*kudo.Instance).Parent()
	if owner == nil {
		return nil, nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: child.GetNamespace(), Name: owner.Name}}}, nil
}
