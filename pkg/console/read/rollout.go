package read

import (
	"context"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

// Rollouts reads, for each add-on that a rollout has not reached on one of the clusters, the add-ons of all clusters on which the rollout has started and not ended, and
// decides which rollouts wait for each other. It is empty if there is no such add-on, or if the user may not list the add-ons of all clusters.
func Rollouts(ctx context.Context, c client.Reader, now time.Time, clusters ...fleet.Cluster) (fleet.Rollouts, error) {
	awaiting := map[string]bool{}
	views := make(map[string]fleet.Cluster, len(clusters))
	for _, cluster := range clusters {
		views[cluster.Name] = cluster
		for name, addOn := range cluster.AddOns {
			awaiting[name] = awaiting[name] || fleet.AwaitsRollout(addOn)
		}
	}
	if !slices.Contains(slices.Collect(maps.Values(awaiting)), true) {
		return fleet.Rollouts{}, nil
	}
	found, unfinished := fleet.Rollouts{Peers: map[string][]fleet.Peer{}}, []dependency.Unfinished(nil)
	definitions, counts := clusters[0].Definitions, map[string]int{}
	err := eachAddOn(ctx, c, func(addOn *addonv1alpha1.ManagedClusterAddOn) {
		counts[addOn.Name]++
		if awaiting[addOn.Name] && isRollingOut(addOn) {
			found.Peers[addOn.Name] = append(found.Peers[addOn.Name], fleet.Peer{AddOn: addOn, Instance: instanceOf(ctx, c, views, addOn)})
		}
		if u, is := fleet.UnfinishedOf(addOn, definitions[addOn.Name].Object, now); is {
			unfinished = append(unfinished, u)
		}
	})
	switch {
	case apierrors.IsForbidden(err):
		return fleet.Rollouts{}, nil
	case err != nil:
		return fleet.Rollouts{}, ListingProblem("add-ons", metav1.NamespaceAll, err)
	}
	found.Deadlocks = dependency.SlotDeadlocks(inStages(unfinished, definitions, counts))
	return found, nil
}

// inStages adds the stages of their rollouts to changes; counts are the numbers of clusters that have each add-on.
func inStages(unfinished []dependency.Unfinished, definitions map[string]fleet.Definition, counts map[string]int) []dependency.Unfinished {
	for i, u := range unfinished {
		unfinished[i].Stage = install.StageOf(definitions[u.AddOn].Object, counts[u.AddOn], u.Queued)
	}
	return unfinished
}

// eachAddOn visits the add-ons of all clusters.
func eachAddOn(ctx context.Context, c client.Reader, visit func(*addonv1alpha1.ManagedClusterAddOn)) error {
	for next, first := "", true; first || next != ""; first = false {
		page := addonv1alpha1.ManagedClusterAddOnList{}
		if err := c.List(ctx, &page, client.Limit(PageSize), client.Continue(next)); err != nil {
			return err
		}
		for i := range page.Items {
			visit(&page.Items[i])
		}
		next = page.Continue
	}
	return nil
}

// isRollingOut reports whether a rollout has started on the cluster of the add-on, and not ended there.
func isRollingOut(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	state := install.RolloutStateOf(addOn, nil)
	return state == install.RolloutProgressing || state == install.RolloutSoaking || state == install.RolloutFailed
}

// instanceOf returns the Instance of an add-on that was read with its cluster, or reads it; nil if it does not exist or cannot be read.
func instanceOf(ctx context.Context, c client.Reader, views map[string]fleet.Cluster, addOn *addonv1alpha1.ManagedClusterAddOn) *kudo.Instance {
	if instance := views[addOn.Namespace].Instances[addOn.Name]; instance != nil {
		return instance
	}
	instance := &kudo.Instance{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(addOn), instance); err != nil {
		return nil
	}
	return instance
}
