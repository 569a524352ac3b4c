package action

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestIdenticalChangesAreGrouped(t *testing.T) {
	var changes []Change
	for _, cluster := range []string{"cluster1", "cluster2", "cluster3"} {
		view := sample.ViewOf("deploy", kudo.Complete)
		view.Instance.Namespace = cluster
		view.Instance.Status.Inventory = []kudo.InventoryEntry{{Kind: "Service", Namespace: cluster, Name: "kafka"}}
		change := Change{Cluster: cluster, Object: "instance.kudo.dev/kafka", Warnings: []string{"without kafka, add-on shop becomes unavailable"}}
		change.Before, change.Started = view.Instance, view.Version
		if cluster == "cluster3" {
			change.Warnings = nil
		}
		changes = append(changes, change)
	}
	refused := Refusals{"c4": errors.New("cluster c4: no"), "c5": errors.New("cluster c5: no"), "c6": errors.New("cluster c6: never")}
	got := DryRunOf(changes, refused)
	var clusters [][]string
	for _, change := range got.Changes {
		clusters = append(clusters, change.Clusters)
	}
	if diff := cmp.Diff([][]string{{"cluster1", "cluster2"}, {"cluster3"}}, clusters); diff != "" {
		t.Error(diff)
	}
	want := []Refusal{{Clusters: []string{"c4", "c5"}, Message: "cluster c4: no"}, {Clusters: []string{"c6"}, Message: "cluster c6: never"}}
	if diff := cmp.Diff(want, got.Refused); diff != "" {
		t.Error(diff)
	}
}
