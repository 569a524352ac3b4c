// Package report reports the status of the Instances on the managed cluster to the hub. It touches both clusters.
package report

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	coremirror "github.com/tandem-addons/tandem/pkg/core/mirror"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/report"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// fieldManager is the field manager of the report.
const fieldManager = "addon-agent-report"

const (
	// defaultInterval is the minimum time between two reports of one Instance, unless it is configured.
	defaultInterval = time.Second

	// cacheLagTimeout is how long to wait for the cache to show a report; then it was probably lost, with a hub that was restored.
	cacheLagTimeout = 10 * time.Second

	// The rate per second and the burst of reports of progress, and of early ones (report.DelayOf), which later ones replace. Reports of progress of
	// many Instances must not delay the reports of plans and removals that have ended.
	progressQPS   = 2
	progressBurst = 10
	earlyQPS      = 1
	earlyBurst    = 5
)

// reporter reports the status of every Instance to the hub. It combines all changes within the interval into one write, except for those
// that the hub has to act on. Progress waits for the interval as well, so that a plan or a removal that ends within it takes one report. The
// last state always arrives, because reports are compared with the status on the hub.
type reporter struct {
	hub      client.Client
	local    client.Client
	statuses *mirror.Statuses
	signer   *mirror.Signer
	interval time.Duration
	clock    func() time.Time

	// progress and early are the budgets of reports of progress.
	progress, early flowcontrol.RateLimiter

	// conflicts has the pauses of Instances whose reports conflict.
	conflicts workqueue.TypedRateLimiter[string]

	mutex sync.Mutex
	sent  map[string]sent        // by Instance: the last report
	since map[string]time.Time   // by Instance: since when a report is pending
	held  map[string]*sync.Mutex // by Instance: held during a report; kept after the Instance, for another goroutine may wait for it
}

// sent is a report that the hub has accepted.
type sent struct {
	at   time.Time
	said kudo.InstanceStatus
	// read and written are the Instance's resource versions, in the cache before it and on the hub after it.
	read, written string
}

// Options configure the reporter.
type Options struct {
	// Cluster is the name of the managed cluster, which is its namespace on the hub.
	Cluster string

	// Signer recognizes mirrors.
	Signer *mirror.Signer

	// Statuses are recorded by the mirror controller.
	Statuses *mirror.Statuses

	// Interval is the minimum time between two reports of one Instance; one second if zero.
	Interval time.Duration
}

// Add adds the reporter to the manager of the hub.
func Add(o Options, hub, local ctrl.Manager) error {
	interval := cmp.Or(o.Interval, defaultInterval)
	r := &reporter{
		hub:      hub.GetClient(),
		local:    local.GetClient(),
		statuses: o.Statuses,
		signer:   o.Signer,
		interval: interval,
		clock:    time.Now,

		progress: flowcontrol.NewTokenBucketRateLimiter(progressQPS, progressBurst),
		early:    flowcontrol.NewTokenBucketRateLimiter(earlyQPS, earlyBurst),

		conflicts: workqueue.NewTypedItemExponentialFailureRateLimiter[string](mirror.StaleCacheDelay, interval),
		sent:      map[string]sent{},
		since:     map[string]time.Time{},
		held:      map[string]*sync.Mutex{},
	}
	err := controller.New(hub, "report", controller.Options{MaxConcurrentReconciles: mirror.Workers}).
		For(&kudo.Instance{}).
		WatchesRawSource(mirror.Source(o.Cluster, local)).
		WatchesRawSource(source.Channel(o.Statuses.Changed, &handler.EnqueueRequestForObject{})).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the report: %w", err)
	}
	err = controller.New(hub, "ask", controller.Options{MaxConcurrentReconciles: mirror.Workers}).
		WatchesRawSource(mirror.Source(o.Cluster, local, workChanged())).
		Complete(reconcile.Func(r.ask))
	if err != nil {
		return fmt.Errorf("adding the report of child tasks: %w", err)
	}
	return nil
}

// workChanged admits changes of the tasks in progress.
func workChanged() predicate.TypedPredicate[*kudo.Instance] {
	return controller.TypedChangeIn(func(i *kudo.Instance) string {
		if i.Status.Execution == nil {
			return ""
		}
		work := []string{string(i.Status.Execution.UID)}
		for _, phase := range i.Status.PlanStatus[i.Status.Execution.Plan].Phases {
			for _, step := range phase.Steps {
				for _, task := range step.Tasks {
					if task.Status == kudo.InProgress {
						work = append(work, phase.Name, step.Name, task.Name)
					}
				}
			}
		}
		return strings.Join(work, "/")
	})
}

// pending is a report of an Instance that has not been sent yet.
type pending struct {
	onHub    *kudo.Instance
	want     kudo.InstanceStatus
	existing *kudo.Instance // the mirror; nil if there is none

	// last is the last reported status, which the cache may lack; read is the resource version in the cache.
	last kudo.InstanceStatus
	read string
}

// Reconcile updates the agent's part of one Instance's status on the hub.
func (r *reporter) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer r.hold(request.Name)()
	due, err := r.overdue(ctx, request.NamespacedName)
	if err != nil || due == nil {
		return reconcile.Result{}, err
	}
	if wait := r.wait(due); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return r.retry(request.Name, r.report(ctx, due))
}

// ask reports, ahead of queued reports, a child that the hub has to apply or to remove: the plan does not continue until then. There is one
// such report for each KudoOperator task of an execution.
func (r *reporter) ask(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer r.hold(request.Name)()
	due, err := r.overdue(ctx, request.NamespacedName)
	if err != nil || due == nil {
		return reconcile.Result{}, err
	}
	if asks, err := r.asksForChild(ctx, due); err != nil || !asks {
		return reconcile.Result{}, err
	}
	return r.retry(request.Name, r.report(ctx, due))
}

// retry returns when a report is sent again after a conflict: soon at first, because the cache usually catches up quickly. If it does not,
// for example because a watch hangs, the report is sent at most once per interval. An event of the Instance ends the pause.
func (r *reporter) retry(name string, err error) (reconcile.Result, error) {
	result, err := controller.RetryConflict(err)
	if result.RequeueAfter == 0 {
		r.conflicts.Forget(name)
		return result, err
	}
	return reconcile.Result{RequeueAfter: r.conflicts.When(name)}, err
}

// overdue returns the pending report of an Instance; nil if there is none.
func (r *reporter) overdue(ctx context.Context, name types.NamespacedName) (*pending, error) {
	onHub := &kudo.Instance{}
	if err := r.hub.Get(ctx, name, onHub); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(name.Name)
			return nil, nil
		}
		return nil, err
	}
	existing, _, err := r.signer.Find(ctx, r.local, onHub.Name)
	if err != nil {
		return nil, err
	}
	want := r.decide(onHub, existing)
	if want == nil || report.IsUpToDate(onHub.Status, *want) {
		r.nothingPending(onHub.Name)
		return nil, nil
	}
	due := &pending{onHub: onHub, want: *want, existing: existing, last: onHub.Status, read: onHub.ResourceVersion}
	r.catchUp(due)
	return due, nil
}

// catchUp bases a report on the previous one if the cache lacks that: it often follows immediately, and would be rejected. A report that
// the cache lacks for longer will never arrive, as on a hub that was restored.
func (r *reporter) catchUp(due *pending) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	last, known := r.sent[due.onHub.Name]
	if known && last.read == due.read && r.clock().Sub(last.at) < cacheLagTimeout {
		due.last, due.onHub.ResourceVersion = last.said, last.written
	}
}

// asksForChild reports whether the hub has to act before the plan continues.
func (r *reporter) asksForChild(ctx context.Context, due *pending) (bool, error) {
	if due.existing == nil || due.want.Execution == nil {
		return false, nil
	}
	version := &kudo.OperatorVersion{}
	name := types.NamespacedName{Namespace: due.existing.Namespace, Name: coremirror.VersionName(due.want.Execution.OperatorVersion)}
	if err := r.local.Get(ctx, name, version); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return plan.AsksForChild(&version.Spec, due.last, due.want), nil
}

// report sends a report, after the reports of children whose plans have ended: the parent's plan continued or failed after them, the hub
// reruns failed ones, and watchers on the hub see the same order.
func (r *reporter) report(ctx context.Context, due *pending) error {
	for _, child := range due.onHub.Status.Children {
		if !strings.HasPrefix(child.Instance, due.onHub.Name+".") { // guards against recursion through a manipulated status
			continue
		}
		if err := r.reportEnded(ctx, types.NamespacedName{Namespace: due.onHub.Namespace, Name: child.Instance}); err != nil {
			return err
		}
	}
	return r.send(ctx, due)
}

// reportEnded sends the pending report, if any, of an Instance whose plan has ended.
func (r *reporter) reportEnded(ctx context.Context, name types.NamespacedName) error {
	defer r.hold(name.Name)()
	due, err := r.overdue(ctx, name)
	if err != nil || due == nil || !report.HasEnded(due.want) || report.IsUpToDate(due.last, due.want) {
		return err
	}
	return r.report(ctx, due)
}

// hold locks the reports of an Instance until it is released. The holder of a parent may wait for a child, but not the reverse.
func (r *reporter) hold(name string) (release func()) {
	r.mutex.Lock()
	lock, known := r.held[name]
	if !known {
		lock = &sync.Mutex{}
		r.held[name] = lock
	}
	r.mutex.Unlock()
	lock.Lock()
	return lock.Unlock
}

// decide returns the desired status on the hub; nil if the agent has nothing to report yet.
func (r *reporter) decide(onHub, existing *kudo.Instance) *kudo.InstanceStatus {
	noted := r.statuses.Get(onHub)
	want := report.Status(report.Observation{OnHub: onHub, Mirror: existing, Removed: noted.Removed, Problem: noted.Problem})
	if want == nil {
		return nil
	}
	for i, c := range want.Conditions {
		if c.LastTransitionTime.IsZero() {
			want.Conditions[i], _ = apply.MergeCondition(onHub.Status.Conditions, c, r.clock())
		}
	}
	return want
}

// wait returns how long a report is delayed.
func (r *reporter) wait(due *pending) time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	name, now := due.onHub.Name, r.clock()
	if _, known := r.since[name]; !known {
		r.since[name] = now
	}
	delay, early := report.DelayOf(due.want, report.Pending{Now: now, Since: r.since[name], Sent: r.sent[name].at, Interval: r.interval})
	if early {
		return delay.Within(r.early.TryAccept)
	}
	return delay.Within(r.progress.TryAccept)
}

func (r *reporter) nothingPending(name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.since, name)
}

func (r *reporter) forget(name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.sent, name)
	delete(r.since, name)
	r.conflicts.Forget(name)
}

// send applies the agent's part of the status, and no other field. The status of an Instance must not be written to a later one of the same
// name: with another Instance's execution it would never be deployed.
func (r *reporter) send(ctx context.Context, due *pending) error {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&due.want)
	if err != nil {
		return fmt.Errorf("encoding the status of Instance %q: %w", due.onHub.Name, err)
	}
	if err := apply.StatusAsRead(ctx, r.hub, due.onHub, fieldManager, status); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.since, due.onHub.Name)
	r.sent[due.onHub.Name] = sent{at: r.clock(), said: due.want, read: due.read, written: due.onHub.ResourceVersion}
	return nil
}
