package sandbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEachClusterGetsItsDefinitions(t *testing.T) {
	for sentence, test := range map[string]struct {
		plan clusterPlan
		want []string
	}{
		"a managed cluster those of the mirror only": {clusterPlan{Name: "cluster1"}, []string{"instances.kudo.dev", "operatorcontents.kudo.dev", "operatorversions.kudo.dev"}},
		"a hub all": {clusterPlan{Name: hubName}, []string{
			"addondeploymentconfigs.addon.open-cluster-management.io", "clustermanagementaddons.addon.open-cluster-management.io",
			"managedclusteraddons.addon.open-cluster-management.io", "managedclusters.cluster.open-cluster-management.io",
			"instances.kudo.dev", "operatorcontents.kudo.dev", "operators.kudo.dev", "operatorversions.kudo.dev", "packagesources.kudo.dev",
		}},
		"a hub with OCM all but OCM's": {clusterPlan{Name: hubName, OCM: "/ocm"}, []string{
			"instances.kudo.dev", "operatorcontents.kudo.dev", "operators.kudo.dev", "operatorversions.kudo.dev", "packagesources.kudo.dev",
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			definitions, err := test.plan.customResourceDefinitions()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, definition := range definitions {
				got = append(got, definition.GetName())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("definitions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManagedClusterIsAcceptedAndAvailable(t *testing.T) {
	status := managedClusterStatus("cluster1", time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("CET", 3600)))
	for _, kind := range []string{"HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable"} {
		if !hasTrueCondition(status, kind) {
			t.Errorf("%s is not True in %v", kind, status.Object["status"])
		}
	}
	conditions, _, _ := unstructured.NestedSlice(status.Object, "status", "conditions")
	if got := conditions[0].(map[string]any)["lastTransitionTime"]; got != "2026-03-01T12:00:00Z" {
		t.Errorf("the transition is at %v, want it in UTC", got)
	}
}
