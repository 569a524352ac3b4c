package read

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/selector"
)

// Removal returns the place of an add-on that is being deleted in the order of removal on its cluster. Dependents with a malformed declaration, or
// without a definition, hold up nothing.
func Removal(ctx context.Context, c client.Reader, addOn types.NamespacedName) (dependency.Removal, error) {
	if names, err := DefinedOn(ctx, c, addOn.Name); err != nil || len(names) == 0 {
		return dependency.Removal{}, err
	}
	var found addonv1alpha1.ManagedClusterAddOnList
	if err := c.List(ctx, &found, client.InNamespace(addOn.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return dependency.Removal{}, fmt.Errorf("listing ManagedClusterAddOns in %q: %w", addOn.Namespace, err)
	}
	cluster := sync.OnceValues(func() (selector.Cluster, error) { return selectedFrom(ctx, c, addOn.Namespace) })
	on, versions := make(map[string]dependency.Installed, len(found.Items)), false
	for i := range found.Items {
		needs, _, err := DeclaredBy(ctx, c, found.Items[i].Name)
		if err == nil {
			needs, err = needsOn(needs, cluster)
		}
		if err != nil {
			return dependency.Removal{}, err
		}
		on[found.Items[i].Name] = dependency.Installed{Needs: needs}
		versions = versions || slices.ContainsFunc(needs, func(n addonv1alpha1.AddonDependency) bool { return n.Version != "" && len(n.Alternatives) > 0 })
	}
	for name, installed := range on {
		var err error
		if installed.Seen, err = see(ctx, c, types.NamespacedName{Namespace: addOn.Namespace, Name: name}, versions); err != nil {
			return dependency.Removal{}, err
		}
		on[name] = installed
	}
	return dependency.RemovalOf(addOn.Name, on), nil
}

// IsReplaced reports whether another candidate of a dependency than that one satisfies it on a cluster, and stays there. constraints are those of the
// releases of the add-on that has the dependency, by the names of the candidates.
func IsReplaced(
	ctx context.Context, c client.Reader, need addonv1alpha1.AddonDependency, candidate types.NamespacedName, constraints map[string][]string,
) (bool, error) {
	for _, name := range dependency.Candidates(need) {
		if name == candidate.Name {
			continue
		}
		seen, err := see(ctx, c, types.NamespacedName{Namespace: candidate.Namespace, Name: name}, need.Version != "" || len(constraints[name]) > 0)
		if err != nil {
			return false, err
		}
		seen.Constraints = constraints[name]
		if seen.Replaces(need, name) {
			return true, nil
		}
	}
	return false, nil
}

// RemovedFrom returns requests for the add-ons that are being removed from a cluster and that addon-manager releases.
func RemovedFrom(ctx context.Context, c client.Reader, cluster string) ([]reconcile.Request, error) {
	var found addonv1alpha1.ManagedClusterAddOnList
	if err := c.List(ctx, &found, client.InNamespace(cluster), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ManagedClusterAddOns in %q: %w", cluster, err)
	}
	var requests []reconcile.Request
	for i := range found.Items {
		if addOn := &found.Items[i]; !addOn.DeletionTimestamp.IsZero() && controllerutil.ContainsFinalizer(addOn, kudo.Finalizer) {
			requests = append(requests, RequestFor(addOn))
		}
	}
	return requests, nil
}

// RemovedWith returns requests for the add-ons that are being removed from the clusters from which the add-on of that name is, too.
func RemovedWith(ctx context.Context, c client.Reader, name string) ([]reconcile.Request, error) {
	var found addonv1alpha1.ManagedClusterAddOnList
	if err := c.List(ctx, &found, client.MatchingFields{byAddOn: name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ManagedClusterAddOns named %q: %w", name, err)
	}
	var requests []reconcile.Request
	for i := range found.Items {
		if found.Items[i].DeletionTimestamp.IsZero() {
			continue
		}
		beside, err := RemovedFrom(ctx, c, found.Items[i].Namespace)
		if err != nil {
			return nil, err
		}
		requests = append(requests, beside...)
	}
	return requests, nil
}
