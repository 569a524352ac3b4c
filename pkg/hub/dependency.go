package hub

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// dependencies evaluates the dependencies of every add-on on every cluster, and reports the verdict in the add-on's condition Degraded. It
// only writes Degraded with a dependency reason.
type dependencies struct {
	client   client.Client
	recorder events.EventRecorder
	metrics  *metrics
	cycles   *read.Cycles
	written  *controller.Writes
}

func (d *dependencies) SetUp(mgr manager.Manager) error {
	return controller.New(mgr, "dependency", controller.Options{NewQueue: d.metrics.verdictLatency.Queue}).
		For(&addonv1alpha1.ManagedClusterAddOn{}, builder.WithPredicates(controller.ChangeIn(viewJudged))).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, controller.EnqueueFrom(d.dependents),
			builder.WithPredicates(controller.ChangeIn(read.ViewDependedOn), controller.AfterStart())).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, d.cycles.Follow(d.client), builder.WithPredicates(controller.ChangeIn(read.ViewDefined))).
		Watches(&kudo.Instance{}, controller.EnqueueFrom(d.dependents),
			builder.WithPredicates(controller.ChangeIn(read.ViewVersions), controller.AfterStart())).
		Watches(&kudo.Instance{}, controller.EnqueueFrom(read.Namesake), builder.WithPredicates(controller.ChangeIn(read.ViewConstraints), controller.AfterStart())).
		Watches(&clusterv1.ManagedCluster{}, controller.EnqueueFrom(d.cycles.OnClusterChange(d.client)),
			builder.WithPredicates(controller.ChangeIn(read.ViewSelected), controller.AfterStart())).
		Complete(d)
}

// Reconcile evaluates the dependencies of one add-on on one cluster.
func (d *dependencies) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	since := d.metrics.verdictLatency.Take(request)
	// With a stale cache, held verdicts would also be taken from the one before the last.
	reconciler := controller.Reconciler[*addonv1alpha1.ManagedClusterAddOn]{
		Client: d.client, GetOptions: []client.GetOption{client.UnsafeDisableDeepCopy}, // the add-on is read-only
		Written: d.written, IsIgnored: controller.IsDeleted,
		Forget: func(name types.NamespacedName) { d.metrics.unsatisfied.Set(name, nil) },
		ReconcileObject: func(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (ctrl.Result, error) {
			wrote, err := d.judge(ctx, addOn)
			if wrote {
				d.metrics.verdictLatency.Observe(since)
			}
			return controller.RetryConflict(err)
		},
	}
	result, err := reconciler.Reconcile(ctx, request)
	if err != nil || result.RequeueAfter > 0 {
		d.metrics.verdictLatency.PutBack(request, since)
	}
	return result, err
}

// judge updates the add-on's condition to the verdict on its dependencies, and reports whether that required a write.
func (d *dependencies) judge(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (bool, error) {
	needs, problem, err := read.DeclaredBy(ctx, d.client, addOn.Name)
	if err != nil {
		return false, err
	}
	previous := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionDegraded)
	if problem != nil { // the definitions controller reports it; the last verdict stays
		d.metrics.unsatisfied.Recall(client.ObjectKeyFromObject(addOn), unmetKeys(addOn.Name, dependency.UnmetFrom(previous)))
		return false, nil
	}
	constraints, err := read.ConstraintsOf(ctx, d.client, addOn)
	if err != nil {
		return false, err
	}
	verdict, err := read.Verdict(ctx, d.client, d.cycles, client.ObjectKeyFromObject(addOn), needs, constraints, previous)
	if err != nil {
		return false, err
	}
	d.metrics.unsatisfied.Set(client.ObjectKeyFromObject(addOn), unmetKeys(addOn.Name, verdict.Unmet()))
	wrote, err := d.commit(ctx, addOn, verdict)
	if wrote {
		d.metrics.verdictChanged(addOn.Name, verdict)
		d.emit(addOn, previous, verdict)
	}
	return wrote, err
}

// commit sets condition Degraded to the verdict, or removes it if its dependency reason no longer applies.
func (d *dependencies) commit(
	ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, verdict dependency.Verdict,
) (bool, error) {
	current := addOn.Status.Conditions
	if want := verdict.Condition(); want != nil {
		return apply.Condition(ctx, d.client, addOn, current, ManagerDependency, *want, time.Now())
	}
	return apply.ReleaseCondition(ctx, d.client, addOn, current, addonv1alpha1.ConditionDegraded,
		addonv1alpha1.ReasonDependencyNotSatisfied, addonv1alpha1.ReasonRequiredDependencyNotSatisfied)
}

// emit emits an event for a written verdict.
func (d *dependencies) emit(addOn *addonv1alpha1.ManagedClusterAddOn, previous *metav1.Condition, verdict dependency.Verdict) {
	unmet := verdict.Unmet()
	if len(unmet) == 0 {
		d.recorder.Eventf(addOn, nil, corev1.EventTypeNormal, eventDependenciesSatisfied, actionEvaluate, "%s",
			controller.TruncateNote(fmt.Sprintf("all dependencies are satisfied; previously: %s", previous.Reason)))
		return
	}
	d.recorder.Eventf(addOn, nil, corev1.EventTypeWarning, verdict.Reason(), actionEvaluate, "%s",
		controller.TruncateNote("not satisfied: "+dependency.Summary(unmet)))
}

// dependents returns the dependents of a changed add-on on the same cluster.
func (d *dependencies) dependents(ctx context.Context, addOn client.Object) ([]reconcile.Request, error) {
	return read.DependentsOf(ctx, d.client, addOn)
}

// judgedView holds the fields of an add-on that its own verdict depends on.
type judgedView struct {
	uid      types.UID
	deleting bool
	degraded controller.ConditionView
}

func viewJudged(a *addonv1alpha1.ManagedClusterAddOn) judgedView {
	return judgedView{
		uid: a.UID, deleting: !a.DeletionTimestamp.IsZero(),
		degraded: controller.ViewCondition(a.Status.Conditions, addonv1alpha1.ConditionDegraded),
	}
}
