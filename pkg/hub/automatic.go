package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// automatic enables the dependencies of add-ons that are declared with install Auto, and disables those that it has enabled once nothing depends on them
// any more. It decides for a whole cluster at a time.
type automatic struct {
	client    client.Client
	live      client.Reader // bypasses the cache
	liveReads *liveReads
	recorder  events.EventRecorder
	// remainders holds the last dependency.Remainder of each cluster ([]dependency.Remainder by its name): an event is emitted for new ones. Those that the
	// process finds at its start are old: nothing on the hub shows when they began.
	remainders sync.Map
}

func (a *automatic) SetUp(mgr manager.Manager) error {
	return controller.New(mgr, "automatic", controller.Options{}).
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(controller.ChangeIn(read.ViewSelected))).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, controller.EnqueueFrom(clusterOf),
			builder.WithPredicates(controller.ChangeIn(read.ViewAutomatic), controller.AfterStart())).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, controller.EnqueueFrom(a.clustersWith),
			builder.WithPredicates(controller.ChangeIn(read.ViewDeclaration), controller.AfterStart())).
		Complete(reconcile.Func(a.Reconcile))
}

// Reconcile enables and disables add-ons on one cluster.
func (a *automatic) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	state, err := read.Automatic(ctx, a.client, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if state == nil {
		a.remainders.Delete(request.Name)
		return ctrl.Result{}, nil
	}
	if err := a.emitRemainders(ctx, request.Name, state); err != nil {
		return ctrl.Result{}, err
	}
	next := dependency.AutomaticOf(state.On, state.Missing)
	if next.IsEmpty() {
		return ctrl.Result{}, nil
	}
	if detached, err := read.IsDetached(ctx, a.client, request.Name); detached || err != nil {
		return ctrl.Result{}, err
	}
	if err := a.checkLive(ctx, request.Name, state); err != nil {
		return controller.RetryConflict(err)
	}
	return controller.RetryConflict(a.act(ctx, state, next))
}

// emitRemainders emits an event for each add-on that stays enabled although a dependent has ceased to ask for it since the last reconciliation.
func (a *automatic) emitRemainders(ctx context.Context, cluster string, state *read.AutomaticState) error {
	found, known := a.remainders.Load(cluster)
	before, _ := found.([]dependency.Remainder)
	left := dependency.RemaindersOf(state.On, before)
	isNew := func(r dependency.Remainder) bool { return known && !slices.Contains(before, r) }
	if slices.ContainsFunc(left, isNew) {
		if detached, err := read.IsDetached(ctx, a.client, cluster); detached || err != nil {
			return err
		}
	}
	a.remainders.Store(cluster, left)
	for _, remainder := range left {
		if isNew(remainder) {
			a.recorder.Eventf(state.AddOns[remainder.For.Name], state.AddOns[remainder.Name], corev1.EventTypeNormal, eventDependencyKept, actionEnable,
				"add-on %s was enabled automatically for this add-on and stays enabled, although this add-on no longer requests it with install: Auto on this cluster; "+
					"it is disabled after this add-on is deleted, unless another add-on depends on it", remainder.Name)
		}
	}
	return nil
}

// checkLive returns a conflict if something on which the decision depends has changed since it was cached: an earlier process may have enabled an add-on that
// was disabled since.
func (a *automatic) checkLive(ctx context.Context, cluster string, state *read.AutomaticState) error {
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOnList"))
	if err := a.live.List(ctx, live, client.InNamespace(cluster)); err != nil {
		return fmt.Errorf("listing ManagedClusterAddOns in %q: %w", cluster, err)
	}
	same := len(live.Items) == len(state.AddOns)
	for i := range live.Items {
		cached := state.AddOns[live.Items[i].Name]
		same = same && cached != nil && read.ViewAutomatic(&live.Items[i]) == read.ViewAutomatic(cached)
	}
	if !same {
		return staleAddOn("", fmt.Errorf("those of cluster %q have changed since they were cached", cluster))
	}
	objects := []client.Object{}
	for _, name := range slices.Sorted(maps.Keys(state.Definitions)) {
		definition := state.Definitions[name]
		if definition == nil { // the cache may lack it
			definition = &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		objects = append(objects, definition)
	}
	managed := &clusterv1.ManagedCluster{}
	if err := a.client.Get(ctx, client.ObjectKey{Name: cluster}, managed); err != nil {
		return fmt.Errorf("reading ManagedCluster %q: %w", cluster, err)
	}
	for _, object := range append(objects, managed) {
		if err := a.liveReads.check(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// act enables and disables add-ons, and then notes for which dependents they are there. A refusal does not affect the other add-ons.
func (a *automatic) act(ctx context.Context, state *read.AutomaticState, next dependency.Automatic) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(next.Enable)) {
		err := a.enable(ctx, state, name, next.Enable[name])
		if err == nil {
			continue
		}
		problems = append(problems, err)
		for dependent := range next.With {
			next.With[dependent] = slices.DeleteFunc(next.With[dependent], func(n string) bool { return n == name })
		}
	}
	for _, name := range slices.Sorted(maps.Keys(state.AddOns)) {
		problems = append(problems, a.note(ctx, state.AddOns[name], next.For[name], next.With[name]))
	}
	for _, name := range next.Disable {
		problems = append(problems, a.disable(ctx, state.AddOns[name]))
	}
	return errors.Join(problems...)
}

// enable creates a ManagedClusterAddOn for dependents. One that runs a package is installed in the namespace of the first of them.
func (a *automatic) enable(ctx context.Context, state *read.AutomaticState, name string, askers []dependency.Asker) error {
	first := state.AddOns[askers[0].Name]
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	addOn.Namespace, addOn.Name = first.Namespace, name
	addOn.Annotations = map[string]string{addonv1alpha1.AnnotationInstalledFor: dependency.FormatAskers(askers)}
	if install.IsPlanManaged(state.Definitions[name]) && install.IsPlanManaged(state.Definitions[first.Name]) {
		addOn.Spec.InstallNamespace = first.Spec.InstallNamespace
	}
	err := a.client.Create(ctx, addOn, client.FieldOwner(ManagerAutomatic))
	for _, asker := range askers {
		dependent := state.AddOns[asker.Name]
		switch {
		case apierrors.IsAlreadyExists(err): // by the next pass, the cache has it
		case err != nil:
			a.recorder.Eventf(dependent, nil, corev1.EventTypeWarning, eventDependencyRefused, actionEnable, "%s",
				controller.TruncateNote(fmt.Sprintf("cannot enable %s, a dependency with install: Auto: %v", name, err)))
		default:
			a.recorder.Eventf(dependent, addOn, corev1.EventTypeNormal, eventDependencyEnabled, actionEnable, "enabled %s, a dependency with install: Auto", name)
		}
	}
	if apierrors.IsAlreadyExists(err) {
		return staleAddOn(name, errors.New("already exists, but not in the cache yet"))
	}
	if err != nil {
		return fmt.Errorf("enabling %s: %w", client.ObjectKeyFromObject(addOn), err)
	}
	return nil
}

// note writes the annotations of an add-on; without a value, one stays as it is.
func (a *automatic) note(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, askers []dependency.Asker, with []string) error {
	noted := map[string]string{}
	for name, value := range map[string]string{
		addonv1alpha1.AnnotationInstalledFor:  dependency.FormatAskers(askers),
		addonv1alpha1.AnnotationInstalledWith: dependency.FormatNames(with),
	} {
		if value = cmp.Or(value, addOn.Annotations[name]); value != "" { // apply removes what it omits
			noted[name] = value
		}
	}
	if maps.Equal(noted, addOn.Annotations) { // the cache has no others
		return nil
	}
	configuration := &unstructured.Unstructured{}
	configuration.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))
	configuration.SetNamespace(addOn.Namespace)
	configuration.SetName(addOn.Name)
	configuration.SetUID(addOn.UID)
	configuration.SetResourceVersion(addOn.ResourceVersion) // a user may have taken it over
	configuration.SetAnnotations(noted)
	err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration), client.FieldOwner(ManagerAutomatic), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("annotating ManagedClusterAddOn %s: %w", client.ObjectKeyFromObject(addOn), err)
	}
	return nil
}

// disable deletes an add-on that was enabled for dependents that are deleted.
func (a *automatic) disable(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	var names []string
	for _, asker := range dependency.ParseAskers(addOn.Annotations[addonv1alpha1.AnnotationInstalledFor]) {
		names = append(names, asker.Name)
	}
	err := a.client.Delete(ctx, addOn.DeepCopy(), client.Preconditions{UID: &addOn.UID, ResourceVersion: &addOn.ResourceVersion})
	if err != nil {
		return fmt.Errorf("disabling %s: %w", client.ObjectKeyFromObject(addOn), err)
	}
	a.recorder.Eventf(addOn, nil, corev1.EventTypeNormal, eventDependencyDisabled, actionDisable, "%s",
		controller.TruncateNote("disabled, because it was enabled automatically and nothing depends on it any more: it was enabled for "+strings.Join(names, ", ")))
	return nil
}

// clustersWith returns the clusters on which a changed definition matters.
func (a *automatic) clustersWith(ctx context.Context, definition client.Object) ([]reconcile.Request, error) {
	return read.ClustersWith(ctx, a.client, definition.(*addonv1alpha1.ClusterManagementAddOn))
}

// clusterOf returns the cluster of an add-on.
func clusterOf(_ context.Context, addOn client.Object) ([]reconcile.Request, error) {
	return []reconcile.Request{read.ClusterRequest(addOn.GetNamespace())}, nil
}

// staleAddOn returns a conflict for an add-on, or for all of a cluster without a name.
func staleAddOn(name string, problem error) error {
	return apierrors.NewConflict(addonv1alpha1.GroupVersion.WithResource("managedclusteraddons").GroupResource(), name, problem)
}
