package ocm

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// rollouts reports the progress of each configuration of a plan-based add-on to OCM's addon-manager, which continues a rollout
// with the next clusters once the first ones are done. OCM reads the progress from a ManifestWork of the add-on that is annotated with the
// configuration and reports its contents as applied. For these add-ons the ManifestWork is only a mark: it delivers nothing.
type rollouts struct {
	client client.Client
	// addOns reads the state that decides about an add-on.
	addOns *read.AddOns
	// checkLive returns a conflict if a cached object is stale, or if one that the cache lacks exists.
	checkLive func(ctx context.Context, cached client.Object) error
	// marks caches the metadata of marks, and of no other ManifestWorks. It is filled independently of the other caches, which may be older.
	marks cache.Cache
	// unfinished counts the clusters with an unfinished rollout.
	unfinished *controller.Gauge[rolloutKey]
	written    *controller.Writes
	pace       *controller.Pace
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
		For(&addonv1alpha1.ManagedClusterAddOn{}, builder.WithPredicates(r.pace.OnSpecChange(), controller.ChangeIn(viewRollout))).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, r.pace.EnqueueFrom(r.addOnsOf), builder.WithPredicates(controller.ChangeIn(read.ViewDefinition), controller.AfterStart())).
		Watches(&kudo.Instance{}, controller.EnqueueFrom(r.addOns.Namesakes), builder.WithPredicates(controller.ChangeIn(viewReached), controller.AfterStart())).
		Watches(&kudo.OperatorVersion{}, controller.EnqueueFrom(r.addOns.ConfiguredWith(addonv1alpha1.ResourceOperatorVersions)),
			builder.WithPredicates(controller.Existence(), controller.AfterStart())).
		Watches(&addonv1alpha1.AddOnDeploymentConfig{}, r.pace.EnqueueFrom(r.addOns.ConfiguredWith(addonv1alpha1.ResourceAddOnDeploymentConfigs)),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, controller.ChangeIn(read.ViewHealthyFor)), controller.AfterStart())).
		Watches(&corev1.ConfigMap{}, r.pace.EnqueueFrom(r.addOns.ConfiguredWith(addonv1alpha1.ResourceConfigMaps)),
			builder.WithPredicates(controller.ChangeIn(read.ViewConfigMap), controller.AfterStart())).
		WatchesRawSource(source.Kind(r.marks, manifestWork(), marked)).
		Complete(&controller.Reconciler[*addonv1alpha1.ManagedClusterAddOn]{
			Client: r.client, Written: r.written, IsIgnored: controller.IsDeleted, // then its mark is, too
			Forget:          func(name types.NamespacedName) { r.count(name, nil) },
			ReconcileObject: r.Reconcile,
		})
}

// Reconcile reports the rollout of one add-on on one cluster.
func (r *rollouts) Reconcile(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (ctrl.Result, error) {
	definition, err := read.Definition(ctx, r.client, addOn.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	mark, err := r.mark(ctx, addOn)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !install.IsPlanManaged(definition) {
		r.count(client.ObjectKeyFromObject(addOn), nil)
		return controller.RetryConflict(r.releaseStatus(ctx, definition, addOn, mark))
	}
	state, err := r.addOns.Gather(ctx, definition, addOn)
	if err != nil {
		return ctrl.Result{}, err
	}
	rollout := install.RolloutOf(state, markValue(mark, addOn))
	r.count(client.ObjectKeyFromObject(addOn), rollout)
	if rollout == nil {
		return ctrl.Result{}, nil
	}
	return controller.RetryConflict(r.act(ctx, state, rollout, mark))
}

// count includes the add-on in the metric of unfinished rollouts, unless its rollout is finished.
func (r *rollouts) count(name types.NamespacedName, rollout *install.Rollout) {
	var keys []rolloutKey
	if rollout != nil && rollout.State != install.RolloutDone {
		keys = []rolloutKey{{addOn: name.Name, state: string(rollout.State)}}
	}
	r.unfinished.Set(name, keys)
}

// mark returns the existing mark under the add-on's name; nil if there is none.
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

// act writes the changes: the mark, and then the status. It takes over a mark that another add-on has left, because OCM would accept it.
func (r *rollouts) act(ctx context.Context, state install.AddOn, rollout *install.Rollout, mark *metav1.PartialObjectMetadata) error {
	addOn := state.ManagedAddOn
	if rollout.Mark != markValue(mark, addOn) || mark != nil && !metav1.IsControlledBy(mark, addOn) {
		if err := r.checkAllLive(ctx, inputsOf(state)); err != nil {
			return err
		}
		want, err := markOf(addOn, rollout.Mark)
		if err != nil {
			return err
		}
		if _, err := apply.Object(ctx, r.client, want, ManagerRollout); err != nil {
			return fmt.Errorf("applying ManifestWork %s: %w", client.ObjectKeyFromObject(want), err)
		}
	}
	return r.commit(ctx, addOn, rollout)
}

// inputsOf returns the cached objects that decide about a mark. If one of them is stale, the mark of a deleted add-on would be created again, or
// report a configuration to OCM that an earlier Instance has reached.
func inputsOf(state install.AddOn) []client.Object {
	objects := []client.Object{state.Definition, state.ManagedAddOn}
	if own := state.OwnInstance(); own != nil {
		objects = append(objects, own)
	} else {
		objects = append(objects, &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: state.ManagedAddOn.Namespace, Name: state.ManagedAddOn.Name}})
	}
	if state.Version != nil {
		objects = append(objects, state.Version)
	}
	return append(objects, read.ParametersOf(state)...)
}

// checkAllLive returns a conflict if one of the objects is stale.
func (r *rollouts) checkAllLive(ctx context.Context, objects []client.Object) error {
	for _, object := range objects {
		if err := r.checkLive(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// releaseStatus removes the reports about an add-on that is no longer plan-based: OCM counts every ManifestWork of an add-on, and would wait
// forever for a mark that is no longer updated. Right after a change it returns a Postponed error and leaves the status unchanged.
func (r *rollouts) releaseStatus(
	ctx context.Context, definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn, mark *metav1.PartialObjectMetadata,
) error {
	if mark != nil && mark.DeletionTimestamp.IsZero() {
		if definition == nil {
			definition = &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: addOn.Name}}
		}
		if err := r.checkLive(ctx, definition); err != nil {
			return err
		}
		if err := r.client.Delete(ctx, mark, client.Preconditions{UID: &mark.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting ManifestWork %s: %w", client.ObjectKeyFromObject(mark), err)
		}
	}
	operations := apply.Release(addOn.Status.Conditions, addonv1alpha1.ConditionManifestApplied, addonv1alpha1.RolloutReasons()...)
	if len(operations) == 0 {
		return nil
	}
	if err := r.pace.Allow(client.ObjectKeyFromObject(addOn)); err != nil {
		return err
	}
	if supported := addOn.Status.SupportedConfigs; slices.Equal(supported, install.SupportedConfigs()) {
		operations = append(operations,
			apply.Operation{Op: "test", Path: "/status/supportedConfigs", Value: supported},
			apply.Operation{Op: "remove", Path: "/status/supportedConfigs"})
	}
	return apply.PatchStatus(ctx, r.client, addOn, operations)
}

// commit sets missing hashes, condition ManifestApplied, and the configs that the add-on supports, without which OCM ignores the add-on's
// own configs. Right after a change of the add-on or its configuration, it returns a Postponed error instead.
func (r *rollouts) commit(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, rollout *install.Rollout) error {
	settled, dirty := apply.MergeCondition(addOn.Status.Conditions, rollout.Applied, time.Now())
	hashes, supported := hashOperations(addOn, rollout.SpecHashes), install.SupportedConfigs()
	dirty = dirty || !slices.Equal(addOn.Status.SupportedConfigs, supported)
	if !dirty && len(hashes) == 0 {
		return nil
	}
	if err := r.pace.Allow(client.ObjectKeyFromObject(addOn)); err != nil {
		return err
	}
	if len(hashes) > 0 {
		if err := apply.PatchStatus(ctx, r.client, addOn, hashes, client.FieldOwner(ManagerRollout)); err != nil {
			return err
		}
	}
	if !dirty {
		return nil
	}
	condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&settled)
	if err != nil {
		return fmt.Errorf("encoding condition %s: %w", settled.Type, err)
	}
	return apply.Status(ctx, r.client, addOn, ManagerRollout, map[string]any{
		"conditions": []any{condition}, "supportedConfigs": supported,
	})
}

// hashOperations set hashes in status.configReferences, by index.
func hashOperations(addOn *addonv1alpha1.ManagedClusterAddOn, hashes map[int]string) []apply.Operation {
	var operations []apply.Operation
	for at, hash := range hashes {
		operations = append(operations, apply.Operation{
			Op: "add", Path: fmt.Sprintf("/status/configReferences/%d/desiredConfig/specHash", at), Value: hash,
		})
	}
	return asRead(addOn, operations)
}

func (r *rollouts) addOnsOf(ctx context.Context, definition client.Object) ([]reconcile.Request, error) {
	return read.AddOnsNamed(ctx, r.client, definition.GetName())
}

// rolloutView holds the fields of a ManagedClusterAddOn that its rollout depends on.
type rolloutView struct {
	generation int64
	deleting   bool
	configured controller.ConditionView
	resolved   controller.ConditionView
	applied    controller.ConditionView
	references string
	supported  int
}

func viewRollout(a *addonv1alpha1.ManagedClusterAddOn) rolloutView {
	return rolloutView{
		generation: a.Generation,
		deleting:   !a.DeletionTimestamp.IsZero(),
		configured: controller.ViewCondition(a.Status.Conditions, addonv1alpha1.ConditionConfigured),
		resolved:   controller.ViewCondition(a.Status.Conditions, addonv1alpha1.ConditionResolved),
		applied:    controller.ViewCondition(a.Status.Conditions, addonv1alpha1.ConditionManifestApplied),
		references: install.DesiredFingerprint(a),
		supported:  len(a.Status.SupportedConfigs),
	}
}

// reachedView holds the fields of an Instance that the rollout of its add-on depends on.
type reachedView struct {
	generation int64
	version    types.UID
	ready      controller.ConditionView
	soaked     controller.ConditionView
}

func viewReached(i *kudo.Instance) reachedView {
	view := reachedView{
		generation: i.Generation, ready: controller.ViewCondition(i.Status.Conditions, kudo.ConditionReady),
		soaked: controller.ViewCondition(i.Status.Conditions, kudo.ConditionSoaked),
	}
	if i.Status.Execution != nil {
		view.version = i.Status.Execution.OperatorVersion.UID
	}
	return view
}
