package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/availability"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// messageClusterLeaseStopped is OCM's wording.
const messageClusterLeaseStopped = "Registration agent stopped updating its lease."

// leases sets the add-ons of a cluster to Unknown when its agent stops renewing its lease, as OCM does with its own lease: a cluster
// without a lease, or with a lease without a time, is ignored. It never sets an add-on to available again; the agent does so once it
// reconnects.
//
// The time at which the hub observed a renewal counts, not the time in the lease, so clocks need not be synchronized. It is kept in memory:
// when the hub starts, every lease counts as renewed at that moment.
type leases struct {
	client  client.Client
	live    client.Reader
	timeout time.Duration // overrides the period of the lease, if not zero

	mutex    sync.Mutex
	renewals map[types.NamespacedName]renewal
}

// renewal is the last observed renewal of a lease.
type renewal struct {
	renewed *metav1.MicroTime // according to the lease
	seen    time.Time
}

func newLeases(mgr manager.Manager, timeout time.Duration) *leases {
	return &leases{client: mgr.GetClient(), live: mgr.GetAPIReader(), timeout: timeout, renewals: map[types.NamespacedName]renewal{}}
}

func (l *leases) SetUp(mgr manager.Manager) error {
	return controller.New(mgr, "lease", controller.Options{}).
		For(&coordinationv1.Lease{}).
		// Add-ons that are enabled on a cluster whose agent has stopped become Unknown, too.
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, controller.EnqueueFrom(leaseOf), builder.WithPredicates(
			predicate.And(controller.Existence(), controller.AfterStart()))).
		Complete(l)
}

// leaseOf returns the lease of the agent on an add-on's cluster.
func leaseOf(_ context.Context, addOn client.Object) ([]reconcile.Request, error) {
	return []reconcile.Request{{
		NamespacedName: types.NamespacedName{Namespace: addOn.GetNamespace(), Name: addonv1alpha1.AgentLease},
	}}, nil
}

// Reconcile checks whether the lease of one agent is renewed. It reads the lease from the API server before it sets add-ons to Unknown: a
// broken watch must not be mistaken for a broken fleet. If the API server does not respond, agents cannot have renewed anything either, and
// their timeouts restart.
func (l *leases) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	for _, reader := range []client.Reader{l.client, l.live} {
		var lease coordinationv1.Lease
		if err := reader.Get(ctx, request.NamespacedName, &lease); err != nil || lease.Spec.RenewTime == nil {
			l.forget(request.NamespacedName)
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		if left := l.timeLeft(&lease, time.Now()); left > 0 {
			return ctrl.Result{RequeueAfter: left}, nil
		}
	}
	return controller.RetryConflict(l.markUnreachable(ctx, request.Namespace))
}

// timeLeft returns the time for which a lease stays fresh.
func (l *leases) timeLeft(lease *coordinationv1.Lease, now time.Time) time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key := client.ObjectKeyFromObject(lease)
	last, known := l.renewals[key]
	if !known || !last.renewed.Equal(lease.Spec.RenewTime) {
		last = renewal{renewed: lease.Spec.RenewTime, seen: now}
		l.renewals[key] = last
	}
	return cmp.Or(l.timeout, availability.LeaseTimeout(lease)) - now.Sub(last.seen)
}

func (l *leases) forget(key types.NamespacedName) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.renewals, key)
}

// markUnreachable sets Available of every add-on of a cluster to Unknown.
func (l *leases) markUnreachable(ctx context.Context, cluster string) error {
	var addOns addonv1alpha1.ManagedClusterAddOnList
	if err := l.client.List(ctx, &addOns, client.InNamespace(cluster), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the add-ons of cluster %q: %w", cluster, err)
	}
	want := metav1.Condition{
		Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionUnknown,
		Reason: addonv1alpha1.ReasonClusterLeaseStopped, Message: messageClusterLeaseStopped,
	}
	var silenced int
	var failed []error
	for i := range addOns.Items {
		addOn := &addOns.Items[i]
		if isUnreachable(addOn) {
			continue
		}
		_, err := apply.Condition(ctx, l.client, addOn, addOn.Status.Conditions, ManagerLease, want, time.Now())
		if err != nil {
			failed = append(failed, client.IgnoreNotFound(err))
			continue
		}
		silenced++
	}
	if silenced > 0 {
		log.FromContext(ctx).Info("the agent stopped renewing its lease: setting the availability of its add-ons to Unknown",
			"cluster", cluster, "addOns", silenced)
	}
	return errors.Join(failed...)
}

// isUnreachable reports whether the state of an add-on is unknown because its cluster is unreachable.
func isUnreachable(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	return available != nil && available.Status == metav1.ConditionUnknown &&
		available.Reason == addonv1alpha1.ReasonClusterLeaseStopped
}
