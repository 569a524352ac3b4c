package read

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/selector"
)

// Verdict judges the declared dependencies of an add-on on its cluster. constraints are those of its releases, by the names of other add-ons, and previous
// is its condition Degraded if the last verdict is to be held.
func Verdict(
	ctx context.Context, c client.Reader, cycles *Cycles, addOn types.NamespacedName, needs []addonv1alpha1.AddonDependency,
	constraints map[string][]string, previous *metav1.Condition,
) (dependency.Verdict, error) {
	cluster := sync.OnceValues(func() (selector.Cluster, error) { return selectedFrom(ctx, c, addOn.Namespace) })
	needs, err := needsOn(needs, cluster)
	if err != nil {
		return nil, err
	}
	circular, err := cycles.On(addOn.Name, cluster)
	if err != nil {
		return nil, err
	}
	seen, err := dependencies(ctx, c, addOn.Namespace, needs, constraints)
	if err == nil {
		err = markDeclined(ctx, c, addOn, needs, seen)
	}
	if err != nil {
		return nil, err
	}
	for name, cycle := range circular {
		if known, needed := seen[name]; needed {
			known.Cycle = cycle
			seen[name] = known
		}
	}
	return dependency.Evaluate(needs, seen, previous), nil
}

// NeedsOn returns the dependencies that exist on a cluster.
func NeedsOn(ctx context.Context, c client.Reader, cluster string, needs []addonv1alpha1.AddonDependency) ([]addonv1alpha1.AddonDependency, error) {
	return needsOn(needs, func() (selector.Cluster, error) { return selectedFrom(ctx, c, cluster) })
}

func needsOn(needs []addonv1alpha1.AddonDependency, cluster func() (selector.Cluster, error)) ([]addonv1alpha1.AddonDependency, error) {
	if !dependency.SelectClusters(needs) {
		return needs, nil
	}
	on, err := cluster()
	if err != nil {
		return nil, err
	}
	return dependency.On(needs, on), nil
}

// selectedFrom returns what selectors read of the managed cluster to which the namespace belongs. One that does not exist has only a name.
func selectedFrom(ctx context.Context, c client.Reader, namespace string) (selector.Cluster, error) {
	cluster, err := clusterOf(ctx, c, namespace)
	if cluster == nil || err != nil {
		return selector.Cluster{Name: namespace}, err
	}
	return selector.ClusterOf(cluster), nil
}

// ViewSelected returns what selectors may read of a ManagedCluster, for a predicate.
func ViewSelected(cluster *clusterv1.ManagedCluster) [2]string {
	return [2]string{ViewFacts(cluster), cluster.Status.Version.Kubernetes}
}

// dependencies returns the observed state of the needed add-ons on a cluster, and of their alternatives, without cycles.
func dependencies(
	ctx context.Context, c client.Reader, cluster string, needs []addonv1alpha1.AddonDependency, constraints map[string][]string,
) (map[string]dependency.Seen, error) {
	seen := make(map[string]dependency.Seen, len(needs))
	for _, need := range needs {
		for _, name := range dependency.Candidates(need) {
			candidate := types.NamespacedName{Namespace: cluster, Name: name}
			compared := need.Version != "" || len(constraints[name]) > 0 || seen[name].Versions != (dependency.Versions{})
			known, err := see(ctx, c, candidate, compared)
			if err != nil {
				return nil, err
			}
			known.Constraints = constraints[name]
			seen[name] = known
		}
	}
	return seen, nil
}

// markDeclined marks those of the seen dependencies with install Auto that were disabled after they had been enabled.
func markDeclined(
	ctx context.Context, c client.Reader, key types.NamespacedName, needs []addonv1alpha1.AddonDependency, seen map[string]dependency.Seen,
) error {
	if !slices.ContainsFunc(needs, func(n addonv1alpha1.AddonDependency) bool {
		return n.Install == addonv1alpha1.InstallAuto && !seen[n.Name].Installed
	}) {
		return nil
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	if err := c.Get(ctx, key, addOn, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading ManagedClusterAddOn %s: %w", key, err)
	}
	for _, name := range dependency.EnabledOf(addOn, nil, nil).With {
		if known, needed := seen[name]; needed {
			known.Declined = true
			seen[name] = known
		}
	}
	return nil
}

// see returns the observed state of an add-on on a cluster, and its versions if they are compared.
func see(ctx context.Context, c client.Reader, name types.NamespacedName, versions bool) (dependency.Seen, error) {
	definition, err := Definition(ctx, c, name.Name)
	if err != nil {
		return dependency.Seen{}, err
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	err = c.Get(ctx, name, addOn, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		addOn, err = nil, nil
	}
	if err != nil {
		return dependency.Seen{}, fmt.Errorf("reading ManagedClusterAddOn %s: %w", name, err)
	}
	seen := dependency.See(definition, addOn)
	if seen.Deferred, err = isDeferred(ctx, c, addOn); err != nil {
		return seen, err
	}
	if versions && addOn != nil {
		seen.Versions, err = versionsOf(ctx, c, definition, addOn)
	}
	return seen, err
}

// versionsOf returns the versions of an add-on on a cluster; definition is nil if it does not exist. An Instance of the same name that is not the
// add-on's says nothing of it.
func versionsOf(
	ctx context.Context, c client.Reader, definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn,
) (dependency.Versions, error) {
	if !install.IsPlanManaged(definition) {
		return dependency.LabelledVersion(definition), nil
	}
	instance, key := &kudo.Instance{}, client.ObjectKeyFromObject(addOn)
	err := c.Get(ctx, key, instance, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(instance, addOn) {
		return dependency.InstalledVersions(nil), nil
	}
	if err != nil {
		return dependency.Versions{}, fmt.Errorf("reading Instance %s: %w", key, err)
	}
	return dependency.InstalledVersions(instance), nil
}
