package webhook

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// passesProtection reports whether a deletion is admitted although other add-ons protect the add-on: it is forced, or a controller's. If the own user name is
// not known, it is not by addon-manager, which would try again.
func (a *admissions) passesProtection(ctx context.Context, user string, forced bool) bool {
	if forced || isController(user) {
		return true
	}
	own, err := a.user.get(ctx, a.live)
	if err != nil {
		log.FromContext(ctx).Error(err, "protecting an add-on also from deletion by addon-manager")
	}
	return err == nil && user == own
}

// maxProtecting is the maximum number of add-ons and clusters that a refusal names.
const maxProtecting = 10

// protectedOn returns why an add-on must not be deleted from its cluster; nil if it may. protecting are the dependents that protect it. Nothing is removed from
// a detached cluster.
func (a *admissions) protectedOn(ctx context.Context, w write[*addonv1alpha1.ManagedClusterAddOn], protecting []string) (refused, err error) {
	if len(protecting) == 0 || a.passesProtection(ctx, w.user, w.forced) {
		return nil, nil
	}
	if detached, err := read.IsDetached(ctx, a.client, w.before.Namespace); err != nil || detached {
		return nil, err
	}
	protecting = slices.DeleteFunc(protecting, func(name string) bool {
		return !a.protectsLive(ctx, types.NamespacedName{Namespace: w.before.Namespace, Name: name}, w.before.Name)
	})
	if len(protecting) == 0 {
		return nil, nil
	}
	slices.Sort(protecting)
	names := text.List(protecting, maxProtecting)
	return fmt.Errorf("add-on %q is protected on cluster %q by add-ons that require it there with removal: Protect: %s; disable these first, or force the "+
		"deletion with 'kubectl addon disable %[1]s --cluster %[2]s --force'", w.before.Name, w.before.Namespace, names), nil
}

// protectedSomewhere returns why a definition must not be deleted; nil if it may: OCM deletes an add-on with its definition from every cluster. names are
// the add-ons that declare a dependency on it.
func (a *admissions) protectedSomewhere(ctx context.Context, w write[*addonv1alpha1.ClusterManagementAddOn], names []string) (refused, err error) {
	if a.passesProtection(ctx, w.user, w.forced) {
		return nil, nil
	}
	var protecting []string
	clusters := map[string]bool{}
	for _, name := range names {
		on, err := a.protectingOn(ctx, name, w.before.Name)
		if err != nil {
			return nil, err
		}
		for _, cluster := range on {
			clusters[cluster] = true
		}
		if len(on) > 0 {
			protecting = append(protecting, name)
		}
	}
	if len(protecting) == 0 {
		return nil, nil
	}
	slices.Sort(protecting)
	return fmt.Errorf("add-on %q is protected on %s by add-ons that require it there with removal: Protect: %s; OCM would delete it with its definition. "+
		"Disable these first, or force the deletion with 'kubectl delete clustermanagementaddon %[1]s --force'",
		w.before.Name, text.Plural(len(clusters), "cluster"), text.List(protecting, maxProtecting)), nil
}

// protectingOn returns the clusters that have both add-ons, and on which the first protects the second; none unless a live read confirms it for one of them.
func (a *admissions) protectingOn(ctx context.Context, addOn, need string) ([]string, error) {
	definition, err := read.Definition(ctx, a.client, addOn)
	if err != nil || !slices.ContainsFunc(dependency.Needs(definition), func(n addonv1alpha1.AddonDependency) bool {
		return n.Removal == addonv1alpha1.RemovalProtect && slices.Contains(dependency.Candidates(n), need)
	}) {
		return nil, err
	}
	installed, err := read.AddOnsNamed(ctx, a.client, addOn)
	if err != nil {
		return nil, err
	}
	var clusters []string
	for _, on := range installed {
		protects, err := a.protects(ctx, on.NamespacedName, need)
		if err != nil {
			return nil, err
		}
		if protects {
			clusters = append(clusters, on.Namespace)
		}
	}
	if !slices.ContainsFunc(clusters[:min(len(clusters), maxProtecting)], func(cluster string) bool {
		return a.protectsLive(ctx, types.NamespacedName{Namespace: cluster, Name: addOn}, need)
	}) && len(clusters) <= maxProtecting {
		return nil, nil
	}
	return clusters, nil
}

// protectsLive reports whether the add-on, which protects need by the cache, does so by a live read: it may have just been deleted. If that fails, the cache
// is right.
func (a *admissions) protectsLive(ctx context.Context, addOn types.NamespacedName, need string) bool {
	removal, err := requires(ctx, a.live, addOn, need)
	return err != nil || removal == addonv1alpha1.RemovalProtect
}

// protects reports whether an installed add-on protects need, which is installed on its cluster and is not being deleted.
func (a *admissions) protects(ctx context.Context, addOn types.NamespacedName, need string) (bool, error) {
	var needed addonv1alpha1.ManagedClusterAddOn
	err := a.client.Get(ctx, types.NamespacedName{Namespace: addOn.Namespace, Name: need}, &needed)
	if err != nil || !needed.DeletionTimestamp.IsZero() {
		return false, client.IgnoreNotFound(err)
	}
	removal, err := requires(ctx, a.client, addOn, need)
	if err != nil || removal != addonv1alpha1.RemovalProtect {
		return false, err
	}
	detached, err := read.IsDetached(ctx, a.client, addOn.Namespace)
	return err == nil && !detached, err
}
