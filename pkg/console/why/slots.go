package why

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/text"
)

// maxPeers is the number of clusters that are named as the cause why a rollout has not reached a cluster.
const maxPeers = 3

// maxRollouts is the number of rollouts that are named if they wait for each other.
const maxRollouts = 5

// explainDeadlock states which rollouts wait for each other, if that keeps the rollout of an add-on from continuing, and how to let one of them continue.
func (e *Explanation) explainDeadlock(addOn string) {
	for _, deadlock := range e.view.Deadlocks {
		isStated := slices.ContainsFunc(e.deadlocks, func(d dependency.SlotDeadlock) bool { return d.Rollouts[0].AddOn == deadlock.Rollouts[0].AddOn })
		if isStated || !deadlock.Holds(addOn) {
			continue
		}
		e.deadlocks = append(e.deadlocks, deadlock)
		names := make([]string, 0, len(deadlock.Rollouts))
		for _, rollout := range deadlock.Rollouts {
			names = append(names, text.Word(rollout.AddOn))
		}
		joined := strings.Join(names, " and ")
		if len(names) > 2 {
			joined = text.List(names, maxRollouts)
		}
		e.addSentence("The rollouts of %s wait for each other, so they do not continue.", joined)
		for _, rollout := range deadlock.Rollouts[:min(len(deadlock.Rollouts), maxRollouts)] {
			e.addSentence("%s occupies %s.", text.Word(rollout.AddOn), slotsText(rollout))
		}
		e.adviseOnSlots(deadlock)
	}
}

// slotsText names the clusters that occupy the slots of a rollout, with what they wait for.
func slotsText(rollout dependency.StuckRollout) string {
	var reasons []string
	clusters := map[string][]string{}
	for _, slot := range rollout.Slots {
		reason := "where add-ons wait for each other"
		if len(slot.WaitsFor) > 0 {
			reason = "where it waits for a change of " + text.List(slot.WaitsFor, maxRollouts) + " that has not been rolled out there"
		}
		if clusters[reason] == nil {
			reasons = append(reasons, reason)
		}
		clusters[reason] = append(clusters[reason], slot.Cluster)
	}
	for i, reason := range reasons {
		reasons[i] = fmt.Sprintf("on %s, %s", text.List(clusters[reason], maxPeers), reason)
	}
	subject := "its slot "
	if len(rollout.Slots) > 1 {
		subject = "its slots "
	}
	return subject + strings.Join(text.Limit(reasons, maxRollouts, "more"), ", and ")
}

// adviseOnSlots suggests a change with which one of the rollouts reaches a cluster that another one waits for: more slots if that is enough, else another strategy.
func (e *Explanation) adviseOnSlots(deadlock dependency.SlotDeadlock) {
	for _, rollout := range deadlock.Rollouts {
		if !takesByName(e.view.Definitions[rollout.AddOn].Object) || rollout.Needed <= len(rollout.Slots) {
			continue
		}
		e.addSentence("Raise maxConcurrency of %s to %d, so that its change reaches cluster %s.", text.Word(rollout.AddOn), rollout.Needed, rollout.Awaited[0])
		e.suggest("kubectl patch clustermanagementaddon %s --type=json --patch=%s", rollout.AddOn,
			`[{"op":"add","path":"/spec/installStrategy/placements/0/rolloutStrategy/progressive/maxConcurrency","value":`+strconv.Itoa(rollout.Needed)+`}]`)
		return
	}
	first := deadlock.Rollouts[0]
	e.addSentence("Change the rollout strategy of %s, so that its change reaches cluster %s.", text.Word(first.AddOn), first.Awaited[0])
	e.suggest("kubectl edit clustermanagementaddon %s", first.AddOn)
}

// takesByName reports whether OCM rolls an add-on out to clusters by their names, as many at a time as the strategy of its only Placement says. The definition may be nil.
func takesByName(definition *addonv1alpha1.ClusterManagementAddOn) bool {
	if definition == nil || len(definition.Spec.InstallStrategy.Placements) != 1 {
		return false
	}
	strategy := definition.Spec.InstallStrategy.Placements[0].RolloutStrategy
	return strategy.Type == clusterv1alpha1.Progressive && strategy.Progressive != nil &&
		len(strategy.Progressive.MandatoryDecisionGroups.MandatoryDecisionGroups) == 0
}
