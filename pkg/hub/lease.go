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
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/availability"
	"github.com/tandem-addons/tandem/pkg/controller"
)

// messageClusterLeaseStopped is how OCM puts it.
const messageClusterLeaseStopped = "Registration agent stopped updating its lease."

// leases sets the add-ons of a cluster to Unknown when its agent stops renewing the agent's lease, as OCM does by a lease of its own:
// a cluster without that lease, or whose lease has no time, is left alone. It never says that an add-on is available again; the agent does, once it is back.
//
// What counts is when the hub saw a renewal, not what time the lease says, so that no two clocks need to agree. That is kept in
// memory: a hub that starts sees every lease renewed at that moment.
type leases struct {
	client client.Client
	live   client.Reader
	grace  time.Duration // in the place of what the lease says, if not zero

	mutex    sync.Mutex
	renewals map[types.NamespacedName]renewal
}

// renewal is the last one that was seen of a lease.
type renewal struct {
	renewed *metav1.MicroTime // as the lease says
	seen    time.Time
}

func newLeases(mgr manager.Manager, grace time.Duration) *leases {
	return &leases{client: mgr.GetClient(), live: mgr.GetAPIReader(), grace: grace, renewals: map[types.NamespacedName]renewal{}}
}

func (l *leases) SetUp(mgr manager.Manager) error {
	return controller.New(mgr, "lease", controller.Options{}).
		For(&coordinationv1.Lease{}).
		// What is enabled on a cluster whose agent has stopped is Unknown, too.
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, controller.Mapped(leaseOf), builder.WithPredicates(
			predicate.And(controller.Existence(), controller.AfterStart()))).
		Complete(l)
}

// leaseOf is the lease of the agent that an add-on's cluster has.
func leaseOf(_ context.Context, addOn client.Object) ([]reconcile.Request, error) {
	return []reconcile.Request{{
		NamespacedName: types.NamespacedName{Namespace: addOn.GetNamespace(), Name: addonv1alpha1.AgentLease},
	}}, nil
}

// Reconcile looks whether the lease of one agent is renewed. Before add-ons are set to Unknown the lease is read from the API server: a
// watch that is broken must not look like a fleet that is. Where that does not answer, agents cannot have renewed anything either, and
// are given time anew.
func (l *leases) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	for _, reader := range []client.Reader{l.client, l.live} {
		var lease coordinationv1.Lease
		if err := reader.Get(ctx, request.NamespacedName, &lease); err != nil || lease.Spec.RenewTime == nil {
			l.forget(request.NamespacedName)
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		if left := l.left(&lease, time.Now()); left > 0 {
			return ctrl.Result{RequeueAfter: left}, nil
		}
	}
	return controller.RetryConflict(l.silence(ctx, request.Namespace))
}

// left is how long a lease counts as fresh from now on.
func (l *leases) left(lease *coordinationv1.Lease, now time.Time) time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key := client.ObjectKeyFromObject(lease)
	last, known := l.renewals[key]
	if !known || !last.renewed.Equal(lease.Spec.RenewTime) {
		last = renewal{renewed: lease.Spec.RenewTime, seen: now}
		l.renewals[key] = last
	}
	return cmp.Or(l.grace, availability.Grace(lease)) - now.Sub(last.seen)
}

func (l *leases) forget(key types.NamespacedName) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.renewals, key)
}

// silence sets Available of every add-on of a cluster to Unknown.
func (l *leases) silence(ctx context.Context, cluster string) error {
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
		if silent(addOn) {
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
		log.FromContext(ctx).Info("the agent stopped renewing its lease: its add-ons are unknown", "cluster", cluster, "addOns", silenced)
	}
	return errors.Join(failed...)
}

// silent reports whether nothing is known of an add-on since its cluster cannot be reached.
func silent(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	return available != nil && available.Status == metav1.ConditionUnknown &&
		available.Reason == addonv1alpha1.ReasonClusterLeaseStopped
}
