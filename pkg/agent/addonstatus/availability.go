// Package addonstatus writes condition Available of the cluster's add-ons on the hub, and renews the leases that show that the agent is
// alive. It touches both clusters.
package addonstatus

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/availability"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// reasonDelay is the delay of a condition that only changes the reason why an add-on is unavailable, after the change that leads to it:
// while an add-on is installed, such reasons follow each other quickly, and nothing depends on them.
const reasonDelay = time.Second

// conditionManager is the field manager of condition Available.
const conditionManager = "addon-agent-availability"

// available writes condition Available of the cluster's add-ons on the hub.
type available struct {
	hub        client.Client
	local      client.Client
	standalone bool
	signer     *mirror.Signer
	sightings  *controller.Sightings[string]
	pace       *controller.Pace
	metrics    *Metrics
	clock      func() time.Time
}

// Options configure the controller of condition Available.
type Options struct {
	// Cluster is the name of the managed cluster, which is its namespace on the hub.
	Cluster string

	// Standalone is true if no OCM klusterlet judges add-ons by their leases.
	Standalone bool

	// Metrics are registered once. Each connection to the hub begins without series of add-ons, because they may have been deleted before.
	Metrics *Metrics
	// Signer recognizes mirrors.
	Signer *mirror.Signer
}

// Add adds the controller of condition Available to the manager of the hub.
func Add(o Options, hub, local ctrl.Manager) error {
	o.Metrics.reset()
	a := &available{
		hub: hub.GetClient(), local: local.GetClient(), standalone: o.Standalone, signer: o.Signer,
		sightings: controller.NewSightings[string](), pace: controller.NewPace(time.Now), metrics: o.Metrics, clock: time.Now,
	}
	b := controller.New(hub, "availability", controller.Options{MaxConcurrentReconciles: mirror.Workers}).
		For(&addonv1alpha1.ManagedClusterAddOn{}, builder.WithPredicates(a.pace.OnSpecChange(), recordSightings[client.Object](a.sightings))).
		Watches(&kudo.Instance{}, a.pace.Before(handler.Funcs{}, addOnOf)).
		WatchesRawSource(mirror.Source(o.Cluster, local, recordSightings[*kudo.Instance](a.sightings)))
	if o.Standalone {
		b = b.WatchesRawSource(localLeases(o.Cluster, local, notProlonged(a.clock), recordSightings[*coordinationv1.Lease](a.sightings)))
	}
	if err := b.Complete(a.reconciler()); err != nil {
		return fmt.Errorf("adding availability: %w", err)
	}
	return nil
}

// addOnOf returns the add-on of an Instance on the hub, if there is one. The Instance changes before its mirror does.
func addOnOf(_ context.Context, instance client.Object) ([]reconcile.Request, error) {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(instance)}}, nil
}

// localLeases maps every lease to the add-on of its name on the hub, if there is one.
func localLeases(cluster string, local ctrl.Manager, which ...predicate.TypedPredicate[*coordinationv1.Lease]) source.Source {
	return controller.Source(local, &coordinationv1.Lease{}, func(_ context.Context, l *coordinationv1.Lease) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: cluster, Name: l.Name}}}
	}, which...)
}

// notProlonged admits every update of a lease except renewals of a fresh one: those are observed when the lease would have become stale,
// once in five periods. It always admits creation and deletion.
func notProlonged(clock func() time.Time) predicate.TypedPredicate[*coordinationv1.Lease] {
	return predicate.TypedFuncs[*coordinationv1.Lease]{UpdateFunc: func(e event.TypedUpdateEvent[*coordinationv1.Lease]) bool {
		now := clock()
		before, fresh := availability.Fresh(e.ObjectOld, now)
		after, _ := availability.Fresh(e.ObjectNew, now)
		return !fresh || after.Before(before)
	}}
}

// reconciler returns what reconciles add-ons.
func (a *available) reconciler() reconcile.Reconciler {
	return &controller.Reconciler[*addonv1alpha1.ManagedClusterAddOn]{
		Client: a.hub, Written: controller.NewWrites(),
		Forget: func(name types.NamespacedName) {
			a.sightings.Take(name.Name)
			a.metrics.forget(name.Name)
		},
		ReconcileObject: a.reconcile,
	}
}

// reconcile judges one add-on; its Instance on this cluster has its name.
func (a *available) reconcile(ctx context.Context, subject *addonv1alpha1.ManagedClusterAddOn) (reconcile.Result, error) {
	now := a.clock()
	since := a.sightings.Take(subject.Name)
	if since.IsZero() { // no change triggered it
		since = now
	}
	seen, err := a.gather(ctx, subject)
	if err != nil {
		a.sightings.Keep(subject.Name, since)
		return reconcile.Result{}, err
	}
	judged := availability.Of(seen, now)
	err = a.commit(ctx, subject, judged, since)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		a.sightings.Keep(subject.Name, since)
		return controller.RetryConflict(err)
	}
	if judged.Until.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: judged.Until.Sub(now)}, nil
}

// gather reads everything on this cluster that decides about the add-on.
func (a *available) gather(ctx context.Context, subject *addonv1alpha1.ManagedClusterAddOn) (availability.Seen, error) {
	seen := availability.Seen{AddOn: subject, Standalone: a.standalone}
	var err error
	if seen.Instance, seen.Unsigned, err = a.signer.Find(ctx, a.local, subject.Name); err != nil {
		return seen, err
	}
	name, leased := availability.LeaseOf(subject)
	if !leased || !a.standalone {
		return seen, nil
	}
	lease := &coordinationv1.Lease{}
	err = a.local.Get(ctx, name, lease)
	if apierrors.IsNotFound(err) {
		return seen, nil
	}
	if err != nil {
		return seen, fmt.Errorf("reading Lease %s: %w", name, err)
	}
	seen.Lease = lease
	return seen, nil
}

// commit writes the result unless the hub has it; since is when the change that led to it was observed. Right after a change of the add-on
// or its Instance, or if only the reason why the add-on is unavailable changes, it returns a Postponed error instead, unless the hub's verdict
// on the dependencies is the cause.
func (a *available) commit(ctx context.Context, subject *addonv1alpha1.ManagedClusterAddOn, judged availability.Judgement, since time.Time) error {
	a.metrics.judge(subject.Name, judged.Condition)
	switch {
	case judged.Release:
		_, err := apply.ReleaseCondition(ctx, a.hub, subject, subject.Status.Conditions, addonv1alpha1.ConditionAvailable,
			addonv1alpha1.ReasonRequiredDependencyNotSatisfied)
		if apierrors.IsConflict(err) { // another writer was faster
			return nil
		}
		return err
	case judged.Condition == nil:
		return nil
	}
	want := *judged.Condition
	want.ObservedGeneration = subject.Generation
	before := meta.FindStatusCondition(subject.Status.Conditions, want.Type)
	if _, changed := apply.MergeCondition(subject.Status.Conditions, want, a.clock()); changed {
		if err := a.postpone(client.ObjectKeyFromObject(subject), before, &want, since); err != nil {
			return err
		}
	}
	wrote, err := apply.Condition(ctx, a.hub, subject, subject.Status.Conditions, conditionManager, want, a.clock())
	if wrote {
		a.metrics.wrote(subject.Name, before, want, a.clock().Sub(since))
	}
	return err
}

// postpone returns a Postponed error if a changed condition is not written yet.
func (a *available) postpone(key types.NamespacedName, before, want *metav1.Condition, since time.Time) error {
	if isVerdict(want) {
		return nil
	}
	if !isVerdict(before) {
		if err := a.pace.Allow(key); err != nil {
			return err
		}
	}
	if left := reasonDelay - a.clock().Sub(since); left > 0 && isProgress(before, want) {
		return &controller.PostponedError{For: left}
	}
	return nil
}

// isProgress reports whether an add-on stays unavailable; before is nil if it was not judged yet.
func isProgress(before, want *metav1.Condition) bool {
	return want.Status != metav1.ConditionTrue && (before == nil || before.Status != metav1.ConditionTrue)
}

// isVerdict reports whether a condition Available, which may be nil, repeats the hub's verdict.
func isVerdict(available *metav1.Condition) bool {
	return available != nil && available.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied
}

// recordSightings admits everything, and records when it was observed.
func recordSightings[O client.Object](s *controller.Sightings[string]) predicate.TypedPredicate[O] {
	return predicate.NewTypedPredicateFuncs(func(o O) bool {
		s.Keep(o.GetName(), time.Now())
		return true
	})
}
