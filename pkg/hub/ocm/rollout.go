package ocm

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/controller"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/install"
)

// rollouts tell OCM's addon-manager how far the configuration of each add-on that runs by plans has got, so that it can roll a change
// out: it goes on to the next clusters when the first ones have got there. OCM reads that off a ManifestWork of the add-on's, which is
// annotated with the configuration and says that what it holds is there. Of such an add-on it is a mark and nothing else: it brings
// nothing.
type rollouts struct {
	client client.Client
	// addOns read what an add-on is judged by.
	addOns *read.AddOns
	// marks holds the marks' metadata, and no other ManifestWork's.
	marks cache.Cache
	// unfinished counts the clusters that a rollout is not done with.
	unfinished *controller.Gauge[rolloutKey]
	written    *controller.Writes
}

func (r *rollouts) SetUp(mgr manager.Manager) error {
	if err := mgr.Add(r.marks); err != nil {
		return fmt.Errorf("adding the cache of marks: %w", err)
	}
	marked := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, mark *metav1.PartialObjectMetadata) []reconcile.Request {
		name := types.NamespacedName{Namespace: mark.Namespace, Name: mark.Labels[upstream.AddonLabelKey]}
		return []reconcile.Request{{NamespacedName: name}}
	})
	return controller.New(mgr, "rollout", controller.Options{}).
		For(&addonv1alpha1.ManagedClusterAddOn{}, builder.WithPredicates(controller.Changed(viewRollout))).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, controller.Mapped(r.defined), builder.WithPredicates(controller.Changed(read.ViewDefinition), controller.AfterStart())).
		Watches(&kudo.Instance{}, controller.Mapped(r.addOns.Namesakes), builder.WithPredicates(controller.Changed(viewReached), controller.AfterStart())).
		Watches(&kudo.OperatorVersion{}, controller.Mapped(r.addOns.ConfiguredWith(addonv1alpha1.ResourceOperatorVersions)),
			builder.WithPredicates(controller.Existence(), controller.AfterStart())).
		Watches(&addonv1alpha1.AddOnDeploymentConfig{}, controller.Mapped(r.addOns.ConfiguredWith(addonv1alpha1.ResourceAddOnDeploymentConfigs)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}, controller.AfterStart())).
		WatchesRawSource(source.Kind(r.marks, manifestWork(), marked)).
		Complete(r)
}

// Reconcile tells of one add-on on one cluster.
func (r *rollouts) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	addOn, err := r.current(ctx, request.NamespacedName)
	if err != nil || addOn == nil {
		return ctrl.Result{}, err
	}
	if wait := r.written.Awaits(addOn); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	defer r.written.NoteSince(addOn, addOn.ResourceVersion)
	definition, err := read.Definition(ctx, r.client, addOn.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	mark, err := r.mark(ctx, addOn)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !install.RunsByPlans(definition) {
		r.count(request.NamespacedName, nil)
		return controller.RetryConflict(r.giveUp(ctx, addOn, mark))
	}
	state, err := r.addOns.Gather(ctx, definition, addOn)
	if err != nil {
		return ctrl.Result{}, err
	}
	rollout := install.RolloutOf(state, marked(mark, addOn))
	r.count(request.NamespacedName, rollout)
	if rollout == nil {
		return ctrl.Result{}, nil
	}
	return controller.RetryConflict(r.act(ctx, state, rollout, mark))
}

// count shows the add-on among those that a rollout is not done with, unless it is.
func (r *rollouts) count(name types.NamespacedName, rollout *install.Rollout) {
	var keys []rolloutKey
	if rollout != nil && rollout.State != install.RolloutDone {
		keys = []rolloutKey{{addOn: name.Name, state: string(rollout.State)}}
	}
	r.unfinished.Set(name, keys)
}

// current is the add-on as the cache has it; nil where there is none, or one that goes, and its mark with it.
func (r *rollouts) current(ctx context.Context, name types.NamespacedName) (*addonv1alpha1.ManagedClusterAddOn, error) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	err := r.client.Get(ctx, name, addOn)
	if apierrors.IsNotFound(err) || err == nil && !addOn.DeletionTimestamp.IsZero() {
		r.written.Forget(name)
		r.count(name, nil)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ManagedClusterAddOn %s: %w", name, err)
	}
	return addOn, nil
}

// mark is the one that stands under the add-on's name; nil where there is none.
func (r *rollouts) mark(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (*metav1.PartialObjectMetadata, error) {
	mark := manifestWork()
	err := r.marks.Get(ctx, types.NamespacedName{Namespace: addOn.Namespace, Name: markName(addOn)}, mark)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the mark of ManagedClusterAddOn %s: %w", client.ObjectKeyFromObject(addOn), err)
	}
	return mark, nil
}

// act writes what is new: hashes, the mark, and at last the status. OCM would believe a mark that another add-on has left, so that one is
// taken over.
func (r *rollouts) act(ctx context.Context, state install.AddOn, rollout *install.Rollout, mark *metav1.PartialObjectMetadata) error {
	addOn := state.ManagedAddOn
	if operations := hashOperations(addOn, rollout.SpecHashes); len(operations) > 0 {
		if err := apply.PatchStatus(ctx, r.client, addOn, operations, client.FieldOwner(ManagerRollout)); err != nil {
			return err
		}
	}
	if rollout.Mark != marked(mark, addOn) || mark != nil && !metav1.IsControlledBy(mark, addOn) {
		want, err := markOf(addOn, rollout.Mark)
		if err != nil {
			return err
		}
		if _, err := apply.Object(ctx, r.client, want, ManagerRollout); err != nil {
			return fmt.Errorf("applying ManifestWork %s: %w", client.ObjectKeyFromObject(want), err)
		}
	}
	return r.commit(ctx, addOn, rollout.Applied)
}

// giveUp takes back what was told of an add-on that does not run by plans any more: OCM counts every ManifestWork of an add-on, and would
// wait for ever for a mark that nobody keeps up.
func (r *rollouts) giveUp(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, mark *metav1.PartialObjectMetadata) error {
	if mark != nil && mark.DeletionTimestamp.IsZero() {
		if err := r.client.Delete(ctx, mark, client.Preconditions{UID: &mark.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting ManifestWork %s: %w", client.ObjectKeyFromObject(mark), err)
		}
	}
	operations := apply.Release(addOn.Status.Conditions, addonv1alpha1.ConditionManifestApplied,
		addonv1alpha1.ReasonPlanComplete, addonv1alpha1.ReasonPlanNotComplete)
	if len(operations) == 0 {
		return nil
	}
	if supported := addOn.Status.SupportedConfigs; slices.Equal(supported, install.SupportedConfigs()) {
		operations = append(operations,
			apply.Operation{Op: "test", Path: "/status/supportedConfigs", Value: supported},
			apply.Operation{Op: "remove", Path: "/status/supportedConfigs"})
	}
	return apply.PatchStatus(ctx, r.client, addOn, operations)
}

// commit sets condition ManifestApplied and the configs that the add-on supports, without which OCM takes none of its own.
func (r *rollouts) commit(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, applied metav1.Condition) error {
	settled, dirty := apply.Settle(addOn.Status.Conditions, applied, time.Now())
	supported := install.SupportedConfigs()
	if !dirty && slices.Equal(addOn.Status.SupportedConfigs, supported) {
		return nil
	}
	condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&settled)
	if err != nil {
		return fmt.Errorf("encoding condition %s: %w", applied.Type, err)
	}
	return apply.Status(ctx, r.client, addOn, ManagerRollout, map[string]any{
		"conditions": []any{condition}, "supportedConfigs": supported,
	})
}

// hashOperations put hashes into status.configReferences, by their place in it.
func hashOperations(addOn *addonv1alpha1.ManagedClusterAddOn, hashes map[int]string) []apply.Operation {
	var operations []apply.Operation
	for at, hash := range hashes {
		operations = append(operations, apply.Operation{
			Op: "add", Path: fmt.Sprintf("/status/configReferences/%d/desiredConfig/specHash", at), Value: hash,
		})
	}
	return asRead(addOn, operations)
}

func (r *rollouts) defined(ctx context.Context, definition client.Object) ([]reconcile.Request, error) {
	return read.AddOnsNamed(ctx, r.client, definition.GetName())
}

// rolloutView is what matters of a ManagedClusterAddOn to its rollout.
type rolloutView struct {
	generation int64
	deleting   bool
	configured controller.ConditionView
	applied    controller.ConditionView
	references string
	supported  int
}

func viewRollout(a *addonv1alpha1.ManagedClusterAddOn) rolloutView {
	return rolloutView{
		generation: a.Generation,
		deleting:   !a.DeletionTimestamp.IsZero(),
		configured: controller.ViewCondition(a.Status.Conditions, addonv1alpha1.ConditionConfigured),
		applied:    controller.ViewCondition(a.Status.Conditions, addonv1alpha1.ConditionManifestApplied),
		references: install.Desired(a),
		supported:  len(a.Status.SupportedConfigs),
	}
}

// reachedView is what matters of an Instance to the rollout of its add-on.
type reachedView struct {
	generation int64
	version    types.UID
	ready      controller.ConditionView
}

func viewReached(i *kudo.Instance) reachedView {
	view := reachedView{generation: i.Generation, ready: controller.ViewCondition(i.Status.Conditions, kudo.ConditionReady)}
	if i.Status.Execution != nil {
		view.version = i.Status.Execution.OperatorVersion.UID
	}
	return view
}
