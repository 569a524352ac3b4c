package why

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
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
	failed, soaking := e.peersIn(addOn.Name, install.RolloutFailed), e.peersIn(addOn.Name, install.RolloutSoaking)
	progressing := e.peersIn(addOn.Name, install.RolloutProgressing)
	switch {
	case len(failed) > 0:
		e.addSentence("%s, because it has failed on %s. Fix the cause there to continue the rollout.", subject, text.List(failures(failed), maxPeers))
		for _, peer := range failed[:min(len(failed), maxPeers)] {
			e.suggest("kubectl addon why %s --cluster %s", addOn.Name, peer.AddOn.Namespace)
		}
	case len(progressing) > 0:
		e.addSentence("%s yet: it is in progress on %s.", subject, text.List(clustersOf(slices.Concat(progressing, soaking)), maxPeers))
		e.explainDeadlock(addOn.Name)
		e.suggest("kubectl addon get %s", addOn.Name)
	case len(soaking) > 0:
		e.addSentence("%s yet: it waits for %s.", subject, text.List(failures(soaking), maxPeers))
		e.explainDeadlock(addOn.Name)
		e.suggest("kubectl addon get %s", addOn.Name)
	default:
		e.addSentence("The installation or last change of %s is blocked: %s.", addOn.Name, reasonText(resolved))
		e.suggestDetails(addOn)
		e.suggest("kubectl describe clustermanagementaddon %s", addOn.Name)
	}
}

// explainSoak states why a rollout does not count the cluster as done although the plan of the add-on is complete, if that is the case.
func (e *Explanation) explainSoak(addOn *addonv1alpha1.ManagedClusterAddOn) {
	soaks := install.SoakCondition(addOn.Status.Conditions)
	if soaks == nil {
		e.explainSoakWithoutRollout(addOn)
		return
	}
	e.addSentence("The rollout of %s does not count cluster %s as done yet: %s.", addOn.Name, e.view.Name, reasonText(soaks))
	switch soaks.Reason {
	case addonv1alpha1.ReasonHealthyForInvalid:
		e.suggestAnnotated(addOn, soaks.Message)
	case addonv1alpha1.ReasonAgentTooOld:
		e.suggest("kubectl addon version --cluster %s", e.view.Name)
	default:
		e.suggestDetails(addOn)
	}
}

// explainSoakWithoutRollout states that the Instance of an available add-on has to be healthy for longer, if OCM does not roll it out.
func (e *Explanation) explainSoakWithoutRollout(addOn *addonv1alpha1.ManagedClusterAddOn) {
	root := e.view.InstanceOf(addOn)
	if root == nil || meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionManifestApplied) != nil ||
		!meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable) {
		return
	}
	soaked := meta.FindStatusCondition(root.Status.Conditions, kudo.ConditionSoaked)
	if soaked == nil || soaked.Status == metav1.ConditionTrue || soaked.Reason == kudo.ReasonPlanPending {
		return
	}
	state := "is not healthy for long enough yet"
	if soaked.Reason == kudo.ReasonSoakFailed {
		state = "was not healthy for long enough after its plan"
	}
	e.addSentence("Instance %s %s: %s.", text.Word(root.Name), state, reasonText(soaked))
	e.suggestDetails(addOn)
}

// annotatedConfig matches the AddOnDeploymentConfig with a malformed time.
var annotatedConfig = regexp.MustCompile(`^annotation kudo\.dev/healthy-for of AddOnDeploymentConfig ([a-z0-9.-]+)/([a-z0-9.-]+) is malformed`)

// suggestAnnotated suggests the command that edits the object with a malformed annotation that a message names.
func (e *Explanation) suggestAnnotated(addOn *addonv1alpha1.ManagedClusterAddOn, message string) {
	if of := annotatedConfig.FindStringSubmatch(message); of != nil {
		e.suggest("kubectl edit addondeploymentconfig %s --namespace %s", of[2], of[1])
		return
	}
	e.suggest("kubectl edit clustermanagementaddon %s", addOn.Name)
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
