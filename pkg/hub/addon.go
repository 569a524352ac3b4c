package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/controller"
	"github.com/tandem-addons/tandem/pkg/dependency"
	"github.com/tandem-addons/tandem/pkg/install"
)

// addOns gives every add-on that runs by plans its Instance, keeps it up to date, and lets the add-on go only after it.
type addOns struct {
	client            client.Client
	live              client.Reader // not from the cache
	recorder          events.EventRecorder
	packagesNamespace string
	circles           *circles
	// written are the add-ons' last writes, applied those of their Instances.
	written, applied *controller.Writes
}

func (a *addOns) SetUp(mgr manager.Manager) error {
	return controller.New(mgr, "addon", controller.Options{}).
		For(&addonv1alpha1.ManagedClusterAddOn{}, builder.WithPredicates(controller.Changed(viewAddOn))).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, controller.Mapped(a.dependants),
			builder.WithPredicates(controller.Changed(viewDependedOn), controller.AfterStart())).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, a.circles.follow(a.client), builder.WithPredicates(controller.Changed(viewDefinition))).
		Watches(&kudo.Instance{}, controller.Mapped(a.namesakes), builder.WithPredicates(controller.Changed(viewInstance))).
		Watches(&kudo.OperatorVersion{}, controller.Mapped(a.configuredWith(addonv1alpha1.ResourceOperatorVersions)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&addonv1alpha1.AddOnDeploymentConfig{}, controller.Mapped(a.configuredWith(addonv1alpha1.ResourceAddOnDeploymentConfigs)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(managedCluster(), controller.Mapped(a.onCluster), builder.WithPredicates(controller.DeletionBegun())).
		Complete(a)
}

// Reconcile brings one add-on's Instance, on one cluster, to what its configuration says.
func (a *addOns) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	addOn, err := a.current(ctx, request.NamespacedName)
	if err != nil || addOn == nil {
		return ctrl.Result{}, err
	}
	// Where the cache does not have the last write yet, it would be repeated. As a rule its own event leads here again.
	if wait := a.written.Awaits(addOn); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	defer a.written.NoteSince(addOn, addOn.ResourceVersion)
	if !addOn.DeletionTimestamp.IsZero() {
		return controller.RetryConflict(a.remove(ctx, addOn))
	}
	definition, err := definitionOf(ctx, a.client, addOn.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	state, err := a.gather(ctx, definition, addOn)
	if err != nil {
		return ctrl.Result{}, err
	}
	decision := install.Decide(state)
	refused := a.act(ctx, state, decision.Instance)
	switch {
	case apierrors.IsForbidden(refused), apierrors.IsInvalid(refused):
		decision = decision.Refused(addOn, refused)
	case refused != nil:
		return controller.RetryConflict(refused)
	}
	wrote, err := a.commit(ctx, state, decision)
	if wrote {
		a.tell(addOn, decision.Resolved)
	}
	return controller.RetryConflict(errors.Join(refused, err))
}

// current is the add-on as the cache has it; nil where there is none.
func (a *addOns) current(ctx context.Context, name types.NamespacedName) (*addonv1alpha1.ManagedClusterAddOn, error) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	err := a.client.Get(ctx, name, addOn)
	if apierrors.IsNotFound(err) {
		a.written.Forget(name)
		a.applied.Forget(name)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ManagedClusterAddOn %s: %w", name, err)
	}
	return addOn, nil
}

// gather reads everything that matters about the add-on; definition is nil where there is none.
func (a *addOns) gather(
	ctx context.Context, definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn,
) (install.AddOn, error) {
	state := install.AddOn{Definition: definition, ManagedAddOn: addOn}
	var err error
	if !install.RunsByPlans(definition) {
		state.Instances, err = instancesNamed(ctx, a.client, client.ObjectKeyFromObject(addOn))
		return state, err
	}
	managed, err := isManaged(ctx, a.client, addOn.Namespace)
	if err != nil {
		return state, err
	}
	state.Unmanaged = !managed
	state.Configuration = install.Configure(definition, addOn, a.packagesNamespace)
	state.DeploymentConfigs = map[types.NamespacedName]*addonv1alpha1.AddOnDeploymentConfig{}
	if len(state.Configuration.Obstacles) == 0 {
		if state.Version, err = versionAt(ctx, a.client, state.Configuration.OperatorVersion); err != nil {
			return state, err
		}
		for _, name := range state.Configuration.DeploymentConfigs {
			config := &addonv1alpha1.AddOnDeploymentConfig{}
			if err := a.client.Get(ctx, name, config); err == nil {
				state.DeploymentConfigs[name] = config
			} else if !apierrors.IsNotFound(err) {
				return state, fmt.Errorf("reading AddOnDeploymentConfig %s: %w", name, err)
			}
		}
	}
	if state.Instances, err = instancesOn(ctx, a.client, addOn.Namespace); err != nil {
		return state, err
	}
	needs, fault := dependency.Declared(definition)
	seen, err := see(ctx, a.client, addOn.Namespace, needs, a.circles.of(addOn.Name))
	// The gate judges what is seen now, not what the add-on's own condition says: no previous verdict is held.
	state.Dependencies, state.DependencyFault = dependency.Evaluate(needs, seen, nil), fault
	return state, err
}

// act writes the Instance as it is wanted, after the finalizer that keeps the add-on until the Instance is gone.
func (a *addOns) act(ctx context.Context, state install.AddOn, want *kudo.Instance) error {
	if want == nil {
		return nil
	}
	if err := controller.Hold(ctx, a.client, state.ManagedAddOn, kudo.Finalizer, ManagerAddOn); err != nil {
		return err
	}
	options := []client.ApplyOption{client.FieldOwner(ManagerAddOn)}
	configuration, err := instanceConfiguration(want)
	if err != nil {
		return err
	}
	switch current := state.OwnInstance(); {
	case current == nil:
		if err := a.absent(ctx, want); err != nil {
			return err
		}
	case install.Matches(current, want):
		return nil
	case a.applied.Awaits(current) > 0:
		return unknownToCache(want, "it was applied already")
	default:
		configuration.SetUID(current.UID)
		options = append(options, client.ForceOwnership)
	}
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration), options...); err != nil {
		return fmt.Errorf("applying Instance %s: %w", client.ObjectKeyFromObject(want), err)
	}
	a.applied.Note(configuration)
	return nil
}

// absent makes sure, past the cache, that no Instance of that name stands before the first apply, which would take over a user's
// wherever the two do not differ. One that stands is a conflict: the next look, once the cache has it, says whose it is. What
// remains is the moment between this look and the apply, which is not forced and so conflicts with every value that differs.
func (a *addOns) absent(ctx context.Context, want *kudo.Instance) error {
	err := a.live.Get(ctx, client.ObjectKeyFromObject(want), &kudo.Instance{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Instance %s: %w", client.ObjectKeyFromObject(want), err)
	}
	return unknownToCache(want, "it exists already")
}

// unknownToCache is the conflict that what is known of an Instance is behind what was done.
func unknownToCache(instance *kudo.Instance, what string) error {
	resource := schema.GroupResource{Group: kudo.GroupVersion.Group, Resource: "instances"}
	return apierrors.NewConflict(resource, instance.Name, errors.New(what+", unknown to the cache"))
}

// instanceConfiguration is what the hub applies of an add-on's Instance.
func instanceConfiguration(want *kudo.Instance) (*unstructured.Unstructured, error) {
	owner, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want.OwnerReferences[0])
	if err != nil {
		return nil, fmt.Errorf("encoding Instance %s: %w", client.ObjectKeyFromObject(want), err)
	}
	parameters := make(map[string]any, len(want.Spec.Parameters))
	for name, value := range want.Spec.Parameters {
		parameters[name] = value
	}
	spec := map[string]any{
		"operatorVersion": map[string]any{
			"namespace": want.Spec.OperatorVersion.Namespace,
			"name":      want.Spec.OperatorVersion.Name,
		},
		"parameters": parameters, // also when there are none: the hub's word holds
	}
	if want.Spec.InstallNamespace != "" {
		spec["installNamespace"] = want.Spec.InstallNamespace
	}
	if want.Spec.ServiceAccountName != "" {
		spec["serviceAccountName"] = want.Spec.ServiceAccountName
	}
	configuration := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"ownerReferences": []any{owner}},
		"spec":     spec,
	}}
	configuration.SetGroupVersionKind(kudo.GroupVersion.WithKind("Instance"))
	configuration.SetNamespace(want.Namespace)
	configuration.SetName(want.Name)
	return configuration, nil
}

// commit sets the condition Resolved, if there is anything new to say, and the health check mode that keeps OCM's klusterlet from
// writing Available; or it gives both up. An add-on that Tandem has nothing to do with stays as it is.
func (a *addOns) commit(ctx context.Context, state install.AddOn, decision install.Decision) (bool, error) {
	addOn, want := state.ManagedAddOn, decision.Resolved
	current := addOn.Status.Conditions
	switch {
	case decision.Release:
		err := a.giveUp(ctx, addOn)
		return err == nil, err
	case want == nil && !install.RunsByPlans(state.Definition):
		return false, nil
	}
	fields := map[string]any{"healthCheck": map[string]any{"mode": string(upstream.HealthCheckModeCustomized)}}
	dirty := addOn.Status.HealthCheck.Mode != upstream.HealthCheckModeCustomized
	if want == nil { // what this field manager does not apply, it gives up
		want = meta.FindStatusCondition(current, addonv1alpha1.ConditionResolved)
	}
	if want != nil {
		settled, changed := apply.Settle(current, *want, time.Now())
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
	err := apply.Status(ctx, a.client, addOn, ManagerResolved, fields)
	return err == nil, err
}

// giveUp removes what ManagerResolved has written.
func (a *addOns) giveUp(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	current := addOn.Status.Conditions
	stored := meta.FindStatusCondition(current, addonv1alpha1.ConditionResolved)
	operations := apply.Release(current, addonv1alpha1.ConditionResolved, stored.Reason)
	return apply.PatchStatus(ctx, a.client, addOn, append(operations, uncustomized(addOn)...))
}

// uncustomized gives the health check mode back to OCM's klusterlet, as part of a status patch.
func uncustomized(addOn *addonv1alpha1.ManagedClusterAddOn) []apply.Operation {
	mode := addOn.Status.HealthCheck.Mode
	if mode != upstream.HealthCheckModeCustomized {
		return nil
	}
	return []apply.Operation{
		{Op: "test", Path: "/status/healthCheck/mode", Value: mode},
		{Op: "remove", Path: "/status/healthCheck"},
	}
}

// tell makes an event of a condition Resolved that was written, where it says something else than the one before.
func (a *addOns) tell(addOn *addonv1alpha1.ManagedClusterAddOn, now *metav1.Condition) {
	before := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved)
	if now == nil || before != nil && before.Reason == now.Reason && before.Message == now.Message {
		return
	}
	eventType := corev1.EventTypeWarning
	if now.Status == metav1.ConditionTrue || strings.HasPrefix(now.Reason, "WaitingFor") {
		eventType = corev1.EventTypeNormal
	}
	a.recorder.Eventf(addOn, nil, eventType, now.Reason, actionResolve, "%s", controller.Note(now.Message))
}

// remove deletes the add-on's Instance and lets the add-on go once the Instance is gone. Where the cluster is detached, the Instance
// is let go of first: it vanishes without a deletion that the agent could see and carry out.
func (a *addOns) remove(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	if !controllerutil.ContainsFinalizer(addOn, kudo.Finalizer) {
		return nil
	}
	var instance kudo.Instance
	// Read past the cache, which may not know of an Instance yet that was made a moment ago.
	err := a.live.Get(ctx, client.ObjectKeyFromObject(addOn), &instance)
	if apierrors.IsNotFound(err) || err == nil && !install.OwnedBy(&instance, addOn) {
		return controller.Release(ctx, a.client, addOn, kudo.Finalizer)
	}
	if err != nil {
		return fmt.Errorf("reading Instance %s: %w", client.ObjectKeyFromObject(addOn), err)
	}
	if !instance.DeletionTimestamp.IsZero() {
		return nil
	}
	detached, err := isDetached(ctx, a.live, addOn.Namespace)
	if err != nil {
		return err
	}
	if detached {
		if err := releaseTree(ctx, a.client, &instance); err != nil {
			return err
		}
	}
	preconditions := client.Preconditions{UID: &instance.UID, ResourceVersion: &instance.ResourceVersion}
	if err := a.client.Delete(ctx, &instance, preconditions); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("deleting Instance %s: %w", client.ObjectKeyFromObject(&instance), err))
	}
	return nil
}

func (a *addOns) dependants(ctx context.Context, addOn client.Object) ([]reconcile.Request, error) {
	return dependantsOf(ctx, a.client, addOn)
}

// onCluster are the add-ons of a managed cluster.
func (a *addOns) onCluster(ctx context.Context, cluster client.Object) ([]reconcile.Request, error) {
	var found addonv1alpha1.ManagedClusterAddOnList
	if err := a.client.List(ctx, &found, client.InNamespace(cluster.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ManagedClusterAddOns in %q: %w", cluster.GetName(), err)
	}
	requests := make([]reconcile.Request, 0, len(found.Items))
	for i := range found.Items {
		requests = append(requests, requestFor(&found.Items[i]))
	}
	return requests, nil
}

// namesakes are the add-ons whose Instance is, or would be, of the changed Instance's name on the managed cluster.
func (a *addOns) namesakes(ctx context.Context, instance client.Object) ([]reconcile.Request, error) {
	var found addonv1alpha1.ManagedClusterAddOnList
	err := a.client.List(ctx, &found, client.InNamespace(instance.GetNamespace()), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing ManagedClusterAddOns in %q: %w", instance.GetNamespace(), err)
	}
	var requests []reconcile.Request
	for i := range found.Items {
		if install.Dashed(found.Items[i].Name) == install.Dashed(instance.GetName()) {
			requests = append(requests, requestFor(&found.Items[i]))
		}
	}
	return requests, nil
}

// configuredWith finds the add-ons whose configuration may lead to a changed object of that resource.
func (a *addOns) configuredWith(resource string) func(context.Context, client.Object) ([]reconcile.Request, error) {
	return func(ctx context.Context, object client.Object) ([]reconcile.Request, error) {
		key := client.MatchingFields{byConfig: configKey(resource, client.ObjectKeyFromObject(object))}
		var addOns addonv1alpha1.ManagedClusterAddOnList
		if err := a.client.List(ctx, &addOns, key, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing ManagedClusterAddOns configured with %s: %w", resource, err)
		}
		var definitions addonv1alpha1.ClusterManagementAddOnList
		if err := a.client.List(ctx, &definitions, key, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing ClusterManagementAddOns configured with %s: %w", resource, err)
		}
		var requests []reconcile.Request
		for i := range addOns.Items {
			requests = append(requests, requestFor(&addOns.Items[i]))
		}
		for i := range definitions.Items {
			named, err := addOnsNamed(ctx, a.client, definitions.Items[i].Name)
			if err != nil {
				return nil, err
			}
			requests = append(requests, named...)
		}
		return requests, nil
	}
}

// addOnView is what matters of a ManagedClusterAddOn to the add-on controller.
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
		references: install.Desired(a),
	}
}

// definitionView is what matters of a ClusterManagementAddOn to the add-on controller.
type definitionView struct {
	declaration declarationView
	managed     bool
}

func viewDefinition(d *addonv1alpha1.ClusterManagementAddOn) definitionView {
	return definitionView{
		declaration: viewDeclaration(d),
		managed:     len(d.Status.DefaultConfigReferences)+len(d.Status.InstallProgressions) > 0,
	}
}
