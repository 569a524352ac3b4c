package read

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/console/check"
)

// Leader reads the Lease of the leading addon-manager. Errors are part of the result.
func Leader(ctx context.Context, c client.Reader, namespace string) check.Leader {
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: addonv1alpha1.LeaderLease}, lease)
	if err != nil {
		return check.Leader{Problem: client.IgnoreNotFound(err)}
	}
	found := check.Leader{
		Exists: true, Holder: ptr.Deref(lease.Spec.HolderIdentity, ""),
		Duration: time.Duration(max(0, ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))) * time.Second,
	}
	if lease.Spec.RenewTime != nil {
		found.Renewed = lease.Spec.RenewTime.Time
	}
	return found
}
