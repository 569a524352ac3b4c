package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWavesHaveEveryClusterOnce(t *testing.T) {
	for _, test := range []struct {
		clusters int
		want     []int
	}{{1, []int{1, 0, 0}}, {3, []int{1, 0, 2}}, {10, []int{1, 3, 6}}, {1000, []int{100, 300, 600}}} {
		var sizes []int
		var all []string
		for _, wave := range waves(clusterNames(test.clusters)) {
			sizes = append(sizes, len(wave))
			all = append(all, wave...)
		}
		if diff := cmp.Diff(test.want, sizes); diff != "" {
			t.Errorf("waves of %d clusters (-want +got):\n%s", test.clusters, diff)
		}
		if diff := cmp.Diff(clusterNames(test.clusters), all); diff != "" {
			t.Errorf("clusters (-want +got):\n%s", diff)
		}
	}
}

func TestTheRegistrationIsOneOfTheCluster(t *testing.T) {
	objects, err := registration("bench-0001", "wave1")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, object := range objects {
		kinds[object.GetKind()] = object.GetNamespace() + "/" + object.GetName()
		if wave := object.GetLabels()[waveLabel]; object.GetKind() == "ManagedCluster" && wave != "wave1" {
			t.Errorf("the ManagedCluster is in %q, want wave1", wave)
		}
	}
	want := map[string]string{
		"Namespace": "/bench-0001", "ManagedCluster": "/bench-0001",
		"Role": "bench-0001/tandem:addon-agent", "RoleBinding": "bench-0001/tandem:addon-agent",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
