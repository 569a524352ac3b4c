package install

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	rollouts "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1alpha1"
	decisions "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1beta1"
	"pgregory.net/rapid"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
)

// TestStagesAreThoseOfOCM plays rollouts with OCM's code, in which some changes never end. Once OCM includes no more clusters, the queue has no free slot and is in no
// earlier stage than what is stuck, except if the number of slots is unknown. Without groups, a slot that is released includes a cluster of the queue.
func TestStagesAreThoseOfOCM(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		play := newOCMRollout(t)
		for range 2 * len(play.status) {
			play.include(t)
			play.endSome(t)
		}
		play.include(t)
		included, queued := play.with(rollouts.Progressing), play.with(rollouts.ToApply)
		if len(queued) == 0 {
			return
		}
		before, after := StageOf(play.definition, len(play.status), false), StageOf(play.definition, len(play.status), true)
		if play.isRejected {
			return
		}
		if hasFreeSlot(before, after, len(included)) {
			t.Fatalf("OCM includes no more than %v of %v by %+v, and stages %+v and %+v have a free slot", included, queued, play.strategy, before, after)
		}
		if before.Number == after.Number && !hasFreeSlot(before, after, len(included)-1) {
			t.Fatalf("stages %+v and %+v have no free slot after the change of one of %v has ended", before, after, included)
		}
		play.status[included[0]] = rollouts.Succeeded
		play.include(t)
		if before.Number == after.Number && len(play.with(rollouts.ToApply)) == len(queued) {
			t.Fatalf("OCM includes none of %v by %+v although a slot is free", queued, play.strategy)
		}
	})
}

// hasFreeSlot reports whether a cluster of a queue is included while changes on others are in progress.
func hasFreeSlot(included, queued dependency.Stage, occupied int) bool {
	return queued.Number <= included.Number && (queued.Slots <= 0 || occupied < queued.Slots)
}

// ocmRollout is a rollout of a change to the clusters of a Placement that OCM's code decides on.
type ocmRollout struct {
	definition *addonv1alpha1.ClusterManagementAddOn
	strategy   clusterv1alpha1.RolloutStrategy
	handler    *rollouts.RolloutHandler[any]
	status     map[string]rollouts.RolloutStatus
	// stuck are the clusters on which the change does not end.
	stuck map[string]bool
	// isRejected is true if OCM includes no cluster because the strategy is malformed.
	isRejected bool
}

// decisionsOf lists PlacementDecisions.
type decisionsOf []*clusterv1beta1.PlacementDecision

func (d decisionsOf) List(labels.Selector, string) ([]*clusterv1beta1.PlacementDecision, error) {
	return d, nil
}

func newOCMRollout(t *rapid.T) *ocmRollout {
	play := &ocmRollout{definition: &addonv1alpha1.ClusterManagementAddOn{}, status: map[string]rollouts.RolloutStatus{}, stuck: map[string]bool{}}
	var groups decisionsOf
	for group := range rapid.IntRange(1, 3).Draw(t, "groups") {
		decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			clusterv1beta1.DecisionGroupNameLabel: fmt.Sprint("g", group), clusterv1beta1.DecisionGroupIndexLabel: strconv.Itoa(group),
		}}}
		for cluster := range rapid.IntRange(0, 4).Draw(t, "clusters") {
			name := fmt.Sprint("c", (group+cluster)%3, group, cluster) // the order of names is not that of groups
			decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: name})
			play.status[name] = rollouts.ToApply
			play.stuck[name] = rapid.Bool().Draw(t, "stuck "+name)
		}
		groups = append(groups, decision)
	}
	play.strategy = drawStrategy(t)
	play.definition.Spec.InstallStrategy = upstream.InstallStrategy{
		Type: upstream.AddonInstallStrategyPlacements, Placements: []upstream.PlacementStrategy{{RolloutStrategy: play.strategy}},
	}
	tracker := decisions.NewPlacementDecisionClustersTracker(&clusterv1beta1.Placement{}, groups, nil)
	if err := tracker.Refresh(); err != nil {
		t.Fatal(err)
	}
	var err error
	if play.handler, err = rollouts.NewRolloutHandler[any](tracker, nil); err != nil {
		t.Fatal(err)
	}
	return play
}

// drawStrategy draws a strategy, with groups that the Placement may not have.
func drawStrategy(t *rapid.T) clusterv1alpha1.RolloutStrategy {
	var mandatory clusterv1alpha1.MandatoryDecisionGroups
	for range rapid.IntRange(0, 2).Draw(t, "mandatory groups") {
		group, index := clusterv1alpha1.MandatoryDecisionGroup{}, rapid.IntRange(0, 4).Draw(t, "mandatory group")
		if rapid.Bool().Draw(t, "by name") {
			group.GroupName = fmt.Sprint("g", index)
		} else {
			group.GroupIndex = int32(index)
		}
		mandatory.MandatoryDecisionGroups = append(mandatory.MandatoryDecisionGroups, group)
	}
	switch rapid.IntRange(0, 4).Draw(t, "strategy") {
	case 0:
		return clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All}
	case 1:
		return clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{MandatoryDecisionGroups: mandatory},
		}
	default:
		concurrency := rapid.SampledFrom([]string{"0", "1", "2", "3", "99", "-1", "0%", "1%", "25%", "33.4%", "0.001%", "50%", "100%", "250%", "1e300%", "-5%", "NaN%", "Inf%", "%", "few", "2.5", ""}).
			Draw(t, "maxConcurrency")
		return clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{
			MaxConcurrency: intstr.Parse(concurrency), MandatoryDecisionGroups: mandatory,
		}}
	}
}

// include includes clusters until OCM includes no more.
func (r *ocmRollout) include(t *rapid.T) {
	for range len(r.status) + 1 {
		var all []rollouts.ClusterRolloutStatus
		for name, status := range r.status {
			all = append(all, rollouts.ClusterRolloutStatus{ClusterName: name, Status: status})
		}
		slices.SortFunc(all, func(a, b rollouts.ClusterRolloutStatus) int { return strings.Compare(a.ClusterName, b.ClusterName) })
		_, result, err := r.handler.GetRolloutCluster(r.strategy, all)
		r.isRejected = r.isRejected || err != nil
		for _, next := range result.ClustersToRollout {
			if r.status[next.ClusterName] == rollouts.ToApply {
				r.status[next.ClusterName] = rollouts.Progressing
			}
		}
	}
}

// endSome ends some of the changes that are in progress and not stuck.
func (r *ocmRollout) endSome(t *rapid.T) {
	for _, name := range r.with(rollouts.Progressing) {
		if !r.stuck[name] && rapid.Bool().Draw(t, name+" ends") {
			r.status[name] = rollouts.Succeeded
		}
	}
}

// with returns the clusters that have the status, sorted.
func (r *ocmRollout) with(status rollouts.RolloutStatus) (names []string) {
	for name, is := range r.status {
		if is == status {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
