package hub

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/controller"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

// dependencies judges, for every add-on on every cluster, the add-ons that it depends on there, and says so in its condition
// Degraded, of which it writes those with a dependency reason and no others.
type dependencies struct {
	client   client.Client
	recorder events.EventRecorder
	metrics  *metrics
	circles  *circles
	written  *controller.Writes
}

func (d *dependencies) SetUp(mgr manager.Manager) error {
	return controller.New(mgr, "dependency", controller.Options{NewQueue: d.metrics.verdictLatency.Queue}).
		For(&addonv1alpha1.ManagedClusterAddOn{}, builder.WithPredicates(controller.Changed(viewJudged))).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, controller.Mapped(d.dependants),
			builder.WithPredicates(controller.Changed(viewDependedOn), controller.AfterStart())).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, d.circles.follow(d.client), builder.WithPredicates(controller.Changed(viewDeclaration))).
		Complete(d)
}

// Reconcile judges the dependencies of one add-on on one cluster.
func (d *dependencies) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	since := d.metrics.verdictLatency.Take(request)
	addOn, err := d.current(ctx, request.NamespacedName)
	if err != nil || addOn == nil {
		return ctrl.Result{}, err
	}
	// Where the cache does not have the last verdict yet, it would be written again, and what is held would be held by the one before.
	// As a rule it is the verdict's own event that leads here again.
	if wait := d.written.Awaits(addOn); wait > 0 {
		d.metrics.verdictLatency.Again(request, since)
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	wrote, err := d.judge(ctx, addOn)
	switch {
	case err != nil:
		d.metrics.verdictLatency.Again(request, since)
	case wrote:
		d.metrics.verdictLatency.Done(since)
	}
	return controller.RetryConflict(err)
}

// current is the add-on as the cache has it, to be read only; nil where there is nothing to judge.
func (d *dependencies) current(ctx context.Context, name types.NamespacedName) (*addonv1alpha1.ManagedClusterAddOn, error) {
	var addOn addonv1alpha1.ManagedClusterAddOn
	err := d.client.Get(ctx, name, &addOn, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && !addOn.DeletionTimestamp.IsZero() {
		d.written.Forget(name)
		d.metrics.unsatisfied.Set(name, nil)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ManagedClusterAddOn %s: %w", name, err)
	}
	return &addOn, nil
}

// judge brings the add-on's condition to the verdict over its dependencies, and says whether that took a write.
func (d *dependencies) judge(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (bool, error) {
	needs, fault, err := declaredBy(ctx, d.client, addOn.Name)
	if err != nil {
		return false, err
	}
	previous := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionDegraded)
	if fault != nil { // it was reported where it stands; the last verdict stays
		d.metrics.unsatisfied.Recall(client.ObjectKeyFromObject(addOn), unmetKeys(addOn.Name, dependency.Recalled(previous)))
		return false, nil
	}
	seen, err := see(ctx, d.client, addOn.Namespace, needs, d.circles.of(addOn.Name))
	if err != nil {
		return false, err
	}
	verdict := dependency.Evaluate(needs, seen, previous)
	d.metrics.unsatisfied.Set(client.ObjectKeyFromObject(addOn), unmetKeys(addOn.Name, verdict.Unmet()))
	wrote, err := d.commit(ctx, addOn, verdict)
	if wrote {
		d.written.Note(addOn)
		d.metrics.verdictChanged(addOn.Name, verdict)
		d.tell(addOn, previous, verdict)
	}
	return wrote, err
}

// commit sets Degraded as the verdict asks for, or releases it where it carries a dependency reason for no reason any more.
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

// tell makes an event of a verdict that was written.
func (d *dependencies) tell(addOn *addonv1alpha1.ManagedClusterAddOn, previous *metav1.Condition, verdict dependency.Verdict) {
	unmet := verdict.Unmet()
	if len(unmet) == 0 {
		d.recorder.Eventf(addOn, nil, corev1.EventTypeNormal, eventDependenciesSatisfied, actionEvaluate, "%s",
			controller.Note(fmt.Sprintf("all dependencies are satisfied; before: %s", previous.Reason)))
		return
	}
	d.recorder.Eventf(addOn, nil, corev1.EventTypeWarning, verdict.Reason(), actionEvaluate, "%s",
		controller.Note("not satisfied: "+dependency.Summary(unmet)))
}

// declaredBy is what the add-on of that name depends on. An add-on without definition depends on nothing. fault says that the
// declaration is malformed.
func declaredBy(ctx context.Context, c client.Reader, name string) (needs []addonv1alpha1.AddonDependency, fault, err error) {
	definition, err := definitionOf(ctx, c, name)
	if err != nil || definition == nil {
		return nil, nil, err
	}
	needs, fault = dependency.Declared(definition)
	return needs, fault, nil
}

// definitionOf is the ClusterManagementAddOn of that name, to be read only; nil if there is none.
func definitionOf(ctx context.Context, c client.Reader, name string) (*addonv1alpha1.ClusterManagementAddOn, error) {
	var definition addonv1alpha1.ClusterManagementAddOn
	err := c.Get(ctx, types.NamespacedName{Name: name}, &definition, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ClusterManagementAddOn %q: %w", name, err)
	}
	return &definition, nil
}

// see gathers what is known on a cluster of the add-ons that are needed; circles are those that the needs lead into.
func see(
	ctx context.Context, c client.Reader, cluster string, needs []addonv1alpha1.AddonDependency, circles map[string][]string,
) (map[string]dependency.Seen, error) {
	seen := make(map[string]dependency.Seen, len(needs))
	for _, need := range needs {
		definition, err := definitionOf(ctx, c, need.Name)
		if err != nil {
			return nil, err
		}
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		err = c.Get(ctx, types.NamespacedName{Namespace: cluster, Name: need.Name}, addOn,
			client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			addOn, err = nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading ManagedClusterAddOn %s/%s: %w", cluster, need.Name, err)
		}
		known := dependency.See(definition, addOn)
		known.Circle = circles[need.Name]
		seen[need.Name] = known
	}
	return seen, nil
}

// dependants are the add-ons on the same cluster that depend on the one that changed.
func (d *dependencies) dependants(ctx context.Context, addOn client.Object) ([]reconcile.Request, error) {
	return dependantsOf(ctx, d.client, addOn)
}

// dependantsOf are requests for the add-ons that depend on addOn, on its cluster.
func dependantsOf(ctx context.Context, c client.Reader, addOn client.Object) ([]reconcile.Request, error) {
	names, err := definedOn(ctx, c, addOn.GetName())
	if err != nil {
		return nil, err
	}
	requests := make([]reconcile.Request, 0, len(names))
	for _, name := range names {
		requests = append(requests, reconcile.Request{
			NamespacedName: types.NamespacedName{Namespace: addOn.GetNamespace(), Name: name},
		})
	}
	return requests, nil
}

// judgedView is what matters of an add-on to the verdict over it.
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

// dependedOnView is what matters of an add-on to those that depend on it.
type dependedOnView struct {
	deleting  bool
	available metav1.ConditionStatus
	reason    string
}

func viewDependedOn(a *addonv1alpha1.ManagedClusterAddOn) dependedOnView {
	seen := dependency.See(nil, a)
	return dependedOnView{deleting: seen.Deleting, available: seen.Available, reason: seen.Reason}
}
