package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// reporter tells the hub the status of every Instance. It coalesces: what changed within the interval goes in one write, and
// the last state always arrives, because the comparison is with what the hub has.
type reporter struct {
	hub      client.Client
	local    client.Client
	notes    *notes
	interval time.Duration
	clock    func() time.Time

	mutex sync.Mutex
	sent  map[string]time.Time // by Instance: when it was last written
}

func addReport(o Options, shared *notes, hub, local ctrl.Manager) error {
	r := &reporter{
		hub:      hub.GetClient(),
		local:    local.GetClient(),
		notes:    shared,
		interval: o.ReportInterval,
		clock:    time.Now,
		sent:     map[string]time.Time{},
	}
	if r.interval == 0 {
		r.interval = time.Second
	}
	err := ctrl.NewControllerManagedBy(hub).
		Named("report").
		For(&kudo.Instance{}).
		WatchesRawSource(localInstances(o.ClusterName, local)).
		WatchesRawSource(source.Channel(shared.changed, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{RateLimiter: retries()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the report: %w", err)
	}
	return nil
}

// Reconcile brings the agent's part of one Instance's status on the hub up to date.
func (r *reporter) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	onHub, want, err := r.overdue(ctx, request.NamespacedName)
	if err != nil || want == nil {
		return reconcile.Result{}, err
	}
	if wait := r.wait(request.Name); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	wait, err := r.waitForChildren(ctx, onHub)
	if err != nil || wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	err = r.send(ctx, onHub, *want)
	if apierrors.IsConflict(err) { // the cache lags behind: what is there now may be another Instance of that name
		return reconcile.Result{RequeueAfter: staleCachePause}, nil
	}
	return reconcile.Result{}, err
}

// overdue is what the hub should say of an Instance and does not; nil if there is nothing.
func (r *reporter) overdue(ctx context.Context, name types.NamespacedName) (onHub *kudo.Instance, want *kudo.InstanceStatus, err error) {
	onHub = &kudo.Instance{}
	if err := r.hub.Get(ctx, name, onHub); err != nil {
		r.forget(name.Name)
		return onHub, nil, client.IgnoreNotFound(err)
	}
	standing, err := findMirror(ctx, r.local, onHub.Name)
	if err != nil {
		return onHub, nil, err
	}
	if want = r.decide(onHub, standing); want == nil || upToDate(onHub.Status, *want) {
		return onHub, nil, nil
	}
	return onHub, want, nil
}

// waitForChildren is how long the report of an Instance must be held back for that of a child which has come to rest: the plan went on
// or failed after it, and whoever watches the hub sees the same order. So does the hub itself, which runs the failed plan of a child
// again with that of its parent.
func (r *reporter) waitForChildren(ctx context.Context, onHub *kudo.Instance) (time.Duration, error) {
	for _, child := range onHub.Status.Children {
		_, missing, err := r.overdue(ctx, types.NamespacedName{Namespace: onHub.Namespace, Name: child.Instance})
		if err != nil {
			return 0, err
		}
		if missing != nil && isAtRest(missing) {
			return max(r.wait(child.Instance), staleCachePause), nil
		}
	}
	return 0, nil
}

// isAtRest says whether the last plan has ended, well or not.
func isAtRest(status *kudo.InstanceStatus) bool {
	ready := meta.FindStatusCondition(status.Conditions, kudo.ConditionReady)
	return ready != nil && (ready.Status == metav1.ConditionTrue || ready.Reason == kudo.ReasonPlanFailed)
}

// decide is what the hub should say; nil where the agent has nothing to say yet. A mirror of another Instance of that name says
// nothing about this one.
func (r *reporter) decide(onHub, standing *kudo.Instance) *kudo.InstanceStatus {
	noted := r.notes.read(onHub)
	mirrored := standing != nil && standing.Annotations[kudo.AnnotationHubUID] == string(onHub.UID) && handedOver(standing)
	switch {
	case noted.removed:
		rest := onHub.Status
		rest.Inventory = nil
		return r.withReady(onHub, rest, kudo.ReasonRemoved, nothingLeft)
	case mirrored && noted.fault != "":
		return r.withReady(onHub, standing.Status, kudo.ReasonNotMirrored, noted.fault)
	case mirrored:
		return reportable(standing.Status)
	case noted.fault != "":
		return r.withReady(onHub, onHub.Status, kudo.ReasonNotMirrored, noted.fault)
	default:
		return nil
	}
}

// withReady is the agent's part of a status, with condition Ready as the agent sees it from outside.
func (r *reporter) withReady(onHub *kudo.Instance, status kudo.InstanceStatus, reason, message string) *kudo.InstanceStatus {
	part := reportable(status)
	ready := plan.Condition(metav1.ConditionFalse, reason, message)
	ready.ObservedGeneration = onHub.Generation
	settled, _ := apply.Settle(onHub.Status.Conditions, ready, r.clock())
	part.Conditions = []metav1.Condition{settled}
	return part
}

// reportable is the agent's part of a status.
func reportable(status kudo.InstanceStatus) *kudo.InstanceStatus {
	part := &kudo.InstanceStatus{
		PlanStatus:         status.PlanStatus,
		Execution:          status.Execution,
		Inventory:          status.Inventory,
		ObservedGeneration: status.ObservedGeneration,
	}
	if ready := meta.FindStatusCondition(status.Conditions, kudo.ConditionReady); ready != nil {
		part.Conditions = []metav1.Condition{*ready}
	}
	return part
}

func upToDate(onHub, want kudo.InstanceStatus) bool {
	return equality.Semantic.DeepEqual(*reportable(onHub), want)
}

// wait is how long a report must be held back, so that an Instance is written once in an interval at most.
func (r *reporter) wait(name string) time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	last, written := r.sent[name]
	if !written {
		return 0
	}
	return r.interval - r.clock().Sub(last)
}

func (r *reporter) forget(name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.sent, name)
}

// send applies the agent's part of the status, and nothing else of the object. What is said of an Instance must not be written onto the
// next one of its name: with an execution that is not its own it would never be deployed.
func (r *reporter) send(ctx context.Context, onHub *kudo.Instance, want kudo.InstanceStatus) error {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want)
	if err != nil {
		return fmt.Errorf("encoding the status of Instance %q: %w", onHub.Name, err)
	}
	if err := apply.StatusAsRead(ctx, r.hub, onHub, managerReport, status); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.sent[onHub.Name] = r.clock()
	return nil
}
