package hub

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/apply"
)

// leaseKey is the Lease that the leader holds.
func (o Options) leaseKey() types.NamespacedName {
	namespace := o.LeaderElectionNamespace
	if namespace == "" {
		namespace = o.Namespace
	}
	return types.NamespacedName{Namespace: namespace, Name: leaderLease}
}

// refuseWhileLed is an error while somebody holds the Lease. One that ended in good order has given it up.
func (u *uninstallation) refuseWhileLed(ctx context.Context, key types.NamespacedName) error {
	var lease coordination.Lease
	err := u.client.Get(ctx, key, &lease)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Lease %s: %w", key, err)
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder == "" || lease.Spec.RenewTime == nil {
		return nil
	}
	until := lease.Spec.RenewTime.Add(time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second)
	if !u.now().Before(until) {
		return nil
	}
	return fmt.Errorf("an addon-manager is running and would write everything again: %s holds Lease %s until %s; stop it first "+
		"(kubectl -n %s scale deployment addon-manager --replicas=0)", holder, key, until.UTC().Format(time.RFC3339), key.Namespace)
}

const (
	// judgedWithin is ample time for an addon-manager to give a verdict again that was taken off.
	judgedWithin = 2 * time.Second
	// judgedTries is on how many add-ons that is tried, one after the other, where it cannot be tried on the first.
	judgedTries = 10
)

// refuseWhileJudged is an error while an addon-manager works without a Lease. One add-on tells, before anything else is touched: its verdict
// is taken off, and whoever works gives it again.
func (u *uninstallation) refuseWhileJudged(ctx context.Context) error {
	tries := 0
	for page, err := range u.pages(ctx) {
		if err != nil {
			return err
		}
		for i := range page {
			if !slices.ContainsFunc(page[i].Status.Conditions, isVerdict) {
				continue
			}
			tried, err := u.tryOn(ctx, &page[i])
			if tries++; tried || err != nil || tries == judgedTries {
				return err
			}
		}
	}
	return nil
}

// tryOn takes the verdict off one add-on, and fails if it returns. tried is false where it cannot be taken off: somebody else was faster, or
// the API server would have to convert the add-on, which only addon-manager does.
func (u *uninstallation) tryOn(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (tried bool, err error) {
	verdict := apply.Release(addOn.Status.Conditions, addonv1alpha1.ConditionDegraded,
		addonv1alpha1.ReasonDependencyNotSatisfied, addonv1alpha1.ReasonRequiredDependencyNotSatisfied)
	if apply.PatchStatus(ctx, u.client, addOn, verdict) != nil {
		return false, ctx.Err()
	}
	err = wait.PollUntilContextTimeout(ctx, judgedWithin/20, judgedWithin, true, func(context.Context) (bool, error) {
		err := u.client.Get(ctx, client.ObjectKeyFromObject(addOn), addOn)
		return slices.ContainsFunc(addOn.Status.Conditions, isVerdict), client.IgnoreNotFound(err)
	})
	switch {
	case err == nil:
		return true, fmt.Errorf("an addon-manager is running without a Lease and would write everything again: it judged ManagedClusterAddOn %s "+
			"as soon as its verdict was taken off; stop it first", client.ObjectKeyFromObject(addOn))
	case ctx.Err() == nil && wait.Interrupted(err):
		return true, nil
	default:
		return true, fmt.Errorf("finding out whether an addon-manager is running: %w", err)
	}
}
