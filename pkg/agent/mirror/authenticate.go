package mirror

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent/secret"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// The Secret in the agent's namespace with the key of signatures.
const (
	keySecret = "tandem-mirror-key"
	keyBytes  = 32
	// keyDelay is how long to wait before the key is read again.
	keyDelay = 5 * time.Second
)

// LoadSigner returns the Signer with the key in the agent's namespace, which it creates if it does not exist. It tries again until the managed
// cluster can be reached, or ctx ends.
func LoadSigner(ctx context.Context, namespace string, local ctrl.Manager) (*Signer, error) {
	var key secret.Key
	err := wait.PollUntilContextCancel(ctx, keyDelay, true, func(ctx context.Context) (bool, error) {
		var err error
		name := types.NamespacedName{Namespace: namespace, Name: keySecret}
		if key, err = secret.EnsureKey(ctx, local.GetClient(), local.GetAPIReader(), name, keyBytes); err != nil {
			local.GetLogger().Error(err, "failed to read the key of mirrors; retrying", "after", keyDelay)
		}
		return err == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the key of mirrors: %w", err)
	}
	return NewSigner(key.Bytes, key.Created), nil
}

// authenticate returns the mirror if it is signed, or if the hub confirms it: then it is signed, now or with the copy of the Instance. Otherwise it
// returns nil: the object belongs to another writer. Mirrors of a release that did not sign them, or whose key is lost, are confirmed by the
// uid of the Instance on the hub, and are not changed otherwise.
func (m *mirror) authenticate(ctx context.Context, wanted, existing *kudo.Instance) (*kudo.Instance, error) {
	if existing == nil {
		return nil, nil
	}
	signed := m.signer.IsSigned(existing)
	if wanted == nil { // only its orphan, or what is left of its removal, remains
		if signed || m.signer.Predates(existing) {
			return existing, nil
		}
		return nil, nil
	}
	copies := wanted.DeletionTimestamp == nil && isResolved(wanted) // the copy is signed
	if !signed && !copies {
		return m.confirm(ctx, wanted, existing)
	}
	return existing, m.signVersions(ctx, wanted, existing)
}

// confirm signs a mirror whose Instance the hub has not resolved, if it is what the hub knows: another writer may have changed it. It returns one
// that is to be removed as the hub has it.
func (m *mirror) confirm(ctx context.Context, wanted, existing *kudo.Instance) (*kudo.Instance, error) {
	switch old := m.signer.Predates(existing); {
	case !mirrors(existing, wanted) && old:
		return existing, nil
	case !mirrors(existing, wanted):
		return nil, nil
	case wanted.DeletionTimestamp == nil && !isStarted(existing, wanted):
		return nil, fmt.Errorf("the mirror of Instance %q in namespace %q of the managed cluster lacks the signature of addon-agent, which ignores it "+
			"until the hub has resolved its Instance", existing.Name, existing.Namespace)
	}
	if err := m.signVersions(ctx, wanted, existing); err != nil {
		return nil, err
	}
	if wanted.DeletionTimestamp != nil {
		return reset(existing, wanted), nil
	}
	maps.Copy(existing.Annotations, identityOf(wanted))
	return existing, m.update(ctx, existing)
}

// isStarted reports whether a mirror is what the agent has started last, according to its report on the hub, which no writer on the managed cluster
// changes. The hub no longer has the generation that the mirror was copied from.
func isStarted(existing, wanted *kudo.Instance) bool {
	last := wanted.Status.Execution
	if last == nil || existing.HubGeneration() < last.Generation || existing.HubGeneration() > wanted.Generation {
		return false
	}
	spec := specOf(wanted, corev1.ObjectReference{Namespace: existing.Namespace, Name: VersionName(last.OperatorVersion)})
	spec.Parameters = last.Parameters
	if existing.Spec.InstallNamespace == "" {
		spec.InstallNamespace = ""
	}
	if request := existing.Spec.PlanExecution; !request.Cancel && plan.IsHandled(wanted.Status, request.UID) {
		spec.PlanExecution = request // it is inert
	}
	return existing.Namespace == wanted.TargetNamespace() && equality.Semantic.DeepEqual(existing.Spec, spec) && hasMarksOf(existing, wanted)
}

// hasMarksOf reports whether a mirror has no other annotations that a signature covers than the hub sets while an Instance exists.
func hasMarksOf(existing, wanted *kudo.Instance) bool {
	marks := identityOf(wanted)
	marks[kudo.AnnotationHubGeneration] = existing.Annotations[kudo.AnnotationHubGeneration]
	marks[kudo.AnnotationInventoryRestored] = existing.Annotations[kudo.AnnotationInventoryRestored]
	return !slices.ContainsFunc(signedAnnotations, func(name string) bool {
		found, exists := existing.Annotations[name]
		want, isSet := marks[name]
		return exists && (!isSet || found != want)
	})
}

// reset returns the unsigned mirror of an Instance that is being deleted as the hub has that, to be signed when it is marked for removal: another
// writer may have changed it. Its inventory may lack objects.
func reset(existing, wanted *kudo.Instance) *kudo.Instance {
	mirrored := existing.DeepCopy()
	mirrored.Spec = specOf(wanted, wanted.Spec.OperatorVersion)
	if existing.Spec.InstallNamespace == "" { // it is immutable, and that of the mirror counts
		mirrored.Spec.InstallNamespace = ""
	}
	mark(mirrored, marksOf(wanted))
	mirrored.Annotations[kudo.AnnotationInventoryRestored] = "true"
	return mirrored
}

// signVersions signs the mirrors of the OperatorVersions of an Instance that an earlier release has created: those that the hub still has must be
// equal. On the hub they may have been replaced or deleted since; those that its status names are signed as they are, because an OperatorVersion is
// immutable.
func (m *mirror) signVersions(ctx context.Context, wanted, existing *kudo.Instance) error {
	reported := versionsOf(wanted)
	names := append([]string{existing.Spec.OperatorVersion.Name}, slices.Concat(reported, versionsOf(existing))...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		version := &kudo.OperatorVersion{}
		err := m.local.Get(ctx, types.NamespacedName{Namespace: existing.Namespace, Name: name}, version, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) || err == nil && (m.signer.IsSigned(version) || !m.signer.Predates(version)) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading mirrored OperatorVersion %q: %w", name, err)
		}
		if err := m.confirmVersion(ctx, version.DeepCopy(), slices.Contains(reported, name)); err != nil {
			return err
		}
	}
	return nil
}

// versionsOf returns the names of the mirrored OperatorVersions in the status of an Instance.
func versionsOf(i *kudo.Instance) []string {
	var names []string
	if last := i.Status.Execution; last != nil {
		names = append(names, VersionName(last.OperatorVersion))
	}
	if whole := i.Status.Whole; whole != nil {
		names = append(names, VersionName(whole.OperatorVersion))
	}
	return names
}

// confirmVersion signs the mirror of an OperatorVersion unless the hub has different content under its uid, or has neither that nor reported it.
func (m *mirror) confirmVersion(ctx context.Context, existing *kudo.OperatorVersion, reported bool) error {
	reference := HubReference(existing)
	original := &kudo.OperatorVersion{}
	err := m.hub.Get(ctx, types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}, original)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), err == nil && original.UID != reference.UID:
		if !reported {
			return nil
		}
	case err != nil:
		return fmt.Errorf("reading OperatorVersion %q on the hub: %w", reference.Name, err)
	case !equality.Semantic.DeepEqual(existing.Spec, *original.NamedSpec()):
		ctrl.LoggerFrom(ctx).Info("a mirrored OperatorVersion differs from the one on the hub: it is not signed, and nothing of it runs",
			"mirror", client.ObjectKeyFromObject(existing))
		return nil
	}
	if VersionName(corev1.ObjectReference{Name: reference.Name, UID: reference.UID}) != existing.Name {
		return nil
	}
	if err := m.signAndWrite(ctx, existing, func() error { return m.updateAsIs(ctx, existing) }); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("signing mirrored OperatorVersion %q: %w", existing.Name, err))
	}
	return nil
}

// keepsUnsigned prepares the creation of a mirrored OperatorVersion whose name an unsigned object has. If that is equal, it is signed and
// kept. If it only claims to be the mirror, it is deleted.
func (m *mirror) keepsUnsigned(ctx context.Context, made *kudo.OperatorVersion) (bool, error) {
	existing := &kudo.OperatorVersion{}
	err := m.local.Get(ctx, client.ObjectKeyFromObject(made), existing)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !kudo.IsMirror(existing) {
		return false, fmt.Errorf("namespace %q already has an OperatorVersion %q that does not belong to the hub: delete it, or install into another "+
			"namespace (spec.installNamespace)", made.Namespace, made.Name)
	}
	if HubReference(existing) == HubReference(made) && equality.Semantic.DeepEqual(existing.Spec, made.Spec) {
		return true, m.signAndWrite(ctx, existing, func() error { return m.updateAsIs(ctx, existing) })
	}
	return false, client.IgnoreNotFound(m.local.Delete(ctx, existing, client.Preconditions{UID: &existing.UID}))
}
