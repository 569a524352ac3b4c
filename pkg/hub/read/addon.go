package read

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

// AddOns reads the state that decides about plan-based add-ons.
type AddOns struct {
	Client client.Reader
	// Live reads ConfigMaps, of which the cache only has hashes.
	Live client.Reader
	// Namespaces are those for all clusters.
	Namespaces install.Namespaces
	// Reserved are the namespaces of managed clusters in which nothing is installed.
	Reserved []string
	Cycles   *Cycles
	// Doubts tracks the add-ons to judge again when another add-on or OperatorVersion changes; nil if that is not needed.
	Doubts *Doubts
}

// Gather reads everything that decides about the add-on; definition is nil if it does not exist.
func (a *AddOns) Gather(
	ctx context.Context, definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn,
) (install.AddOn, error) {
	state := install.AddOn{Definition: definition, ManagedAddOn: addOn, Reserved: a.Reserved}
	var err error
	if !install.IsPlanManaged(definition) {
		state.Instances, err = InstancesNamed(ctx, a.Client, client.ObjectKeyFromObject(addOn))
		return state, err
	}
	managed, err := IsManaged(ctx, a.Client, addOn.Namespace)
	if err != nil {
		return state, err
	}
	state.Unmanaged = !managed
	namespaces, err := Namespaces(ctx, a.Client, a.Namespaces, install.ConfigNamespaces(definition, addOn))
	if err != nil {
		return state, err
	}
	state.Configuration = install.Configure(definition, addOn, namespaces)
	state.DeploymentConfigs = map[types.NamespacedName]*addonv1alpha1.AddOnDeploymentConfig{}
	state.ConfigMaps = map[types.NamespacedName]*corev1.ConfigMap{}
	if len(state.Configuration.Problems) == 0 {
		if err := a.configuration(ctx, &state); err != nil {
			return state, err
		}
	}
	if state.Instances, err = InstancesOn(ctx, a.Client, addOn.Namespace); err != nil {
		return state, err
	}
	needs, problem := dependency.DeclaredBy(definition)
	state.DependencyProblem = problem
	// The install gate uses the current state, not the add-on's own condition: no previous verdict is held.
	state.Dependencies, err = Verdict(ctx, a.Client, a.Cycles, client.ObjectKeyFromObject(addOn), needs, install.Constraints(state), nil)
	if err != nil {
		return state, err
	}
	return state, a.Order(ctx, &state)
}

// configuration reads the objects of the add-on's configuration, and what explains doubtful variables if there are any.
func (a *AddOns) configuration(ctx context.Context, state *install.AddOn) (err error) {
	if state.Version, err = Version(ctx, a.Client, state.Configuration.OperatorVersion); err != nil {
		return err
	}
	for _, name := range state.Configuration.DeploymentConfigs {
		config := &addonv1alpha1.AddOnDeploymentConfig{}
		if err := a.Client.Get(ctx, name, config); err == nil {
			state.DeploymentConfigs[name] = config
		} else if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading AddOnDeploymentConfig %s: %w", name, err)
		}
	}
	for _, name := range state.Configuration.ConfigMaps {
		if state.ConfigMaps[name], err = ConfigMap(ctx, a.Live, name); err != nil {
			return err
		}
	}
	doubts := state.Doubts()
	a.Doubts.learn(client.ObjectKeyFromObject(state.ManagedAddOn), doubts)
	if len(doubts) > 0 {
		state.DefinedElsewhere, err = a.definedElsewhere(ctx, *state, doubts)
	}
	return err
}

// ParametersOf returns the objects that the add-on takes parameters from, in the order of its configuration.
func ParametersOf(state install.AddOn) []client.Object {
	var objects []client.Object
	for _, name := range state.Configuration.DeploymentConfigs {
		if config := state.DeploymentConfigs[name]; config != nil {
			objects = append(objects, config)
		}
	}
	for _, name := range state.Configuration.ConfigMaps {
		if config := state.ConfigMaps[name]; config != nil {
			objects = append(objects, config)
		}
	}
	return objects
}

// ConfigMap reads a ConfigMap with parameters from the API server; nil if it does not exist, or is not labelled as one.
func ConfigMap(ctx context.Context, live client.Reader, name types.NamespacedName) (*corev1.ConfigMap, error) {
	config := &corev1.ConfigMap{}
	if err := live.Get(ctx, name, config); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", name, err)
	}
	if config.Labels[kudo.LabelConfiguration] != "true" {
		return nil, nil
	}
	return config, nil
}

// OnCluster returns the add-ons of a managed cluster.
func (a *AddOns) OnCluster(ctx context.Context, cluster client.Object) ([]reconcile.Request, error) {
	return addOnsOn(ctx, a.Client, cluster)
}

// Namesakes returns the add-ons whose Instance has, or would have, the changed Instance's name on the managed cluster.
func (a *AddOns) Namesakes(ctx context.Context, instance client.Object) ([]reconcile.Request, error) {
	var found addonv1alpha1.ManagedClusterAddOnList
	err := a.Client.List(ctx, &found, client.InNamespace(instance.GetNamespace()), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing ManagedClusterAddOns in %q: %w", instance.GetNamespace(), err)
	}
	var requests []reconcile.Request
	for i := range found.Items {
		if install.DashedName(found.Items[i].Name) == install.DashedName(instance.GetName()) {
			requests = append(requests, RequestFor(&found.Items[i]))
		}
	}
	return requests, nil
}

// ConfiguredWith returns the add-ons with a configuration that may refer to a changed object of that resource.
func (a *AddOns) ConfiguredWith(resource string) func(context.Context, client.Object) ([]reconcile.Request, error) {
	return func(ctx context.Context, object client.Object) ([]reconcile.Request, error) {
		return a.requestsByConfig(ctx, configKey(resource, client.ObjectKeyFromObject(object)))
	}
}

// ConfiguredFrom returns the add-ons with a configuration that may refer to a namespace that is not their own: the namespace of that name, or of
// the managed cluster of that name.
func (a *AddOns) ConfiguredFrom(ctx context.Context, namespace client.Object) ([]reconcile.Request, error) {
	return a.requestsByConfig(ctx, configNamespaceKey(namespace.GetName()))
}

// requestsByConfig returns the add-ons with that key in index byConfig, or whose definition has it.
func (a *AddOns) requestsByConfig(ctx context.Context, key string) ([]reconcile.Request, error) {
	var addOns addonv1alpha1.ManagedClusterAddOnList
	if err := a.Client.List(ctx, &addOns, client.MatchingFields{byConfig: key}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ManagedClusterAddOns configured with %s: %w", key, err)
	}
	definitions, err := definitionsConfigured(ctx, a.Client, key)
	if err != nil {
		return nil, err
	}
	var requests []reconcile.Request
	for i := range addOns.Items {
		requests = append(requests, RequestFor(&addOns.Items[i]))
	}
	for _, definition := range definitions {
		named, err := AddOnsNamed(ctx, a.Client, definition.Name)
		if err != nil {
			return nil, err
		}
		requests = append(requests, named...)
	}
	return requests, nil
}

// DefinitionsConfiguredWith returns requests for the definitions with a configuration that may refer to a changed object of that resource.
func DefinitionsConfiguredWith(ctx context.Context, c client.Reader, resource string, object client.Object) ([]reconcile.Request, error) {
	return definitionsConfigured(ctx, c, configKey(resource, client.ObjectKeyFromObject(object)))
}

// definitionsConfigured returns requests for the definitions with that key in index byConfig.
func definitionsConfigured(ctx context.Context, c client.Reader, key string) ([]reconcile.Request, error) {
	var definitions addonv1alpha1.ClusterManagementAddOnList
	if err := c.List(ctx, &definitions, client.MatchingFields{byConfig: key}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ClusterManagementAddOns configured with %s: %w", key, err)
	}
	requests := make([]reconcile.Request, 0, len(definitions.Items))
	for i := range definitions.Items {
		requests = append(requests, RequestFor(&definitions.Items[i]))
	}
	return requests, nil
}
