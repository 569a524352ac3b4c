package mirror

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// hasVersion reports whether a signed mirror of an OperatorVersion exists, also if the cache does not have it yet.
func (m *reconciler) hasVersion(ctx context.Context, name types.NamespacedName) (bool, error) {
	existing, err := m.findVersion(ctx, name)
	if apierrors.IsNotFound(err) {
		_, created := m.created.Load(name)
		return created, nil
	}
	return err == nil && m.signer.IsSigned(existing), err
}

// hasVersionLive is hasVersion for a mirror that no Instance names yet: another agent, or an earlier process of this one, may have deleted what
// the cache has. It reads only metadata live.
func (m *reconciler) hasVersionLive(ctx context.Context, name types.NamespacedName) (bool, error) {
	if exists, err := m.hasVersion(ctx, name); err != nil || !exists {
		return false, err
	}
	existing := &metav1.PartialObjectMetadata{}
	existing.SetGroupVersionKind(kudo.GroupVersion.WithKind("OperatorVersion"))
	err := m.localLive.Get(ctx, name, existing)
	return err == nil, client.IgnoreNotFound(err)
}

// findVersion reads a mirrored OperatorVersion from the cache, or live if the agent has deleted the one in the cache. It is read-only.
func (m *reconciler) findVersion(ctx context.Context, name types.NamespacedName) (*kudo.OperatorVersion, error) {
	cached := &kudo.OperatorVersion{}
	if err := m.local.Get(ctx, name, cached, client.UnsafeDisableDeepCopy); err != nil { // it is large
		return nil, err
	}
	if _, dropped := m.dropped.Get(cached.UID); !dropped {
		return cached, nil
	}
	existing := &kudo.OperatorVersion{}
	return existing, m.localLive.Get(ctx, name, existing)
}

// signedVersion returns a mirrored OperatorVersion, also if the cache does not have it yet; nil if there is none, and if the cache does not have
// one yet that has no content. It is read-only.
func (m *reconciler) signedVersion(ctx context.Context, name types.NamespacedName) (*kudo.OperatorVersion, error) {
	version, err := m.findVersion(ctx, name)
	if content, created := m.created.Load(name); apierrors.IsNotFound(err) && created && content.(bool) {
		version = &kudo.OperatorVersion{}
		err = m.localLive.Get(ctx, name, version)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading mirrored OperatorVersion %q: %w", name.Name, err)
	case !m.signer.IsSigned(version):
		return nil, nil
	default:
		return version, nil
	}
}
