package mirror

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// namespaceInterval is the interval of checks whether a deleted install namespace exists again: namespaces are not watched.
const namespaceInterval = 10 * time.Second

// namespaceError reports that the install namespace of an installed Instance was deleted on the managed cluster, or is being deleted.
type namespaceError struct {
	name     string
	deleting bool
}

// terminatingText says that a namespace is being deleted, and how to find out what its deletion waits for.
func terminatingText(namespace string) string {
	return fmt.Sprintf("namespace %q is being deleted on the managed cluster, where 'kubectl describe namespace %[1]s' shows what its deletion waits for",
		namespace)
}

func (e *namespaceError) Error() string {
	if e.deleting {
		return terminatingText(e.name) + "; the objects of the Instance in it are deleted, too"
	}
	return fmt.Sprintf("namespace %q was deleted on the managed cluster, together with the objects of the Instance in it: create the namespace there and "+
		"run a plan to deploy the Instance again ('kubectl addon plan run'), or delete the Instance", e.name)
}

// respectNamespace returns a *namespaceError if the install namespace of an installed Instance is deleted: then the Instance is not mirrored, and the
// agent does not create the namespace again. The mirror in it is released, so that it does not block the deletion.
func (m *mirror) respectNamespace(ctx context.Context, wanted, existing *kudo.Instance) error {
	if existing == nil && wanted.Status.Execution == nil || existing != nil && existing.DeletionTimestamp == nil {
		return nil
	}
	name := wanted.TargetNamespace()
	if existing != nil {
		name = existing.Namespace
	}
	namespace, err := m.namespace(ctx, name)
	switch {
	case err != nil:
		return err
	case namespace == nil:
		return &namespaceError{name: name}
	case namespace.DeletionTimestamp == nil:
		return nil
	}
	if err := m.leave(ctx, existing); err != nil {
		return err
	}
	return &namespaceError{name: name, deleting: true}
}

// leave releases the mirror, if there is one, in a namespace that is being deleted.
func (m *mirror) leave(ctx context.Context, existing *kudo.Instance) error {
	if existing == nil || !controllerutil.RemoveFinalizer(existing, kudo.Finalizer) {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("releasing a mirror whose namespace is being deleted", "mirror", client.ObjectKeyFromObject(existing))
	return client.IgnoreNotFound(m.update(ctx, existing))
}

// isTerminating reports whether a mirror is deleted with its namespace.
func (m *mirror) isTerminating(ctx context.Context, existing *kudo.Instance) (bool, error) {
	if existing == nil || existing.DeletionTimestamp == nil {
		return false, nil
	}
	namespace, err := m.namespace(ctx, existing.Namespace)
	return namespace != nil && namespace.DeletionTimestamp != nil, err
}

// hasVanished reports whether everything that an Instance without a mirror had was deleted with its namespace.
func (m *mirror) hasVanished(ctx context.Context, wanted *kudo.Instance) (bool, error) {
	name, listed := wanted.TargetNamespace(), wanted.Status.Inventory
	if len(listed) == 0 || slices.ContainsFunc(listed, func(e kudo.InventoryEntry) bool { return e.Namespace != name }) {
		return false, nil
	}
	namespace, err := m.namespace(ctx, name)
	return namespace == nil && err == nil, err
}

// namespace reads a namespace of the managed cluster; nil if it does not exist.
func (m *mirror) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{}
	err := m.localLive.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %q of the managed cluster: %w", name, err)
	}
	return namespace, nil
}
