package hub

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/keymutex"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/author"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// addOns creates and updates the Instance of every plan-based add-on, and releases the add-on only after its Instance is removed.
type addOns struct {
	reader    *read.AddOns
	client    client.Client
	live      client.Reader // bypasses the cache
	liveReads *liveReads
	recorder  events.EventRecorder
	// written tracks the last writes of add-ons, applied those of their Instances.
	written, applied *controller.Writes
	pace             *controller.Pace
	// starting serializes changes of versions on a cluster: each is decided by what runs after the one before. The cache lacks that for a time, after which
	// the delays are.
	starting keymutex.KeyMutex
	delays   workqueue.TypedRateLimiter[types.NamespacedName]
}

func (a *addOns) SetUp(mgr manager.Manager) error {
	return controller.New(mgr, "addon", controller.Options{}).
		For(&addonv1alpha1.ManagedClusterAddOn{}, builder.WithPredicates(a.pace.OnSpecChange(), controller.ChangeIn(viewAddOn))).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, controller.EnqueueFrom(a.dependents),
			builder.WithPredicates(controller.ChangeIn(read.ViewDependedOn), controller.AfterStart())).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, controller.EnqueueFrom(a.removedBeside),
			builder.WithPredicates(controller.DeletionStart(), controller.AfterStart())).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, controller.EnqueueFrom(a.removedWith),
			builder.WithPredicates(controller.ChangeIn(read.ViewDeclaration), controller.AfterStart())).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, a.pace.Before(a.reader.Cycles.Follow(a.client), a.addOnsOf),
			builder.WithPredicates(controller.ChangeIn(read.ViewDefinition))).
		Watches(&kudo.Instance{}, controller.EnqueueFrom(a.reader.Namesakes), builder.WithPredicates(controller.ChangeIn(read.ViewInstance))).
		Watches(&kudo.Instance{}, controller.EnqueueFrom(a.waitersOn), builder.WithPredicates(controller.ChangeIn(read.ViewOrder), controller.AfterStart())).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, controller.EnqueueFrom(a.waitersOn),
			builder.WithPredicates(controller.ChangeIn(viewConfigured), controller.AfterStart())).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, controller.EnqueueFrom(a.waiters),
			builder.WithPredicates(controller.ChangeIn(read.ViewDefinition), controller.AfterStart())).
		Watches(&kudo.OperatorVersion{}, controller.EnqueueFrom(a.waiters), builder.WithPredicates(controller.Existence(), controller.AfterStart())).
		Watches(&kudo.OperatorVersion{}, controller.EnqueueFrom(a.reader.ConfiguredWith(addonv1alpha1.ResourceOperatorVersions)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&addonv1alpha1.AddOnDeploymentConfig{}, a.pace.EnqueueFrom(a.reader.ConfiguredWith(addonv1alpha1.ResourceAddOnDeploymentConfigs)),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, controller.ChangeIn(read.ViewWindows),
				controller.ChangeIn(read.ViewHealthyFor), controller.ChangeIn(read.ViewOnFailure)))).
		Watches(&corev1.ConfigMap{}, a.pace.EnqueueFrom(a.reader.ConfiguredWith(addonv1alpha1.ResourceConfigMaps)),
			builder.WithPredicates(controller.ChangeIn(read.ViewConfigMap))).
		Watches(&clusterv1.ManagedCluster{}, controller.EnqueueFrom(a.reader.OnCluster), builder.WithPredicates(controller.DeletionStart())).
		Watches(&clusterv1.ManagedCluster{}, controller.EnqueueFrom(a.reader.Cycles.OnClusterChange(a.client)),
			builder.WithPredicates(controller.ChangeIn(read.ViewSelected), controller.AfterStart())).
		Watches(&clusterv1.ManagedCluster{}, controller.EnqueueFrom(a.reader.ConfiguredFrom),
			builder.WithPredicates(controller.Existence(), controller.AfterStart())).
		WatchesMetadata(read.Namespace(), controller.EnqueueFrom(a.reader.ConfiguredFrom),
			builder.WithPredicates(controller.ChangeIn(read.ViewNamespace), controller.AfterStart())).
		Watches(&kudo.OperatorVersion{}, controller.EnqueueFrom(a.reader.Doubts.All), builder.WithPredicates(controller.Existence(), controller.AfterStart())).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, controller.EnqueueFrom(a.reader.Doubts.All),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}, controller.AfterStart())).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, controller.EnqueueFrom(a.reader.Doubts.SharersOf),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}, controller.AfterStart())).
		Complete(&controller.Reconciler[*addonv1alpha1.ManagedClusterAddOn]{
			Client: a.client, Written: a.written, Forget: a.forget, ReconcileObject: a.Reconcile,
		})
}

// Reconcile brings the Instance of one add-on on one cluster to its desired state.
func (a *addOns) Reconcile(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (ctrl.Result, error) {
	if !addOn.DeletionTimestamp.IsZero() {
		delay, err := a.remove(ctx, addOn)
		if err != nil {
			return controller.RetryConflict(err)
		}
		return ctrl.Result{RequeueAfter: delay}, nil
	}
	definition, err := read.Definition(ctx, a.client, addOn.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	state, err := a.reader.Gather(ctx, definition, addOn)
	if err != nil {
		return ctrl.Result{}, err
	}
	decision := install.Decide(state)
	if decision.Instance != nil && install.ChangesVersion(state) {
		a.starting.LockKey(addOn.Namespace)
		defer func() { _ = a.starting.UnlockKey(addOn.Namespace) }() // it is locked
	}
	if err := a.checkLive(ctx, state, decision.Instance); err != nil {
		return controller.RetryConflict(err)
	}
	refused := a.act(ctx, state, decision.Instance)
	switch {
	case isRefusal(refused):
		decision = withRefusal(decision, addOn, refused)
	case refused != nil:
		return controller.RetryConflict(refused)
	}
	wrote, err := a.commit(ctx, state, decision)
	if wrote {
		a.emit(addOn, decision)
	}
	return controller.RetryConflict(errors.Join(refused, err))
}

// isRefusal reports whether the API server does not accept an Instance as it is.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || isUndeclared(err)
}

// withRefusal returns a decision after the API server has refused the desired Instance.
func withRefusal(decision install.Decision, addOn *addonv1alpha1.ManagedClusterAddOn, err error) install.Decision {
	if isUndeclared(err) {
		return decision.WithUndeclaredField(addOn, err)
	}
	return decision.WithRejection(addOn, err)
}

// forget drops what is remembered of an add-on that does not exist.
func (a *addOns) forget(name types.NamespacedName) {
	a.delays.Forget(name)
	a.applied.Forget(name)
	a.reader.Doubts.Forget(name)
}

// act sets the finalizer that keeps the add-on until the Instance is removed, and then applies the desired Instance.
func (a *addOns) act(ctx context.Context, state install.AddOn, want *kudo.Instance) error {
	if want == nil {
		return nil
	}
	if err := controller.AddFinalizer(ctx, a.client, state.ManagedAddOn, kudo.Finalizer, ManagerAddOn); err != nil {
		return err
	}
	options, current := []client.ApplyOption{client.FieldOwner(ManagerAddOn)}, state.OwnInstance()
	switch {
	case current == nil:
		if err := a.checkAbsent(ctx, state.ManagedAddOn, want); err != nil {
			return err
		}
	case install.IsApplied(current, want):
		return nil
	case a.applied.WaitTime(current) > 0:
		return staleCacheConflict(want, "already applied")
	default:
		options = append(options, client.ForceOwnership)
	}
	configuration, err := a.configurationOf(ctx, state, want)
	if err != nil {
		return err
	}
	err = applyWithAuthor(configuration, func() error {
		return a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration), options...)
	})
	if err != nil {
		return fmt.Errorf("applying Instance %s: %w", client.ObjectKeyFromObject(want), err)
	}
	a.applied.Note(configuration)
	return nil
}

// configurationOf returns the apply configuration of the desired Instance with its author.
func (a *addOns) configurationOf(ctx context.Context, state install.AddOn, want *kudo.Instance) (*unstructured.Unstructured, error) {
	current, authored := state.OwnInstance(), want.DeepCopy()
	var err error
	if authored.Spec.ChangedBy, err = a.authorOf(ctx, state, want); err != nil {
		return nil, err
	}
	configuration, err := instanceConfiguration(current, authored)
	if err == nil && current != nil {
		configuration.SetUID(current.UID)
	}
	return configuration, err
}

// authorOf returns who has changed an add-on's Instance to the desired one: the last writer of the objects that may be the origin; nil if it is not known.
func (a *addOns) authorOf(ctx context.Context, state install.AddOn, want *kudo.Instance) (*kudo.ChangeAuthor, error) {
	own := state.OwnInstance()
	origin, objects := install.OriginOf(own, want), []client.Object{state.Definition, state.ManagedAddOn}
	switch origin {
	case install.OriginNone:
		return own.Spec.ChangedBy, nil
	case install.OriginEnabling:
		objects = objects[1:]
	case install.OriginAny:
		objects = append(read.ParametersOf(state), objects...)
	}
	found := make([]kudo.ChangeAuthor, len(objects))
	for i, object := range objects {
		writers, err := a.liveReads.writersOf(ctx, object)
		if err != nil {
			return nil, err
		}
		if found[i] = writers.Values; origin == install.OriginEnabling {
			found[i] = writers.Creation
		}
	}
	latest := author.Latest(found)
	if own != nil {
		latest = author.Newer(latest, own.Spec.ChangedBy, time.Now())
	}
	return author.With(latest, author.Values(install.VersionOf(want), want.Spec)), nil
}

// checkAbsent checks with a live read that no Instance of that name exists before the first apply, which would take over a user's Instance
// wherever the two agree. An existing Instance is a conflict: the next reconciliation, once the cache has it, determines its owner. A race
// remains between this read and the apply, but the apply is not forced and conflicts with every value that differs.
func (a *addOns) checkAbsent(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, want *kudo.Instance) error {
	err := a.live.Get(ctx, client.ObjectKeyFromObject(want), &kudo.Instance{})
	if apierrors.IsNotFound(err) {
		return a.checkEnabled(ctx, addOn, want)
	}
	if err != nil {
		return fmt.Errorf("reading Instance %s: %w", client.ObjectKeyFromObject(want), err)
	}
	return staleCacheConflict(want, "already exists")
}

// checkEnabled checks with a live read that an add-on that had an Instance before is not disabled: the cache may show the deletion of the
// Instance, but not yet that of the add-on. For other add-ons, the write of the finalizer has checked this.
func (a *addOns) checkEnabled(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, want *kudo.Instance) error {
	if !controllerutil.ContainsFinalizer(addOn, kudo.Finalizer) {
		return nil
	}
	current := &addonv1alpha1.ManagedClusterAddOn{}
	err := a.live.Get(ctx, client.ObjectKeyFromObject(addOn), current)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ManagedClusterAddOn %s: %w", client.ObjectKeyFromObject(addOn), err)
	}
	if err != nil || current.UID != addOn.UID || !current.DeletionTimestamp.IsZero() {
		return staleCacheConflict(want, "its add-on is disabled")
	}
	return nil
}

// checkLive returns a conflict if the desired Instance is about to be applied, and a cached object of the configuration is stale: an
// earlier process may have applied a newer one, which this apply would revert.
func (a *addOns) checkLive(ctx context.Context, state install.AddOn, want *kudo.Instance) error {
	if want == nil {
		a.delays.Forget(client.ObjectKeyFromObject(state.ManagedAddOn))
	}
	if own := state.OwnInstance(); want == nil || own != nil && (install.IsApplied(own, want) || a.applied.WaitTime(own) > 0) {
		return nil
	}
	objects := []client.Object{state.Definition, state.ManagedAddOn, state.Version}
	objects = append(objects, read.ParametersOf(state)...)
	for _, object := range objects {
		if err := a.liveReads.check(ctx, object); err != nil {
			return err
		}
	}
	return a.checkOrder(ctx, state, want)
}

// maxOrderDelay is the maximum time after which a change of a version is decided again that the cache allows, and a live read does not.
const maxOrderDelay = 5 * time.Second

// checkOrder returns an error if the version of the desired Instance is about to start, and what runs on the cluster by a live read excludes that. Whether
// anything may exclude it is not decided by what the cache says of other add-ons on the cluster. It returns a conflict if the cache lacks an add-on.
func (a *addOns) checkOrder(ctx context.Context, state install.AddOn, want *kudo.Instance) error {
	if !install.ChangesVersion(state) {
		return nil
	}
	dependents, err := read.ConstrainersOf(ctx, a.client, state.ManagedAddOn.Name)
	if err != nil {
		return err
	}
	needs := dependency.Needs(state.Definition)
	if len(dependents) == 0 && !dependency.HasConstraints(needs, dependency.ReleaseOf(state.Version)) {
		return nil
	}
	others := dependency.CandidatesOf(needs)
	for i := range dependents {
		if err := a.liveReads.check(ctx, &dependents[i]); err != nil {
			return err
		}
		others = append(others, dependents[i].Name)
	}
	instances := &kudo.InstanceList{}
	if err := a.live.List(ctx, instances, client.InNamespace(want.Namespace)); err != nil {
		return fmt.Errorf("listing Instances in %q: %w", want.Namespace, err)
	}
	state.Instances = instances.Items
	if err := a.checkCached(ctx, want.Namespace, instances.Items, others); err != nil {
		return err
	}
	if err := a.reader.Order(ctx, &state); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(want)
	if install.Decide(state).Instance == nil {
		return &controller.PostponedError{For: a.delays.When(key)}
	}
	a.delays.Forget(key)
	return nil
}

// checkCached returns a conflict if the cache lacks an add-on on a cluster that has one of the Instances, or is one of the others.
func (a *addOns) checkCached(ctx context.Context, cluster string, instances []kudo.Instance, others []string) error {
	others, err := read.WithoutPackage(ctx, a.client, others) // those with one have an Instance
	if err != nil {
		return err
	}
	return a.liveReads.checkAddOns(ctx, cluster, instances, others)
}

// commit updates the condition Resolved if it changed, and the health check mode that keeps OCM's klusterlet from writing Available; or it
// releases both. It leaves add-ons that Tandem does not manage unchanged. Right after a change of the add-on or its configuration, it
// returns a Postponed error instead.
func (a *addOns) commit(ctx context.Context, state install.AddOn, decision install.Decision) (bool, error) {
	addOn, want := state.ManagedAddOn, decision.Resolved
	current := addOn.Status.Conditions
	switch {
	case decision.Release:
		err := a.releaseStatus(ctx, addOn)
		return err == nil, err
	case want == nil && !install.IsPlanManaged(state.Definition):
		return false, nil
	}
	fields := map[string]any{"healthCheck": map[string]any{"mode": string(upstream.HealthCheckModeCustomized)}}
	dirty := addOn.Status.HealthCheck.Mode != upstream.HealthCheckModeCustomized
	if want == nil { // apply without the condition releases it
		want = meta.FindStatusCondition(current, addonv1alpha1.ConditionResolved)
	}
	if want != nil {
		settled, changed := apply.MergeCondition(current, *want, time.Now())
		condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&settled)
		if err != nil {
			return false, fmt.Errorf("encoding condition %s: %w", want.Type, err)
		}
		fields["conditions"] = []any{condition}
		dirty = dirty || changed
	}
	if !dirty {
		return false, nil
	}
	if err := a.pace.Allow(client.ObjectKeyFromObject(addOn)); err != nil {
		return false, err
	}
	err := apply.Status(ctx, a.client, addOn, ManagerResolved, fields)
	return err == nil, err
}

// releaseStatus removes all fields of ManagerResolved. Right after a change it returns a Postponed error instead.
func (a *addOns) releaseStatus(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	if err := a.pace.Allow(client.ObjectKeyFromObject(addOn)); err != nil {
		return err
	}
	current := addOn.Status.Conditions
	stored := meta.FindStatusCondition(current, addonv1alpha1.ConditionResolved)
	operations := apply.Release(current, addonv1alpha1.ConditionResolved, stored.Reason)
	return apply.PatchStatus(ctx, a.client, addOn, append(operations, apply.ReleaseHealthCheck(addOn)...))
}

// emit emits an event for a written condition Resolved that differs from the previous one, and for each new remark in it.
func (a *addOns) emit(addOn *addonv1alpha1.ManagedClusterAddOn, decision install.Decision) {
	before, now := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved), decision.Resolved
	if now == nil || before != nil && before.Reason == now.Reason && before.Message == now.Message {
		return
	}
	eventType := corev1.EventTypeWarning
	if now.Status == metav1.ConditionTrue || strings.HasPrefix(now.Reason, "WaitingFor") {
		eventType = corev1.EventTypeNormal
	}
	a.recorder.Eventf(addOn, nil, eventType, now.Reason, actionResolve, "%s", controller.TruncateNote(now.Message))
	for _, remark := range decision.Remarks {
		if before == nil || !strings.Contains(before.Message, remark) {
			a.recorder.Eventf(addOn, nil, corev1.EventTypeWarning, eventConfigurationIgnored, actionResolve, "%s", controller.TruncateNote(remark))
		}
	}
}

// remove deletes the add-on's Instance once it is the next in the order of removal, and releases the add-on once the Instance is removed. It returns a
// time after which to look again.
func (a *addOns) remove(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(addOn, kudo.Finalizer) {
		return 0, nil
	}
	var instance kudo.Instance
	// A live read, because the cache may lack an Instance that was just created.
	err := a.live.Get(ctx, client.ObjectKeyFromObject(addOn), &instance)
	if apierrors.IsNotFound(err) || err == nil && !install.OwnedBy(&instance, addOn) {
		return 0, controller.RemoveFinalizer(ctx, a.client, addOn, kudo.Finalizer)
	}
	if err != nil {
		return 0, fmt.Errorf("reading Instance %s: %w", client.ObjectKeyFromObject(addOn), err)
	}
	if !instance.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	return a.removeInstance(ctx, addOn, &instance)
}

func (a *addOns) addOnsOf(ctx context.Context, definition client.Object) ([]reconcile.Request, error) {
	return read.AddOnsNamed(ctx, a.client, definition.GetName())
}

func (a *addOns) waitersOn(ctx context.Context, object client.Object) ([]reconcile.Request, error) {
	return read.WaitersOn(ctx, a.client, object)
}

func (a *addOns) waiters(ctx context.Context, _ client.Object) ([]reconcile.Request, error) {
	return read.Waiters(ctx, a.client)
}

// viewConfigured returns what determines the version that an add-on is configured with.
func viewConfigured(a *addonv1alpha1.ManagedClusterAddOn) [2]string {
	return [2]string{strconv.FormatInt(a.Generation, 10), install.DesiredFingerprint(a)}
}

func (a *addOns) dependents(ctx context.Context, addOn client.Object) ([]reconcile.Request, error) {
	return read.DependentsOf(ctx, a.client, addOn)
}

// addOnView holds the fields of a ManagedClusterAddOn that the add-on controller depends on.
type addOnView struct {
	generation int64
	deleting   bool
	held       bool
	customized bool
	configured controller.ConditionView
	resolved   controller.ConditionView
	references string
}

func viewAddOn(a *addonv1alpha1.ManagedClusterAddOn) addOnView {
	return addOnView{
		generation: a.Generation,
		deleting:   !a.DeletionTimestamp.IsZero(),
		held:       controllerutil.ContainsFinalizer(a, kudo.Finalizer),
		customized: a.Status.HealthCheck.Mode == upstream.HealthCheckModeCustomized,
		configured: controller.ViewCondition(a.Status.Conditions, addonv1alpha1.ConditionConfigured),
		resolved:   controller.ViewCondition(a.Status.Conditions, addonv1alpha1.ConditionResolved),
		references: install.DesiredFingerprint(a),
	}
}
