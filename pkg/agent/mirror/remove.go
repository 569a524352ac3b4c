package mirror

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// drop deletes the mirror of a removed Instance once the hub has received that report. Until then the removal can be cancelled.
func (m *mirror) drop(ctx context.Context, existing *kudo.Instance) error {
	if _, known := m.dropped.Get(existing.UID); known { // the cache still has it
		return nil
	}
	dropped := existing.DeepCopy()
	if controllerutil.RemoveFinalizer(dropped, kudo.Finalizer) {
		if err := m.updateUnconfirmed(ctx, dropped); err != nil { // a signature does not cover finalizers
			return client.IgnoreNotFound(err)
		}
	}
	err := m.local.Delete(ctx, dropped, client.Preconditions{UID: &dropped.UID, ResourceVersion: &dropped.ResourceVersion})
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("deleting Instance %q: %w", dropped.Name, err))
	}
	m.dropped.Add(existing.UID, nil)
	return nil
}

// remove hands the mirror over for removal, unless it never had objects. Deleting the cluster's whole namespace is not a removal. A mirror
// of another Instance of that name, as on a hub that was restored, is orphaned: nothing on the cluster belongs to the one being deleted.
func (m *mirror) remove(ctx context.Context, wanted, existing *kudo.Instance) error {
	if nothing, err := m.hasNothing(ctx, wanted, existing); err != nil || nothing {
		return err
	}
	switch {
	case existing != nil && existing.IsRemoving():
		return m.skipCleanup(ctx, wanted, existing)
	case existing != nil && !mirrors(existing, wanted):
		m.statuses.SetRemoved(wanted)
		return m.orphan(ctx, existing)
	}
	if waits, err := m.waitsForParent(ctx, wanted); err != nil || waits {
		return err
	}
	detached, err := m.isDetached(ctx, wanted)
	if err != nil {
		return err
	}
	if detached {
		return m.orphan(ctx, existing)
	}
	return m.handOver(ctx, wanted, existing)
}

// hasNothing reports whether an Instance without a mirror never had objects, or has none any more, and records that it is removed then.
func (m *mirror) hasNothing(ctx context.Context, wanted, existing *kudo.Instance) (bool, error) {
	if existing != nil {
		return false, nil
	}
	if wanted.Status.Execution != nil && !wanted.IsRemoved() {
		if vanished, err := m.hasVanished(ctx, wanted); err != nil || !vanished {
			return false, err
		}
	}
	m.statuses.SetRemoved(wanted)
	return true, nil
}

// waitsForParent reports whether a child that is being deleted waits until everything else of its parent is removed, whose cleanup plan may
// need it. The hub deletes them in that order; Kubernetes' garbage collector and a user who deletes all Instances together do not.
func (m *mirror) waitsForParent(ctx context.Context, child *kudo.Instance) (bool, error) {
	owner := child.Parent()
	if owner == nil {
		return false, nil
	}
	parent := &kudo.Instance{}
	err := m.hub.Get(ctx, types.NamespacedName{Namespace: child.Namespace, Name: owner.Name}, parent)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Instance %q on the hub: %w", owner.Name, err)
	}
	return parent.UID == owner.UID && parent.DeletionTimestamp != nil && !isReleased(parent), nil
}

// isDetached reports whether the cluster is being detached from the hub: its namespace is deleted together with everything in it. It uses a
// live read that began after the deletion of the Instance was seen, because the namespace is marked before its objects, and at most a second
// ago, because a child may have waited for its parent since. Instances that are deleted at the same time share reads.
func (m *mirror) isDetached(ctx context.Context, deleted *kudo.Instance) (bool, error) {
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

// handOver marks the mirror so that the engine may delete its objects. A lost mirror is re-created first, because its workloads still
// exist.
func (m *mirror) handOver(ctx context.Context, wanted, existing *kudo.Instance) (err error) {
	if existing == nil {
		defer m.signer.creates(targetOf(wanted))()
		if existing, err = m.create(ctx, wanted, wanted.Spec.OperatorVersion); err != nil {
			return err
		}
	}
	if err := m.restore(ctx, wanted, existing); err != nil {
		return err
	}
	delete(existing.Annotations, kudo.AnnotationOrphaned)
	controllerutil.AddFinalizer(existing, kudo.Finalizer)
	marks := map[string]string{kudo.AnnotationHubDeleted: m.clock().UTC().Format(time.RFC3339)}
	if skips, err := m.skipsCleanup(ctx, wanted, existing); err != nil {
		return err
	} else if skips {
		marks[kudo.AnnotationSkipCleanup] = "true"
	}
	return m.annotate(ctx, existing, marks)
}

// skipCleanup copies the request to remove everything without the cleanup plan. It cannot be withdrawn: objects that the plan needs may be
// removed already.
func (m *mirror) skipCleanup(ctx context.Context, wanted, existing *kudo.Instance) error {
	if existing.SkipsCleanup() {
		return nil
	}
	if skips, err := m.skipsCleanup(ctx, wanted, existing); err != nil || !skips {
		return err
	}
	return m.annotate(ctx, existing, map[string]string{kudo.AnnotationSkipCleanup: "true"})
}

// skipsCleanup reports whether a removal goes without the cleanup plan: as requested, or because the namespace is being deleted too, so that
// the plan can create nothing in it.
func (m *mirror) skipsCleanup(ctx context.Context, wanted, existing *kudo.Instance) (bool, error) {
	if wanted.SkipsCleanup() {
		return true, nil
	}
	return m.isTerminating(ctx, existing)
}

// orphan marks a mirror whose Instance does not exist on the hub or has been released: its objects stay, and a removal in progress is
// cancelled. It removes the finalizer, so that the mirror does not block the deletion of its namespace. A mirror of an earlier release, which the
// hub does not confirm, is not signed.
func (m *mirror) orphan(ctx context.Context, existing *kudo.Instance) error {
	if existing == nil || existing.IsRemoving() && existing.DeletionTimestamp != nil {
		return nil
	}
	released := controllerutil.RemoveFinalizer(existing, kudo.Finalizer)
	if existing.IsOrphaned() && !released {
		return nil
	}
	write := m.update
	if m.signer.isOlder(existing) && !m.signer.IsSigned(existing) {
		write = m.updateUnconfirmed
	}
	existing.Annotations[kudo.AnnotationOrphaned] = "true"
	if err := write(ctx, existing); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Instance no longer exists on the hub: keeping its applied objects",
		"mirror", client.ObjectKeyFromObject(existing))
	return nil
}
