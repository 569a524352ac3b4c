package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	work "open-cluster-management.io/api/work/v1"
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
	"github.com/tandem-addons/tandem/pkg/install"
)

// rollouts tell OCM's addon-manager how far the configuration of each add-on that runs by plans has got, so that it can roll a change
// out: it goes on to the next clusters when the first ones have got there. OCM reads that off a ManifestWork of the add-on's, which is
// annotated with the configuration and says that what it holds is there. Of such an add-on it is a mark and nothing else: it brings
// nothing.
type rollouts struct {
	client client.Client
	// addOns read what an add-on is judged by.
	addOns *addOns
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
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, controller.Mapped(r.defined), builder.WithPredicates(controller.Changed(viewDefinition), controller.AfterStart())).
		Watches(&kudo.Instance{}, controller.Mapped(r.addOns.namesakes), builder.WithPredicates(controller.Changed(viewReached), controller.AfterStart())).
		Watches(&kudo.OperatorVersion{}, controller.Mapped(r.addOns.configuredWith(addonv1alpha1.ResourceOperatorVersions)),
			builder.WithPredicates(controller.Existence(), controller.AfterStart())).
		Watches(&addonv1alpha1.AddOnDeploymentConfig{}, controller.Mapped(r.addOns.configuredWith(addonv1alpha1.ResourceAddOnDeploymentConfigs)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}, controller.AfterStart())).
		WatchesRawSource(source.Kind(r.marks, manifestWork(), marked)).
		Complete(r)
}

var manifestWorkKind = schema.GroupVersionKind{Group: work.GroupName, Version: "v1", Kind: "ManifestWork"}

// manifestWork is a ManifestWork of which only the metadata is read.
func manifestWork() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(manifestWorkKind)
	return object
}

// newMarks is a cache of the marks' metadata.
func newMarks(mgr manager.Manager) (cache.Cache, error) {
	return cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultTransform: forget, DefaultLabelSelector: labels.SelectorFromSet(labels.Set{labelPartOf: partOfTandem}),
	})
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
	definition, err := definitionOf(ctx, r.client, addOn.Name)
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
	state, err := r.addOns.gather(ctx, definition, addOn)
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

// marked is what a mark says of the add-on. One that was left by an add-on of the same name says nothing: it stands until OCM's work
// agent lets it go, on a cluster out of reach for long.
func marked(mark *metav1.PartialObjectMetadata, addOn *addonv1alpha1.ManagedClusterAddOn) string {
	if mark == nil || !metav1.IsControlledBy(mark, addOn) {
		return ""
	}
	return mark.Annotations[work.ManifestConfigSpecHashAnnotationKey]
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

// asRead makes operations apply to the object only as it was read: they find things by their place in lists that are not theirs.
func asRead(object client.Object, operations []apply.Operation) []apply.Operation {
	if len(operations) == 0 {
		return nil
	}
	test := apply.Operation{Op: "test", Path: "/metadata/resourceVersion", Value: object.GetResourceVersion()}
	return append([]apply.Operation{test}, operations...)
}

func markName(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	return "addon-" + addOn.Name + "-plan"
}

// markOf is the mark of an add-on: a ManifestWork that looks whether Instances are defined on the cluster, and neither makes nor removes
// anything. They are where an Instance runs, and OCM's work agent may read resource definitions without being given more rights, also
// while addon-agent is being taken away, which the mark must not outlive. It goes with the add-on. Without a configuration it says that
// none has reached the cluster.
func markOf(addOn *addonv1alpha1.ManagedClusterAddOn, configuration string) (*unstructured.Unstructured, error) {
	owner := metav1.NewControllerRef(addOn, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))
	owner.BlockOwnerDeletion = nil
	reference, err := runtime.DefaultUnstructuredConverter.ToUnstructured(owner)
	if err != nil {
		return nil, fmt.Errorf("encoding the mark of ManagedClusterAddOn %s: %w", client.ObjectKeyFromObject(addOn), err)
	}
	const instances = "instances." + addonv1alpha1.GroupKudo
	mark := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"ownerReferences": []any{reference}},
		"spec": map[string]any{
			"workload": map[string]any{"manifests": []any{map[string]any{
				"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": instances},
			}}},
			"manifestConfigs": []any{map[string]any{
				"resourceIdentifier": map[string]any{
					"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "name": instances,
				},
				"updateStrategy": map[string]any{"type": string(work.UpdateStrategyTypeReadOnly)},
			}},
		},
	}}
	mark.SetGroupVersionKind(manifestWorkKind)
	mark.SetNamespace(addOn.Namespace)
	mark.SetName(markName(addOn))
	mark.SetLabels(map[string]string{labelPartOf: partOfTandem, upstream.AddonLabelKey: addOn.Name})
	if configuration != "" {
		mark.SetAnnotations(map[string]string{work.ManifestConfigSpecHashAnnotationKey: configuration})
	}
	return mark, nil
}

func (r *rollouts) defined(ctx context.Context, definition client.Object) ([]reconcile.Request, error) {
	return addOnsNamed(ctx, r.client, definition.GetName())
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

// configurationHashes fill in, where OCM's addon-manager names the configs of add-ons that run by plans, what they are hashed to, so that
// it sees their changes: on the definition, for that is where a rollout begins. Of other add-ons addon-framework does so.
type configurationHashes struct {
	client client.Client
}

func (h *configurationHashes) SetUp(mgr manager.Manager) error {
	return controller.New(mgr, "configuration-hash", controller.Options{}).
		For(&addonv1alpha1.ClusterManagementAddOn{}, builder.WithPredicates(controller.Changed(viewHashed))).
		Watches(&kudo.OperatorVersion{}, controller.Mapped(h.configuredWith(addonv1alpha1.ResourceOperatorVersions)),
			builder.WithPredicates(controller.Existence(), controller.AfterStart())).
		Watches(&addonv1alpha1.AddOnDeploymentConfig{}, controller.Mapped(h.configuredWith(addonv1alpha1.ResourceAddOnDeploymentConfigs)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}, controller.AfterStart())).
		Complete(h)
}

func (h *configurationHashes) configuredWith(resource string) func(context.Context, client.Object) ([]reconcile.Request, error) {
	return func(ctx context.Context, object client.Object) ([]reconcile.Request, error) {
		key := client.MatchingFields{byConfig: configKey(resource, client.ObjectKeyFromObject(object))}
		var definitions addonv1alpha1.ClusterManagementAddOnList
		if err := h.client.List(ctx, &definitions, key, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing ClusterManagementAddOns configured with %s: %w", resource, err)
		}
		requests := make([]reconcile.Request, 0, len(definitions.Items))
		for i := range definitions.Items {
			requests = append(requests, requestFor(&definitions.Items[i]))
		}
		return requests, nil
	}
}

// Reconcile fills in the hashes of one definition.
func (h *configurationHashes) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	definition, err := definitionOf(ctx, h.client, request.Name)
	if err != nil || !install.RunsByPlans(definition) {
		return ctrl.Result{}, err
	}
	var operations []apply.Operation
	var failed []error
	for path, desired := range hashedConfigs(definition) {
		hash, err := h.hash(ctx, desired.ConfigGroupResource, desired.DesiredConfig.ConfigReferent)
		failed = append(failed, err)
		if hash != "" && hash != desired.DesiredConfig.SpecHash {
			operations = append(operations, apply.Operation{Op: "add", Path: path + "/desiredConfig/specHash", Value: hash})
		}
	}
	if len(operations) > 0 {
		target := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: *definition.ObjectMeta.DeepCopy()} // what was read is the cache's
		failed = append(failed,
			apply.PatchStatus(ctx, h.client, target, asRead(definition, operations), client.FieldOwner(ManagerRollout)))
	}
	return controller.RetryConflict(errors.Join(failed...))
}

// hash is that of a configuration object; empty where there is none, or none that runs by plans take.
func (h *configurationHashes) hash(ctx context.Context, resource upstream.ConfigGroupResource, referent upstream.ConfigReferent) (string, error) {
	name := types.NamespacedName(referent)
	switch resource.Resource {
	case addonv1alpha1.ResourceOperatorVersions:
		version, err := versionAt(ctx, h.client, name)
		if err != nil || version == nil {
			return "", err
		}
		return install.VersionHash(version), nil
	case addonv1alpha1.ResourceAddOnDeploymentConfigs:
		config := &addonv1alpha1.AddOnDeploymentConfig{}
		if err := h.client.Get(ctx, name, config); err != nil {
			return "", client.IgnoreNotFound(fmt.Errorf("reading AddOnDeploymentConfig %s: %w", name, err))
		}
		return install.DeploymentConfigHash(config), nil
	default:
		return "", nil
	}
}

// hashedConfigs are the configs that OCM names in a definition's status, by their place in it.
func hashedConfigs(definition *addonv1alpha1.ClusterManagementAddOn) map[string]upstream.DefaultConfigReference {
	found := map[string]upstream.DefaultConfigReference{}
	for i, reference := range definition.Status.DefaultConfigReferences {
		if reference.DesiredConfig != nil {
			found[fmt.Sprintf("/status/defaultconfigReferences/%d", i)] = reference
		}
	}
	for i, progression := range definition.Status.InstallProgressions {
		for j, reference := range progression.ConfigReferences {
			if reference.DesiredConfig != nil {
				found[fmt.Sprintf("/status/installProgressions/%d/configReferences/%d", i, j)] = upstream.DefaultConfigReference{
					ConfigGroupResource: reference.ConfigGroupResource, DesiredConfig: reference.DesiredConfig,
				}
			}
		}
	}
	return found
}

// hashedView is what matters of a ClusterManagementAddOn to the hashes of its configs.
type hashedView struct {
	declaration declarationView
	configs     string
}

func viewHashed(d *addonv1alpha1.ClusterManagementAddOn) hashedView {
	var configs []string
	for path, config := range hashedConfigs(d) {
		configs = append(configs, fmt.Sprint(path, config.ConfigGroupResource, *config.DesiredConfig))
	}
	slices.Sort(configs)
	return hashedView{declaration: viewDeclaration(d), configs: strings.Join(configs, "\n")}
}
