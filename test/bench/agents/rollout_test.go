package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// top returns the Instance of an add-on on a cluster, in its second generation; observed is the generation with which it is ready.
func top(cluster, name, version string, observed int64) *kudo.Instance {
	i := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name, Generation: 2}}
	i.Spec.OperatorVersion.Name = version
	i.Status.Conditions = []metav1.Condition{{Type: kudo.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: observed}}
	return i
}

func TestWavesAreFollowedInTheOrderOfEvents(t *testing.T) {
	begins := func(cluster string) *kudo.Instance { return top(cluster, "top", "v2", 1) }
	ends := func(cluster string) *kudo.Instance { return top(cluster, "top", "v2", 2) }
	for sentence, test := range map[string]struct {
		events []*kudo.Instance // one in a second
		waves  []wave
		early  []string
	}{
		"one wave after the other": {
			[]*kudo.Instance{begins("b"), begins("a"), ends("a"), ends("b"), begins("c"), ends("c")},
			[]wave{{2, 1, 4}, {1, 5, 6}}, nil,
		},
		"later events of a cluster that has ended": {
			[]*kudo.Instance{begins("a"), ends("a"), begins("b"), ends("b"), begins("c"), ends("a"), ends("c"), begins("b")},
			[]wave{{2, 1, 4}, {1, 5, 7}}, nil,
		},
		"other versions and other add-ons": {
			[]*kudo.Instance{top("c", "top", "v1", 2), top("c", "base", "v2", 2), ends("a"), ends("b"), ends("c")},
			[]wave{{2, 3, 4}, {1, 5, 5}}, nil,
		},
		"a cluster begins before the first wave has ended": {
			[]*kudo.Instance{begins("a"), ends("a"), begins("b"), begins("c"), ends("b"), ends("c")},
			[]wave{{2, 1, 5}, {1, 4, 6}}, []string{"c"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := newProgress("top", "v2", [][]string{{"a", "b"}, nil, {"c"}})
			if p.complete() {
				t.Error("complete before the first event")
			}
			for i, event := range test.events {
				p.note(event, start.Add(time.Duration(i+1)*time.Second))
			}
			measured, early := p.results(start)
			if diff := cmp.Diff(test.waves, measured); diff != "" {
				t.Errorf("waves (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.early, early); diff != "" {
				t.Errorf("early clusters (-want +got):\n%s", diff)
			}
			if !p.complete() {
				t.Error("not complete after the last event")
			}
		})
	}
}

func TestARolloutIsCompletedWithItsVersion(t *testing.T) {
	for sentence, test := range map[string]struct {
		reason, applied string
		want            bool
	}{
		"completed":                        {upstream.ProgressingReasonCompleted, secondVersion, true},
		"the version before is completed":  {upstream.ProgressingReasonCompleted, firstVersion, false},
		"the version is applied elsewhere": {upstream.ProgressingReasonProgressing, secondVersion, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			definition := &addonv1alpha1.ClusterManagementAddOn{}
			definition.Status.InstallProgressions = []upstream.InstallProgression{{
				Conditions: []metav1.Condition{{Type: upstream.ManagedClusterAddOnConditionProgressing, Reason: test.reason}},
				ConfigReferences: []upstream.InstallConfigReference{{
					LastAppliedConfig: &upstream.ConfigSpecHash{ConfigReferent: versionConfig(test.applied).ConfigReferent},
				}},
			}}
			if got := isCompleted(definition, secondVersion); got != test.want {
				t.Errorf("completed is %t", got)
			}
		})
	}
	if isCompleted(&addonv1alpha1.ClusterManagementAddOn{}, secondVersion) {
		t.Error("a rollout that has not begun is completed")
	}
}

func TestThePlacementHasADecisionGroupForEachWave(t *testing.T) {
	clusters := clusterNames(10)
	sizes := map[string]int{}
	for _, wave := range waveNames(clusters) {
		sizes[wave]++
	}
	got := map[string]int{}
	for _, group := range placement(len(waves(clusters))).Spec.DecisionStrategy.GroupStrategy.DecisionGroups {
		got[group.GroupName] = sizes[group.ClusterSelector.LabelSelector.MatchLabels[waveLabel]]
	}
	if diff := cmp.Diff(map[string]int{"wave1": 1, "wave2": 3, "wave3": 6}, got); diff != "" {
		t.Errorf("sizes of the groups (-want +got):\n%s", diff)
	}
}
