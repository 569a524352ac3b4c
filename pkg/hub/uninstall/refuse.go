package uninstall

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// refuseWhileLed returns an error while the Lease has a holder. A leader that terminates properly releases it.
func (u *uninstallation) refuseWhileLed(ctx context.Context, key types.NamespacedName) error {
	var lease coordinationv1.Lease
	err := u.client.Get(ctx, key, &lease)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Lease %s: %w", key, err)
	}
	holder, until := holderOf(&lease)
	if !u.now().Before(until) {
		return nil
	}
	return fmt.Errorf("an addon-manager is running and would restore everything: %s holds Lease %s until %s; stop it first "+
		"(kubectl -n %s scale deployment addon-manager --replicas=0)", holder, key, until.UTC().Format(time.RFC3339), key.Namespace)
}

// holderOf returns the holder of a Lease, and until when it holds it without a renewal; the zero time if there is none.
func holderOf(lease *coordinationv1.Lease) (string, time.Time) {
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder == "" || lease.Spec.RenewTime == nil {
		return "", time.Time{}
	}
	return holder, lease.Spec.RenewTime.Add(time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second)
}

// conversionTimeout is ample time for an addon-manager to convert one object. An API server waits 30 s for an unreachable one.
const conversionTimeout = 3 * time.Second

// refuseWhileConverted returns an error while an addon-manager serves webhooks, with or without a Lease: an object that is stored in one
// version and can be read in another was converted, which only addon-manager does.
func (u *uninstallation) refuseWhileConverted(ctx context.Context) error {
	definitions, err := u.definitions(ctx)
	if err != nil {
		return err
	}
	for i := range definitions {
		converted, err := u.findConverted(ctx, &definitions[i])
		if err != nil {
			return err
		}
		if converted != nil {
			return fmt.Errorf("an addon-manager is running and would restore everything: it converts %s %q; stop it first",
				converted.Kind, converted.Name)
		}
	}
	return nil
}

// findConverted returns an object that was read in a version that requires conversion by a webhook; nil if none can be read so. It gets a
// single object, which is read from storage, while a list might come from a cache.
func (u *uninstallation) findConverted(
	ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition,
) (*metav1.PartialObjectMetadata, error) {
	stored, converted := versionsOf(definition)
	if stored == "" || converted == "" {
		return nil, nil
	}
	kind := schema.GroupVersionKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(kind.GroupKind().WithVersion(stored))
	if err := u.client.List(ctx, found, client.Limit(1)); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing %s: %w", definition.Name, err)
	}
	if len(found.Items) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, conversionTimeout)
	defer cancel()
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind.GroupKind().WithVersion(converted))
	if err := u.client.Get(ctx, client.ObjectKeyFromObject(&found.Items[0]), object); err != nil {
		return nil, nil // no webhook responds, or the object is deleted
	}
	return object, nil
}

// versionsOf returns the version in which objects are stored, and one that requires conversion by a webhook; empty if there is none.
func versionsOf(definition *apiextensionsv1.CustomResourceDefinition) (stored, converted string) {
	for _, version := range definition.Spec.Versions {
		switch {
		case version.Storage:
			stored = version.Name
		case version.Served && withoutConversion(definition) != nil:
			converted = version.Name
		}
	}
	return stored, converted
}

const (
	// restoreTimeout is ample time for an addon-manager to restore a removed verdict.
	restoreTimeout = 2 * time.Second
	// maxTries is the maximum number of add-ons to try, one after the other, if the first cannot be used.
	maxTries = 10
)

// refuseWhileJudged returns an error while an addon-manager runs without a Lease. It tests one add-on before anything else is changed: it
// removes the verdict, which a running addon-manager restores.
func (u *uninstallation) refuseWhileJudged(ctx context.Context) error {
	tries := 0
	for page, err := range u.pages(ctx) {
		if err != nil {
			return err
		}
		for i := range page {
			if !slices.ContainsFunc(page[i].Status.Conditions, isVerdict) || needsConversion(&page[i]) {
				continue
			}
			tried, err := u.tryOn(ctx, &page[i])
			if tries++; tried || err != nil || tries == maxTries {
				return err
			}
		}
	}
	return nil
}

// needsConversion reports whether the API server has to convert an add-on to apply to it: then an addon-manager that serves no webhooks cannot
// restore the verdict. Up to Kubernetes 1.36, it could not be removed either.
func needsConversion(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(addOn.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.APIVersion != addonv1alpha1.GroupVersion.String()
	})
}

// tryOn removes the verdict from one add-on, and fails if it is restored. tried is false if it cannot be removed: another writer was
// faster, or the API server would have to convert the add-on, which only addon-manager does.
func (u *uninstallation) tryOn(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (tried bool, err error) {
	verdict := apply.Release(addOn.Status.Conditions, addonv1alpha1.ConditionDegraded,
		addonv1alpha1.ReasonDependencyNotSatisfied, addonv1alpha1.ReasonRequiredDependencyNotSatisfied)
	if apply.PatchStatus(ctx, u.client, addOn, verdict) != nil {
		return false, ctx.Err()
	}
	err = wait.PollUntilContextTimeout(ctx, restoreTimeout/20, restoreTimeout, true, func(context.Context) (bool, error) {
		err := u.client.Get(ctx, client.ObjectKeyFromObject(addOn), addOn)
		return slices.ContainsFunc(addOn.Status.Conditions, isVerdict), client.IgnoreNotFound(err)
	})
	switch {
	case err == nil:
		return true, fmt.Errorf("an addon-manager is running without a Lease and would restore everything: "+
			"it restored the verdict of ManagedClusterAddOn %s immediately after its removal; stop it first", client.ObjectKeyFromObject(addOn))
	case ctx.Err() == nil && wait.Interrupted(err):
		return true, nil
	default:
		return true, fmt.Errorf("checking whether an addon-manager is running: %w", err)
	}
}
