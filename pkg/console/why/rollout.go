package why

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/text"
)

// awaitRollout states which clusters come before this one in the rollout of the add-on's configuration, and where the rollout has failed.
func (e *Explanation) awaitRollout(addOn *addonv1alpha1.ManagedClusterAddOn, resolved *metav1.Condition) {
	if slices.Contains(e.queued, addOn.Name) {
		return
	}
	e.queued = append(e.queued, addOn.Name)
	subject := fmt.Sprintf("The rollout of %s has not reached cluster %s", addOn.Name, e.view.Name)
	failed, progressing := e.peersIn(addOn.Name, install.RolloutFailed), e.peersIn(addOn.Name, install.RolloutProgressing)
	switch {
	case len(failed) > 0:
		e.addSentence("%s, because it has failed on %s. Fix the cause there to continue the rollout.", subject, text.List(failures(failed), maxPeers))
		for _, peer := range failed[:min(len(failed), maxPeers)] {
			e.suggest("kubectl addon why %s --cluster %s", addOn.Name, peer.AddOn.Namespace)
		}
	case len(progressing) > 0:
		e.addSentence("%s yet: it is in progress on %s.", subject, text.List(clustersOf(progressing), maxPeers))
		e.explainDeadlock(addOn.Name)
		e.suggest("kubectl addon get %s", addOn.Name)
	default:
		e.addSentence("The installation or last change of %s is blocked: %s.", addOn.Name, reasonText(resolved))
		e.suggestDetails(addOn)
		e.suggest("kubectl describe clustermanagementaddon %s", addOn.Name)
	}
}

// awaitOthers states which changes that the add-on waits for have not been rolled out to the cluster; false if there are none.
func (e *Explanation) awaitOthers(resolved *metav1.Condition) bool {
	if resolved.Reason != addonv1alpha1.ReasonWaitingForDependencies {
		return false
	}
	found := false
	change, required := dependency.AwaitedIn(resolved.Message)
	for _, name := range append(change, required...) {
		if other := e.view.AddOns[name]; other != nil && fleet.AwaitsRollout(other) {
			e.awaitRollout(other, meta.FindStatusCondition(other.Status.Conditions, addonv1alpha1.ConditionResolved))
			found = true
		}
	}
	return found
}

// peersIn returns the peers of an add-on on which its rollout is in that state, by cluster.
func (e *Explanation) peersIn(name string, state install.RolloutState) []fleet.Peer {
	var peers []fleet.Peer
	for _, peer := range e.view.Peers[name] {
		if peer.RolloutState() == state {
			peers = append(peers, peer)
		}
	}
	slices.SortFunc(peers, func(a, b fleet.Peer) int { return strings.Compare(a.AddOn.Namespace, b.AddOn.Namespace) })
	return peers
}

// failures returns the clusters of the peers, each with the cause of its failure.
func failures(peers []fleet.Peer) []string {
	var failures []string
	for _, peer := range peers {
		failure := peer.AddOn.Namespace
		if cause := peer.RolloutFailure(); cause != "" {
			failure += " (" + cause + ")"
		}
		failures = append(failures, failure)
	}
	return failures
}

func clustersOf(peers []fleet.Peer) []string {
	var clusters []string
	for _, peer := range peers {
		clusters = append(clusters, peer.AddOn.Namespace)
	}
	return clusters
}
