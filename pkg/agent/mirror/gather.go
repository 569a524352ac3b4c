package mirror

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
)

// gather adds a fact to an observation.
func (m *reconciler) gather(ctx context.Context, o *mirror.Observation, fact mirror.Fact) (err error) {
	switch fact {
	case mirror.FactConfirmed:
		err = m.confirmVersions(ctx, o.Wanted, o.Mirror)
	case mirror.FactNamespace:
		o.Namespace, err = m.namespaceState(ctx, o.HomeNamespace())
	case mirror.FactParent:
		o.Parent, err = m.parentOf(ctx, o.Wanted)
	case mirror.FactDetached:
		o.Detached, err = m.isDetached(ctx, o.Wanted)
	case mirror.FactVersion:
		var version types.NamespacedName
		version, err = m.copyVersion(ctx, o.Wanted)
		o.Version = corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name}
	case mirror.FactContent:
		err = m.copyContents(ctx, o)
	}
	return err
}

// namespaceState reads a namespace of the managed cluster.
func (m *reconciler) namespaceState(ctx context.Context, name string) (mirror.NamespaceState, error) {
	namespace := &corev1.Namespace{}
	err := m.localLive.Get(ctx, client.ObjectKey{Name: name}, namespace)
	switch {
	case apierrors.IsNotFound(err):
		return mirror.NamespaceMissing, nil
	case err != nil:
		return "", fmt.Errorf("reading namespace %q of the managed cluster: %w", name, err)
	case namespace.DeletionTimestamp != nil:
		return mirror.NamespaceTerminating, nil
	default:
		return mirror.NamespaceActive, nil
	}
}

// parentOf reads the parent of a child on the hub; nil if it does not exist.
func (m *reconciler) parentOf(ctx context.Context, child *kudo.Instance) (*kudo.Instance, error) {
	parent := &kudo.Instance{}
	name := child.Parent().Name
	err := m.hub.Get(ctx, types.NamespacedName{Namespace: child.Namespace, Name: name}, parent)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Instance %q on the hub: %w", name, err)
	}
	return parent, nil
}

// isDetached reports whether the cluster is being detached from the hub: its namespace is deleted together with everything in it. It uses a
// live read that began at most a second ago, because a child may have waited for its parent since, and after the deletion of the Instance
// was seen, because the namespace is marked before its objects. Instances that are deleted at the same time share reads.
func (m *reconciler) isDetached(ctx context.Context, deleted *kudo.Instance) (bool, error) {
	began := m.clock()
	since := m.sightings.of(deleted)
	if recent := began.Add(-time.Second); recent.After(since) {
		since = recent
	}
	if _, attached := m.attached.after(m.cluster, since); attached {
		return false, nil
	}
	namespace := &corev1.Namespace{}
	err := m.hubLive.Get(ctx, types.NamespacedName{Name: m.cluster}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the cluster's namespace on the hub before a removal: %w", err)
	}
	if namespace.DeletionTimestamp != nil {
		return true, nil
	}
	m.attached.note(m.cluster, began, struct{}{})
	return false, nil
}
