package hub

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// removeInstance deletes the Instance of an add-on that is being deleted, unless dependents go first: those that are being deleted, too, or may be within
// the returned time. On a detached cluster, nothing goes first, and the Instance is released first, so that the agent sees no deletion to carry out.
func (a *addOns) removeInstance(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, instance *kudo.Instance) (time.Duration, error) {
	switch detached, err := read.IsDetached(ctx, a.live, addOn.Namespace); {
	case err != nil:
		return 0, err
	case detached:
		if err := releaseTree(ctx, a.client, instance, ManagerAddOn); err != nil {
			return 0, err
		}
	case instance.Annotations[kudo.AnnotationForceRelease] != "true": // else its objects stay
		if waits, delay, err := a.awaitDependents(ctx, addOn); waits || err != nil {
			return delay, err
		}
	}
	preconditions := client.Preconditions{UID: &instance.UID, ResourceVersion: &instance.ResourceVersion}
	return 0, client.IgnoreNotFound(deleteInstance(ctx, a.client, instance, ManagerAddOn, preconditions))
}

// awaitDependents reports whether the removal of an add-on waits for dependents, and a time after which to look again. It names those that are being
// removed in condition AddOnsRemaining.
func (a *addOns) awaitDependents(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (waits bool, delay time.Duration, err error) {
	removal, err := read.Removal(ctx, a.client, client.ObjectKeyFromObject(addOn))
	if err != nil {
		return false, 0, err
	}
	if len(removal.First) > 0 {
		return true, 0, a.reportFirst(ctx, addOn, removal)
	}
	if delay := removal.Delay(addOn.DeletionTimestamp.Time, time.Now()); delay > 0 {
		return true, delay, nil
	}
	_, err = apply.ReleaseCondition(ctx, a.client, addOn, addOn.Status.Conditions, addonv1alpha1.ConditionAddOnsRemaining,
		addonv1alpha1.ReasonWaitingForDependents)
	return false, 0, err
}

// reportFirst reports the dependents that are removed before an add-on.
func (a *addOns) reportFirst(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, removal dependency.Removal) error {
	wrote, err := apply.Condition(ctx, a.client, addOn, addOn.Status.Conditions, ManagerRemoval, metav1.Condition{
		Type: addonv1alpha1.ConditionAddOnsRemaining, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonWaitingForDependents,
		Message: removal.Message(),
	}, time.Now())
	if wrote {
		a.recorder.Eventf(addOn, nil, corev1.EventTypeNormal, addonv1alpha1.ReasonWaitingForDependents, actionRemove, "%s",
			controller.TruncateNote(removal.Message()))
	}
	return client.IgnoreNotFound(err)
}

// removedBeside returns the add-ons that are being removed from the cluster of a changed add-on.
func (a *addOns) removedBeside(ctx context.Context, addOn client.Object) ([]reconcile.Request, error) {
	return read.RemovedFrom(ctx, a.client, addOn.GetNamespace())
}

// removedWith returns the add-ons that are being removed together with those of a changed definition.
func (a *addOns) removedWith(ctx context.Context, definition client.Object) ([]reconcile.Request, error) {
	return read.RemovedWith(ctx, a.client, definition.GetName())
}
