package read

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

// Peers reads, for each add-on of the cluster that a rollout has not reached, the add-ons of other clusters on which the rollout has started
// and not ended. There are none if there is no such add-on, or if the user may not list the add-ons of all clusters.
func Peers(ctx context.Context, c client.Reader, cluster fleet.Cluster) (map[string][]fleet.Peer, error) {
	awaits := func(name string) bool {
		return cluster.AddOns[name] != nil && fleet.AwaitsRollout(cluster.AddOns[name])
	}
	if !slices.ContainsFunc(cluster.AddOnNames(), awaits) {
		return nil, nil
	}
	peers := map[string][]fleet.Peer{}
	for page := (addonv1alpha1.ManagedClusterAddOnList{}); ; {
		next := page.Continue
		page = addonv1alpha1.ManagedClusterAddOnList{}
		err := c.List(ctx, &page, client.Limit(PageSize), client.Continue(next))
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		if err != nil {
			return nil, ListingProblem("add-ons", metav1.NamespaceAll, err)
		}
		for i := range page.Items {
			if addOn := &page.Items[i]; awaits(addOn.Name) && isRollingOut(addOn) {
				peers[addOn.Name] = append(peers[addOn.Name], fleet.Peer{AddOn: addOn, Instance: instanceOf(ctx, c, addOn)})
			}
		}
		if page.Continue == "" {
			return peers, nil
		}
	}
}

// isRollingOut reports whether a rollout has started on the cluster of the add-on, and not ended there.
func isRollingOut(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	state := install.RolloutStateOf(addOn, nil)
	return state == install.RolloutProgressing || state == install.RolloutFailed
}

// instanceOf reads the Instance of an add-on; nil if it does not exist or cannot be read.
func instanceOf(ctx context.Context, c client.Reader, addOn *addonv1alpha1.ManagedClusterAddOn) *kudo.Instance {
	instance := &kudo.Instance{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(addOn), instance); err != nil {
		return nil
	}
	return instance
}
