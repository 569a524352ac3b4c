package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// reporter tells the hub the status of every Instance. It coalesces: what changed within the interval goes in one write, and
// the last state always arrives, because the comparison is with what the hub has.
type reporter struct {
	hub       client.Client
	local     client.Client
	localLive client.Reader
	interval  time.Duration
	clock     func() time.Time

	mutex sync.Mutex
	sent  map[string]time.Time // by Instance: when it was last written
}

func addReport(o Options, hub, local ctrl.Manager) error {
	r := &reporter{
		hub:       hub.GetClient(),
		local:     local.GetClient(),
		localLive: local.GetAPIReader(),
		interval:  o.ReportInterval,
		clock:     time.Now,
		sent:      map[string]time.Time{},
	}
	if r.interval == 0 {
		r.interval = time.Second
	}
	err := ctrl.NewControllerManagedBy(hub).
		Named("report").
		For(&kudo.Instance{}).
		WatchesRawSource(localInstances(o.ClusterName, local)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the report: %w", err)
	}
	return nil
}

// Reconcile brings the agent's part of one Instance's status on the hub up to date.
func (r *reporter) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	onHub := &kudo.Instance{}
	if err := r.hub.Get(ctx, request.NamespacedName, onHub); err != nil {
		r.forget(request.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	want, err := r.gather(ctx, onHub)
	if err != nil || want == nil || upToDate(onHub.Status, *want) {
		return reconcile.Result{}, err
	}
	if wait := r.wait(request.Name); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return reconcile.Result{}, r.send(ctx, onHub, *want)
}

// gather is what the hub should say; nil where the agent has nothing to say yet.
func (r *reporter) gather(ctx context.Context, onHub *kudo.Instance) (*kudo.InstanceStatus, error) {
	standing, err := findMirror(ctx, r.local, onHub.Name)
	if err != nil {
		return nil, err
	}
	if standing != nil {
		if _, copied := standing.Annotations[kudo.AnnotationHubGeneration]; !copied {
			return nil, nil
		}
		return reportable(standing.Status), nil
	}
	if onHub.DeletionTimestamp == nil {
		return nil, nil
	}
	return r.removed(ctx, onHub)
}

// removed is the last report of an Instance: nothing of it is left here. That is asked of the API server, for a mirror that
// the cache has not seen yet must not be forgotten.
func (r *reporter) removed(ctx context.Context, onHub *kudo.Instance) (*kudo.InstanceStatus, error) {
	standing, err := findMirror(ctx, r.localLive, onHub.Name)
	if err != nil || standing != nil {
		return nil, err
	}
	status := reportable(onHub.Status)
	gone := plan.Condition(metav1.ConditionFalse, kudo.ReasonRemoved, "nothing is left of it on the managed cluster")
	gone.ObservedGeneration = onHub.Generation
	meta.SetStatusCondition(&status.Conditions, gone)
	return status, nil
}

// reportable is the agent's part of a status.
func reportable(status kudo.InstanceStatus) *kudo.InstanceStatus {
	part := &kudo.InstanceStatus{
		PlanStatus:         status.PlanStatus,
		Execution:          status.Execution,
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

// send applies the agent's part of the status, and nothing else of the object.
func (r *reporter) send(ctx context.Context, onHub *kudo.Instance, want kudo.InstanceStatus) error {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want)
	if err != nil {
		return fmt.Errorf("encoding the status of Instance %q: %w", onHub.Name, err)
	}
	if err := apply.Status(ctx, r.hub, onHub, managerReport, status); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.sent[onHub.Name] = r.clock()
	return nil
}
