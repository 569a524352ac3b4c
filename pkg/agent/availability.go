package agent

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/availability"
)

// available writes condition Available of the cluster's add-ons on the hub.
type available struct {
	hub   client.Client
	local client.Client
	clock func() time.Time
}

func addAvailability(o Options, _ *notes, hub, local ctrl.Manager) error {
	a := &available{hub: hub.GetClient(), local: local.GetClient(), clock: time.Now}
	err := ctrl.NewControllerManagedBy(hub).
		Named("availability").
		For(&addon.ManagedClusterAddOn{}).
		WatchesRawSource(localInstances(o.ClusterName, local)).
		Complete(a)
	if err != nil {
		return fmt.Errorf("adding availability: %w", err)
	}
	return nil
}

// Reconcile judges one add-on; its Instance on this cluster has its name.
func (a *available) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	subject := &addon.ManagedClusterAddOn{}
	if err := a.hub.Get(ctx, request.NamespacedName, subject); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	instance, err := findMirror(ctx, a.local, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	want, ours := availability.Of(subject.Status.Conditions, instance)
	if !ours {
		return reconcile.Result{}, nil
	}
	want.ObservedGeneration = subject.Generation
	_, err = apply.Condition(ctx, a.hub, subject, subject.Status.Conditions, managerAvailability, want, a.clock())
	return reconcile.Result{}, client.IgnoreNotFound(err)
}
