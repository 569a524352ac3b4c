package mirror

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	corecontent "github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/content"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// fetchJitter is how long the agent waits at most, per MiB, before it fetches content: a rollout gives the same content to many agents at once.
const fetchJitter = time.Second

// copyContents copies the content of the OperatorVersion of an Instance, and that of those which the Instance still uses. Of the latter, what
// the hub no longer has stays missing.
func (m *reconciler) copyContents(ctx context.Context, o *mirror.Observation) error {
	if err := m.copyContent(ctx, types.NamespacedName{Namespace: o.Version.Namespace, Name: o.Version.Name}); err != nil || o.Mirror == nil {
		return err
	}
	for _, claim := range mirror.VersionsOf(o.Wanted, o.Mirror) {
		if claim.Name == o.Version.Name {
			continue
		}
		if err := m.copyExistingContent(ctx, types.NamespacedName{Namespace: o.Mirror.Namespace, Name: claim.Name}); err != nil {
			return err
		}
	}
	return nil
}

// copyExistingContent copies the missing content of a mirrored OperatorVersion as far as the hub has it. What it no longer has stays missing.
func (m *reconciler) copyExistingContent(ctx context.Context, name types.NamespacedName) error {
	err := m.copyContent(ctx, name)
	if errors.As(err, new(*corecontent.Error)) {
		ctrl.LoggerFrom(ctx).Info("cannot restore the content of an OperatorVersion in use", "version", name, "reason", err.Error())
		return nil
	}
	return err
}

// missingPart is a part of a mirrored OperatorVersion that is missing or altered.
type missingPart struct {
	file kudo.ContentFile
	part int
}

// copyContent copies the missing and altered parts of a mirrored OperatorVersion from the hub. It returns a *controller.PostponedError before it
// fetches any.
func (m *reconciler) copyContent(ctx context.Context, name types.NamespacedName) error {
	version, err := m.signedVersion(ctx, name)
	if err != nil || version == nil || len(version.Spec.Content) == 0 {
		return err
	}
	missing, err := m.checkParts(ctx, version)
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		m.fetches.Delete(name)
		return nil
	}
	now := m.clock()
	due, _ := m.fetches.LoadOrStore(name, now.Add(jitterOf(missing)))
	if wait := due.(time.Time).Sub(now); wait > 0 {
		return &controller.PostponedError{For: wait}
	}
	_, err, _ = m.creations.Do("content of "+name.String(), func() (any, error) {
		for _, part := range missing {
			if err := m.fetch(ctx, version, part); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return err
}

// checkParts returns the parts of a mirrored OperatorVersion that are missing or altered, and takes over those of an earlier mirror of that name,
// which would be collected with it.
func (m *reconciler) checkParts(ctx context.Context, version *kudo.OperatorVersion) ([]missingPart, error) {
	var missing []missingPart
	for _, file := range version.Spec.Content {
		for part := range file.Parts {
			found, err := m.contents.Verify(ctx, version, file, part)
			switch {
			case errors.As(err, new(*corecontent.Error)):
				missing = append(missing, missingPart{file, part})
			case err != nil:
				return nil, err
			case !isOwned(found, version):
				if err := m.own(ctx, found, version); err != nil {
					return nil, err
				}
			}
		}
	}
	return missing, nil
}

func isOwned(part metav1.Object, version *kudo.OperatorVersion) bool {
	owners := part.GetOwnerReferences()
	return len(owners) == 1 && owners[0].UID == version.UID
}

// own makes a mirrored OperatorVersion the only owner of an OperatorContent.
func (m *reconciler) own(ctx context.Context, part *metav1.PartialObjectMetadata, version *kudo.OperatorVersion) error {
	owned := part.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{corecontent.OwnerOf(version)}
	err := m.local.Patch(ctx, owned, client.MergeFromWithOptions(part, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldManager))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("taking over OperatorContent %q: %w", part.Name, err)
	}
	return nil
}

// jitterOf returns how long to wait before parts are fetched.
func jitterOf(missing []missingPart) time.Duration {
	return rand.N(time.Duration(len(missing)) * fetchJitter * corecontent.PartBytes >> 20)
}

// fetch copies a part from the hub, in place of an altered one.
func (m *reconciler) fetch(ctx context.Context, version *kudo.OperatorVersion, missing missingPart) error {
	local := client.ObjectKeyFromObject(version)
	_, err := content.Part(ctx, m.localLive, local, missing.file, missing.part)
	var problem *corecontent.Error
	switch {
	case err == nil: // the cache lacks it
		return nil
	case !errors.As(err, &problem):
		return err
	}
	onHub := mirror.HubReference(version)
	data, err := content.Part(ctx, m.hub, types.NamespacedName{Namespace: onHub.Namespace, Name: onHub.Name}, missing.file, missing.part)
	if err != nil {
		return fmt.Errorf("fetching the content of OperatorVersion %q from the hub: %w", onHub.Name, err)
	}
	made := corecontent.New(version, data)
	if problem.Found != "" || problem.Cause != nil {
		ctrl.LoggerFrom(ctx).Info("replacing altered content", "name", made.Name, "reason", problem.Error())
		if err := m.local.Delete(ctx, made); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting OperatorContent %q: %w", made.Name, err)
		}
	}
	made.TypeMeta = metav1.TypeMeta{}
	if err := m.local.Create(ctx, made, client.FieldOwner(fieldManager), apply.Unchecked); err != nil {
		return fmt.Errorf("storing OperatorContent %q: %w", made.Name, err)
	}
	return nil
}

// contentUsers maps a deleted OperatorContent to the Instances that use its OperatorVersion: it is fetched again.
func (m *reconciler) contentUsers(ctx context.Context, part *metav1.PartialObjectMetadata) []reconcile.Request {
	return m.usersIn(ctx, part.Namespace)
}
