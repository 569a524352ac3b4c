package mirror

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
)

// execute makes the writes of a decision, and returns its error.
func (m *reconciler) execute(ctx context.Context, wanted *kudo.Instance, decision mirror.Decision) error {
	if len(decision.Writes) > 0 && decision.Writes[0].Kind == mirror.Create {
		defer m.signer.creates(mirror.TargetOf(wanted))()
	}
	var stored *kudo.Instance
	for _, write := range decision.Writes {
		next := write.Onto(stored)
		if err := m.write(ctx, wanted, write, next); err != nil {
			return err
		}
		stored = next
	}
	if decision.Removed { // the hub removes its finalizer then
		m.statuses.SetRemoved(wanted)
	}
	return decision.Err
}

// write makes one write. It updates changed to the stored mirror.
func (m *reconciler) write(ctx context.Context, wanted *kudo.Instance, write mirror.Write, changed *kudo.Instance) error {
	switch write.Kind {
	case mirror.Create:
		return m.create(ctx, wanted, changed)
	case mirror.RestoreVersion:
		return m.restoreVersion(ctx, write, changed.Namespace)
	case mirror.UpdateStatus:
		return m.writeStatus(ctx, changed)
	case mirror.Delete:
		return m.drop(ctx, changed)
	case mirror.Leave:
		ctrl.LoggerFrom(ctx).Info("releasing a mirror whose namespace is being deleted", "mirror", client.ObjectKeyFromObject(changed))
		return client.IgnoreNotFound(m.update(ctx, changed, !write.Unsigned))
	case mirror.Orphan:
		if err := m.update(ctx, changed, !write.Unsigned); err != nil {
			return err
		}
		ctrl.LoggerFrom(ctx).Info("Instance no longer exists on the hub: keeping its applied objects", "mirror", client.ObjectKeyFromObject(changed))
		return nil
	default:
		return m.update(ctx, changed, !write.Unsigned)
	}
}

// restoreVersion mirrors an OperatorVersion, unless it does not exist, or is optional and cannot be read.
func (m *reconciler) restoreVersion(ctx context.Context, write mirror.Write, namespace string) error {
	key := types.NamespacedName{Namespace: write.Version.Namespace, Name: write.Version.Name}
	err := m.ensureVersion(ctx, key, namespace)
	if lost := (*content.Error)(nil); write.Optional && (apierrors.IsForbidden(err) || errors.As(err, &lost)) {
		ctrl.LoggerFrom(ctx).Info("the Instance cannot return to its former version, which cannot be read", "operatorVersion", key, "reason", err.Error())
		return nil
	}
	return client.IgnoreNotFound(err)
}

// create creates a mirror, which a later write signs: until then, the engine ignores it.
func (m *reconciler) create(ctx context.Context, wanted, made *kudo.Instance) error {
	slot := fmt.Sprint(install.SlotOf(wanted))
	m.slots.LockKey(slot)
	defer func() { _ = m.slots.UnlockKey(slot) }() // it is locked
	if err := m.checkSlot(ctx, wanted); err != nil {
		return err
	}
	err := m.createWithNamespace(ctx, made)
	if apierrors.IsAlreadyExists(err) {
		return m.nameTakenError(ctx, made, err)
	}
	if err != nil {
		return fmt.Errorf("mirroring Instance %q: %w", wanted.Name, err)
	}
	m.writes.NoteIfNewer(made)
	return nil
}

// nameTakenError returns the error for a mirror whose name is taken: a conflict if it is taken by another mirror, which the cache lacks.
func (m *reconciler) nameTakenError(ctx context.Context, made *kudo.Instance, refused error) error {
	existing := &kudo.Instance{}
	if err := m.localLive.Get(ctx, client.ObjectKeyFromObject(made), existing); err != nil {
		return fmt.Errorf("reading Instance %q: %w", made.Name, err)
	}
	if kudo.IsMirror(existing) {
		return apierrors.NewConflict(kudo.GroupVersion.WithResource("instances").GroupResource(), made.Name, refused)
	}
	return mirror.NameTakenError(made)
}

// checkSlot returns an error if another Instance has the slot of the new mirror: one with a prior claim on the hub, or one in the install
// namespace. Only one mirror at a time is created in a slot, and the API server is read if there is another Instance: the cache may lack a
// mirror that was just created.
func (m *reconciler) checkSlot(ctx context.Context, wanted *kudo.Instance) error {
	onHub := &kudo.InstanceList{}
	if err := m.hub.List(ctx, onHub, client.InNamespace(m.cluster), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Instances on the hub: %w", err)
	}
	if err := mirror.Precedes(wanted, onHub.Items); err != nil {
		return err
	}
	reader := client.Reader(m.local)
	if mirror.SharesSlot(wanted, onHub.Items) {
		reader = m.localLive
	}
	list := &kudo.InstanceList{}
	if err := reader.List(ctx, list, client.InNamespace(wanted.TargetNamespace())); err != nil {
		return fmt.Errorf("listing mirrored Instances: %w", err)
	}
	return mirror.Occupied(wanted, m.signer.candidates(list.Items))
}

// drop deletes the mirror of a removed Instance.
func (m *reconciler) drop(ctx context.Context, dropped *kudo.Instance) error {
	if _, known := m.dropped.Get(dropped.UID); known { // the cache still has it
		return nil
	}
	if controllerutil.RemoveFinalizer(dropped, kudo.Finalizer) {
		if err := m.update(ctx, dropped, false); err != nil { // a signature does not cover finalizers
			return client.IgnoreNotFound(err)
		}
	}
	err := m.local.Delete(ctx, dropped, client.Preconditions{UID: &dropped.UID, ResourceVersion: &dropped.ResourceVersion})
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("deleting Instance %q: %w", dropped.Name, err))
	}
	m.dropped.Add(dropped.UID, nil)
	return nil
}
