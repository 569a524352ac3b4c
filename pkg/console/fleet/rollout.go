package fleet

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Peer is an add-on on another cluster, with its Instance there; nil if that was not read.
type Peer struct {
	AddOn    *addonv1alpha1.ManagedClusterAddOn
	Instance *kudo.Instance
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
	if condition == nil {
		return ""
	}
	return strings.TrimSuffix(text.JoinMessage(condition.Message), ".")
}
