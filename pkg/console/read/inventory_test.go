package read

import (
	"testing"
)

func TestInventoryNotFoundError(t *testing.T) {
	for sentence, test := range map[string]struct {
		found Inventory
		want  string
	}{
		"a cluster with other things": {
			Inventory{ManagedClusters: ManagedClusters{Cluster: "c1", Names: []string{"c1"}}, Instances: []string{"a", "kafka"}, AddOns: []string{"kafka"}},
			`cluster "c1" has no Instance or add-on "shop"; Instances: a, kafka; add-ons: kafka`,
		},
		"a misspelt name": {
			Inventory{ManagedClusters: ManagedClusters{Cluster: "c1", Names: []string{"c1"}}, Instances: []string{"shops"}, AddOns: []string{"kafka"}},
			`cluster "c1" has no Instance or add-on "shop" (did you mean shops?); Instances: shops; add-ons: kafka`,
		},
		"a cluster with nothing": {
			Inventory{ManagedClusters: ManagedClusters{Cluster: "c1", Names: []string{"c1"}}},
			`cluster "c1" has no Instance or add-on "shop"; Instances: none; add-ons: none`,
		},
		"an add-on that is not enabled": {
			Inventory{ManagedClusters: ManagedClusters{Cluster: "c1", Names: []string{"c1"}}, Instances: []string{"shops"}, AddOns: []string{"kafka"}, IsDefined: true},
			`add-on "shop" is not enabled on cluster "c1": run 'kubectl addon enable shop --cluster c1'; Instances: shops; add-ons: kafka`,
		},
		"a cluster that does not exist": {
			Inventory{ManagedClusters: ManagedClusters{Cluster: "c9", Names: []string{"c1", "c2"}}}, `managed cluster "c9" not found; managed clusters: c1, c2`,
		},
		"a misspelt cluster": {
			Inventory{ManagedClusters: ManagedClusters{Cluster: "clustr1", Names: []string{"cluster1", "store"}}},
			`managed cluster "clustr1" not found (did you mean cluster1?); managed clusters: cluster1, store`,
		},
		"no clusters at all": {Inventory{ManagedClusters: ManagedClusters{Cluster: "c9"}}, `managed cluster "c9" not found; managed clusters: none`},
		"clusters that the user may not read": {
			Inventory{ManagedClusters: ManagedClusters{Cluster: "c1", Unreadable: true}},
			`cluster "c1" has no Instance or add-on "shop"; Instances: none; add-ons: none`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := test.found.NotFoundError("shop").Error(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
