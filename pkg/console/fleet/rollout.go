package fleet

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Peer is an add-on on another cluster, with its Instance there; nil if that was not read.
type Peer struct {
	AddOn    *addonv1alpha1.ManagedClusterAddOn
	Instance *kudo.Instance
}

// Rollouts is what explains why rollouts of add-ons have not reached clusters. It is empty if it was not read.
type Rollouts struct {
	// Peers are add-ons of other clusters, by name: those on which OCM rolls out a configuration that has not reached all clusters.
	Peers map[string][]Peer
	// Deadlocks are the rollouts that wait for each other.
	Deadlocks []dependency.SlotDeadlock
}

// UnfinishedOf returns the change of an add-on that is not rolled out completely to its cluster; false if there is none. The definition may be nil. A change that has ended
// occupies its slot for the minimum success time of the rollout strategy. The stage depends on the add-on's other clusters, and is missing.
func UnfinishedOf(addOn *addonv1alpha1.ManagedClusterAddOn, definition *addonv1alpha1.ClusterManagementAddOn, now time.Time) (dependency.Unfinished, bool) {
	unfinished := dependency.Unfinished{
		AddOn: addOn.Name, Cluster: addOn.Namespace, Installed: isInstalled(addOn),
	}
	if !addOn.DeletionTimestamp.IsZero() {
		return unfinished, false
	}
	state := install.RolloutStateOf(addOn, nil)
	unfinished.Queued = AwaitsRollout(addOn) || state == install.RolloutWaiting && isPlaced(definition)
	if unfinished.Queued {
		return unfinished, true
	}
	switch state {
	case install.RolloutProgressing:
		resolved := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved)
		if resolved != nil && resolved.Status == metav1.ConditionFalse && resolved.Reason == addonv1alpha1.ReasonWaitingForDependencies {
			unfinished.WaitsFor, unfinished.Requires = dependency.AwaitedIn(resolved.Message)
		}
		return unfinished, true
	case install.RolloutSoaking, install.RolloutFailed:
		return unfinished, true
	case install.RolloutDone:
		return unfinished, isSoaking(addOn, definition, now)
	default:
		return unfinished, false
	}
}

// isInstalled reports whether the add-on runs on its cluster, available or not.
func isInstalled(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	return available != nil && available.Reason != addonv1alpha1.ReasonNotInstalled
}

// isPlaced reports whether OCM rolls the add-on out to clusters that Placements select.
func isPlaced(definition *addonv1alpha1.ClusterManagementAddOn) bool {
	return definition != nil && definition.Spec.InstallStrategy.Type == upstream.AddonInstallStrategyPlacements
}

// isSoaking reports whether a rollout strategy of the add-on waits for longer success on its cluster.
func isSoaking(addOn *addonv1alpha1.ManagedClusterAddOn, definition *addonv1alpha1.ClusterManagementAddOn, now time.Time) bool {
	progressing := meta.FindStatusCondition(addOn.Status.Conditions, upstream.ManagedClusterAddOnConditionProgressing)
	if definition == nil || progressing == nil || progressing.Reason != upstream.ProgressingReasonCompleted {
		return false
	}
	return slices.ContainsFunc(definition.Spec.InstallStrategy.Placements, func(p upstream.PlacementStrategy) bool {
		var soak time.Duration
		switch strategy := p.RolloutStrategy; {
		case strategy.Progressive != nil:
			soak = strategy.Progressive.MinSuccessTime.Duration
		case strategy.ProgressivePerGroup != nil:
			soak = strategy.ProgressivePerGroup.MinSuccessTime.Duration
		}
		return now.Before(progressing.LastTransitionTime.Add(soak))
	})
}

// AwaitsRollout reports whether OCM has not rolled the present configuration of the add-on out to its cluster.
func AwaitsRollout(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	resolved := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved)
	return addOn.DeletionTimestamp.IsZero() && resolved != nil && resolved.Status == metav1.ConditionFalse &&
		resolved.Reason == addonv1alpha1.ReasonWaitingForConfiguration
}

// RolloutState returns the progress of a rollout on the cluster of the peer.
func (p Peer) RolloutState() install.RolloutState { return install.RolloutStateOf(p.AddOn, p.Instance) }

// RolloutFailure returns why the rollout has failed on the cluster of the peer.
func (p Peer) RolloutFailure() string {
	condition := meta.FindStatusCondition(p.AddOn.Status.Conditions, addonv1alpha1.ConditionResolved)
	if !install.IsLasting(condition) {
		condition = meta.FindStatusCondition(p.AddOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
		if p.Instance != nil {
			condition = meta.FindStatusCondition(p.Instance.Status.Conditions, kudo.ConditionReady)
		}
	}
	if soaks := install.SoakCondition(p.AddOn.Status.Conditions); soaks != nil {
		condition = soaks
	}
	if condition == nil {
		return ""
	}
	return strings.TrimSuffix(text.JoinMessage(condition.Message), ".")
}
