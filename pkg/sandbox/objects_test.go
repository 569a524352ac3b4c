package sandbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestManagedClustersGetTheDefinitionsOfTheMirrorOnly(t *testing.T) {
	definitions, err := customResourceDefinitions(true)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"CustomResourceDefinition instances.kudo.dev", "CustomResourceDefinition operatorversions.kudo.dev"}
	if diff := cmp.Diff(want, titles(definitions)); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
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

func titles(objects []*unstructured.Unstructured) []string {
	var titles []string
	for _, object := range objects {
		titles = append(titles, object.GetKind()+" "+object.GetName())
	}
	return titles
}
