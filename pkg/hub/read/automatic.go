package read

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/selector"
)

// AutomaticState is what decides about dependencies with install Auto on a cluster. All objects are read-only.
type AutomaticState struct {
	// On holds the add-ons of the cluster by name, and Missing the state of those that are needed and not there.
	On      map[string]dependency.Enabled
	Missing map[string]dependency.Seen
	// AddOns and Definitions are the objects that were read, by name.
	AddOns      map[string]*addonv1alpha1.ManagedClusterAddOn
	Definitions map[string]*addonv1alpha1.ClusterManagementAddOn
}

// Automatic returns what decides about dependencies with install Auto on a cluster; nil if there are none, and no add-on was enabled because of one.
// Definitions that are malformed declare no dependencies.
func Automatic(ctx context.Context, c client.Reader, cluster string) (*AutomaticState, error) {
	var found addonv1alpha1.ManagedClusterAddOnList
	if err := c.List(ctx, &found, client.InNamespace(cluster), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ManagedClusterAddOns in %q: %w", cluster, err)
	}
	state := &AutomaticState{
		On: map[string]dependency.Enabled{}, Missing: map[string]dependency.Seen{},
		AddOns: map[string]*addonv1alpha1.ManagedClusterAddOn{}, Definitions: map[string]*addonv1alpha1.ClusterManagementAddOn{},
	}
	matters := false
	for i := range found.Items {
		addOn := &found.Items[i]
		definition, err := Definition(ctx, c, addOn.Name)
		if err != nil {
			return nil, err
		}
		state.AddOns[addOn.Name], state.Definitions[addOn.Name] = addOn, definition
		matters = matters || addOn.Annotations[addonv1alpha1.AnnotationInstalledFor] != "" || definition != nil && dependency.MayInstall(definition)
	}
	if !matters {
		return nil, nil
	}
	return state, state.complete(ctx, c, cluster)
}

// complete adds the state of the add-ons, and of those that are needed.
func (s *AutomaticState) complete(ctx context.Context, c client.Reader, cluster string) error {
	selected := sync.OnceValues(func() (selector.Cluster, error) { return selectedFrom(ctx, c, cluster) })
	for name, addOn := range s.AddOns {
		needs, err := needsOn(dependency.Needs(s.Definitions[name]), selected)
		if err != nil {
			return err
		}
		s.On[name] = dependency.EnabledOf(addOn, s.Definitions[name], needs)
	}
	for name, enabled := range s.On {
		for _, need := range enabled.Needs {
			if _, there := s.On[need.Name]; there || need.Install != addonv1alpha1.InstallAuto {
				continue
			}
			definition, err := Definition(ctx, c, need.Name)
			if err != nil {
				return err
			}
			s.Missing[need.Name] = dependency.See(definition, nil)
			s.Definitions[need.Name] = definition
			if enabled.Cycles, err = s.withCycle(ctx, c, name, need.Name, selected); err != nil {
				return err
			}
			s.On[name] = enabled
		}
	}
	return nil
}

// withCycle returns the cycles of an add-on with the one through a dependency that is missing, if there is one.
func (s *AutomaticState) withCycle(
	ctx context.Context, c client.Reader, name, need string, cluster func() (selector.Cluster, error),
) (map[string][]string, error) {
	var problem error
	cycle := dependency.Cycle(name, need, func(other string) []addonv1alpha1.AddonDependency {
		definition, err := Definition(ctx, c, other)
		if err == nil {
			var needs []addonv1alpha1.AddonDependency
			if needs, err = needsOn(dependency.Needs(definition), cluster); err == nil {
				return needs
			}
		}
		problem = err
		return nil
	})
	cycles := s.On[name].Cycles
	if cycle == nil || problem != nil {
		return cycles, problem
	}
	if cycles == nil {
		cycles = map[string][]string{}
	}
	cycles[need] = cycle
	return cycles, nil
}

// AutomaticView holds the fields of a ManagedClusterAddOn on which decisions about dependencies with install Auto depend.
type AutomaticView struct {
	uid           types.UID
	generation    int64 // of the namespace in which dependencies are installed
	deleting      bool
	installedFor  string
	installedWith string
}

// ViewAutomatic returns the view of a ManagedClusterAddOn, or of its metadata.
func ViewAutomatic(addOn client.Object) AutomaticView {
	return AutomaticView{
		uid: addOn.GetUID(), generation: addOn.GetGeneration(), deleting: !addOn.GetDeletionTimestamp().IsZero(),
		installedFor:  addOn.GetAnnotations()[addonv1alpha1.AnnotationInstalledFor],
		installedWith: addOn.GetAnnotations()[addonv1alpha1.AnnotationInstalledWith],
	}
}

// ClustersWith returns requests for the clusters on which a changed definition matters for dependencies with install Auto: those with the add-on or with
// a dependent of it.
func ClustersWith(ctx context.Context, c client.Reader, definition *addonv1alpha1.ClusterManagementAddOn) ([]reconcile.Request, error) {
	names, err := DefinedOn(ctx, c, definition.Name)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var requests []reconcile.Request
	for _, name := range append(names, definition.Name) {
		found, err := AddOnsNamed(ctx, c, name)
		if err != nil {
			return nil, err
		}
		for _, request := range found {
			if !seen[request.Namespace] {
				seen[request.Namespace] = true
				requests = append(requests, ClusterRequest(request.Namespace))
			}
		}
	}
	return requests, nil
}

// ClusterRequest returns the request for a managed cluster.
func ClusterRequest(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
