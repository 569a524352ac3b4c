package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
)

// copyVersion mirrors the OperatorVersion that the Instance's spec refers to, and returns the mirror's name. An OperatorVersion is immutable,
// and one that replaces it is resolved again: it is read on the hub once per resolution, and again if its mirror was lost. Instances that are
// resolved at the same time share a read.
func (m *reconciler) copyVersion(ctx context.Context, wanted *kudo.Instance) (types.NamespacedName, error) {
	resolution := m.resolutions.of(wanted)
	if known, noted := m.resolutions.version(wanted.Name, resolution); noted {
		if exists, err := m.hasVersion(ctx, known); err != nil || exists {
			return known, err
		}
	}
	name, err := m.sharedVersion(ctx, wanted)
	if err != nil {
		return types.NamespacedName{}, err
	}
	if name.Name == "" {
		var version *kudo.OperatorVersion
		if version, err = m.readAndMirror(ctx, wanted); version == nil {
			return types.NamespacedName{}, err
		}
		name = client.ObjectKeyFromObject(version)
	}
	m.resolutions.note(wanted.Name, resolution, name) // also with an error: the mirror may exist, and must not be dropped as unneeded
	return name, err
}

// sharedVersion returns the existing mirror of the OperatorVersion that the Instance's spec refers to, if the OperatorVersion was read on the
// hub after the Instance was seen; empty otherwise.
func (m *reconciler) sharedVersion(ctx context.Context, wanted *kudo.Instance) (types.NamespacedName, error) {
	key := mirror.VersionKey(wanted, m.cluster)
	uid, read := m.versions.after(key, m.sightings.of(wanted))
	if chosen := wanted.VersionUID(); !read || chosen != "" && chosen != uid {
		return types.NamespacedName{}, nil
	}
	name := types.NamespacedName{Namespace: wanted.TargetNamespace(), Name: mirror.VersionName(corev1.ObjectReference{Name: key.Name, UID: uid})}
	if exists, err := m.hasVersion(ctx, name); err != nil || !exists {
		return types.NamespacedName{}, err
	}
	return name, nil
}

// readAndMirror mirrors the OperatorVersion on the hub that the Instance's spec refers to. If the hub has replaced the one that a child's
// parent has chosen, it returns the mirror of that one. If a mirror may have been created in spite of an error, it returns both.
func (m *reconciler) readAndMirror(ctx context.Context, wanted *kudo.Instance) (*kudo.OperatorVersion, error) {
	key := mirror.VersionKey(wanted, m.cluster)
	original, err := m.readVersion(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case !install.Chooses(wanted, original):
		return m.chosenVersion(ctx, key, wanted)
	default:
		return m.mirrorVersion(ctx, original, wanted.TargetNamespace())
	}
}

// chosenVersion returns the mirror of the OperatorVersion that the child's parent has chosen and the hub has replaced since.
func (m *reconciler) chosenVersion(ctx context.Context, key types.NamespacedName, child *kudo.Instance) (*kudo.OperatorVersion, error) {
	chosen := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{
		Namespace: child.TargetNamespace(), Name: mirror.VersionName(corev1.ObjectReference{Name: key.Name, UID: child.VersionUID()}),
	}}
	exists, err := m.hasVersionLive(ctx, client.ObjectKeyFromObject(chosen))
	if err != nil {
		return nil, fmt.Errorf("reading mirrored OperatorVersion %q: %w", chosen.Name, err)
	}
	if !exists {
		return nil, fmt.Errorf("OperatorVersion %q was replaced on the hub: run a plan of Instance %q to use the new one", key, child.Parent().Name)
	}
	return chosen, nil
}

// ensureVersion mirrors the OperatorVersion of that name on the hub.
func (m *reconciler) ensureVersion(ctx context.Context, key types.NamespacedName, namespace string) error {
	original, err := m.readVersion(ctx, key)
	if err != nil {
		return err
	}
	mirrored, err := m.mirrorVersion(ctx, original, namespace)
	if err != nil {
		return err
	}
	return m.copyExistingContent(ctx, client.ObjectKeyFromObject(mirrored))
}

func (m *reconciler) readVersion(ctx context.Context, key types.NamespacedName) (*kudo.OperatorVersion, error) {
	began := m.clock()
	original := &kudo.OperatorVersion{}
	if err := m.hub.Get(ctx, key, original); err != nil {
		return nil, fmt.Errorf("reading OperatorVersion %q on the hub: %w", key, err)
	}
	m.versions.note(key, began, original.UID)
	return original, nil
}

// mirrorVersion creates the mirror of an OperatorVersion if it does not exist; Instances that are mirrored at the same time share the request.
func (m *reconciler) mirrorVersion(ctx context.Context, original *kudo.OperatorVersion, namespace string) (*kudo.OperatorVersion, error) {
	made := mirror.NewVersion(original, namespace)
	mirrored := client.ObjectKeyFromObject(made)
	_, err, _ := m.creations.Do(mirrored.String(), func() (any, error) {
		if exists, err := m.hasVersionLive(ctx, mirrored); err != nil || exists {
			return nil, err
		}
		if kept, err := m.keepsUnsigned(ctx, made); err != nil || kept {
			return nil, err
		}
		err := m.signAndWrite(ctx, made, func() error { return m.createWithNamespace(ctx, made) })
		if err == nil {
			m.created.Store(mirrored, len(original.Spec.Content) > 0)
		}
		return nil, err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return made, fmt.Errorf("mirroring OperatorVersion %q: %w", client.ObjectKeyFromObject(original), err)
	}
	return made, nil
}

// dropVersions deletes mirrored OperatorVersions that no Instance needs, according to the cache and then to a live read, because the cache may
// lack an Instance that was just written.
func (m *reconciler) dropVersions(ctx context.Context) error {
	if candidates, err := m.surplusVersions(ctx); err != nil || len(candidates) == 0 {
		return err
	}
	m.needs.Lock()
	defer m.needs.Unlock()
	candidates, err := m.surplusVersions(ctx) // an Instance may have chosen one since
	if err != nil || len(candidates) == 0 {
		return err
	}
	if candidates, err = filterUnneeded(ctx, m.localLive, candidates); err != nil {
		return err
	}
	for i := range candidates {
		if err := m.dropVersion(ctx, &candidates[i]); err != nil {
			return err
		}
	}
	return nil
}

// dropVersion deletes a mirrored OperatorVersion. Until the cache lacks it, it is read live, also after a deletion without a response, which the API
// server may have executed: an Instance may choose it again.
func (m *reconciler) dropVersion(ctx context.Context, version *kudo.OperatorVersion) error {
	m.dropped.Add(version.UID, nil)
	m.created.Delete(client.ObjectKeyFromObject(version))
	err := m.local.Delete(ctx, version, client.Preconditions{UID: &version.UID})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if isRefused(err) { // a conflict, too: it was mirrored again, and the cache is stale
		m.dropped.Remove(version.UID)
	}
	if err != nil {
		return fmt.Errorf("deleting mirrored OperatorVersion %q: %w", version.Name, err)
	}
	return nil
}

// isRefused reports whether the API server has refused a request, and so has not executed it.
func isRefused(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && answer.Status().Code >= http.StatusBadRequest && answer.Status().Code < http.StatusInternalServerError
}

// surplusVersions returns the mirrored OperatorVersions to delete: according to the cache no Instance needs them, no resolved Instance has
// chosen them, and no Instance on the hub that was not mirrored since the start may choose them.
func (m *reconciler) surplusVersions(ctx context.Context) ([]kudo.OperatorVersion, error) {
	versions := &kudo.OperatorVersionList{}
	if err := m.local.List(ctx, versions, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing mirrored OperatorVersions: %w", err)
	}
	candidates := slices.DeleteFunc(m.resolutions.without(versions.Items), func(v kudo.OperatorVersion) bool {
		return !m.signer.ProofOf(&v).HasObjects() // the object of another writer, whatever it claims to be
	})
	if len(candidates) == 0 {
		return nil, nil
	}
	candidates, err := filterUnneeded(ctx, m.local, candidates)
	if err != nil || len(candidates) == 0 {
		return nil, err
	}
	return m.filterUnexpected(ctx, candidates)
}

// filterUnexpected returns the mirrored versions without those that an Instance on the hub may choose.
func (m *reconciler) filterUnexpected(ctx context.Context, versions []kudo.OperatorVersion) ([]kudo.OperatorVersion, error) {
	instances := &kudo.InstanceList{}
	if err := m.hub.List(ctx, instances, client.InNamespace(m.cluster), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Instances on the hub: %w", err)
	}
	return mirror.Unexpected(versions, instances.Items, m.cluster, m.resolutions.hasChoice), nil
}

// filterUnneeded returns the mirrored versions that no Instance needs.
func filterUnneeded(ctx context.Context, local client.Reader, versions []kudo.OperatorVersion) ([]kudo.OperatorVersion, error) {
	instances := &kudo.InstanceList{}
	if err := local.List(ctx, instances, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing mirrored Instances: %w", err)
	}
	return mirror.Unneeded(versions, instances.Items), nil
}

// confirmVersions signs mirrored OperatorVersions of an Instance that an earlier release has created, if the hub confirms them.
func (m *reconciler) confirmVersions(ctx context.Context, wanted, existing *kudo.Instance) error {
	for _, claim := range mirror.VersionsOf(wanted, existing) {
		version := &kudo.OperatorVersion{}
		err := m.local.Get(ctx, types.NamespacedName{Namespace: existing.Namespace, Name: claim.Name}, version, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading mirrored OperatorVersion %q: %w", claim.Name, err)
		}
		if proof := m.signer.ProofOf(version); proof.Signed || !proof.Predates() {
			continue
		}
		if err := m.confirmVersion(ctx, version.DeepCopy(), claim.Reported); err != nil {
			return err
		}
	}
	return nil
}

// confirmVersion signs the mirror of an OperatorVersion if the hub confirms it.
func (m *reconciler) confirmVersion(ctx context.Context, existing *kudo.OperatorVersion, reported bool) error {
	reference := mirror.HubReference(existing)
	original := &kudo.OperatorVersion{}
	err := m.hub.Get(ctx, types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}, original)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		original = nil
	case err != nil:
		return fmt.Errorf("reading OperatorVersion %q on the hub: %w", reference.Name, err)
	}
	switch mirror.Confirm(existing, original, reported) {
	case mirror.Different:
		ctrl.LoggerFrom(ctx).Info("a mirrored OperatorVersion differs from the one on the hub: it is not signed, and nothing of it runs",
			"mirror", client.ObjectKeyFromObject(existing))
	case mirror.Confirmed:
		if err := m.signAndWrite(ctx, existing, func() error { return m.updateAsIs(ctx, existing) }); err != nil {
			return client.IgnoreNotFound(fmt.Errorf("signing mirrored OperatorVersion %q: %w", existing.Name, err))
		}
	}
	return nil
}

// keepsUnsigned prepares the creation of a mirrored OperatorVersion whose name is taken by an unsigned object: it signs and keeps that
// object, or deletes it. The cache may have one that no longer exists.
func (m *reconciler) keepsUnsigned(ctx context.Context, made *kudo.OperatorVersion) (bool, error) {
	existing, name := &kudo.OperatorVersion{}, client.ObjectKeyFromObject(made)
	err := m.local.Get(ctx, name, existing, client.UnsafeDisableDeepCopy)
	if err == nil {
		existing = &kudo.OperatorVersion{}
		err = m.localLive.Get(ctx, name, existing)
	}
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	keeps, err := mirror.KeepsVersion(existing, made)
	switch {
	case err != nil:
		return false, err
	case keeps && m.signer.IsSigned(existing): // since the cache read it
		return true, nil
	case keeps:
		return true, m.signAndWrite(ctx, existing, func() error { return m.updateAsIs(ctx, existing) })
	default:
		return false, client.IgnoreNotFound(m.local.Delete(ctx, existing, client.Preconditions{UID: &existing.UID}))
	}
}
