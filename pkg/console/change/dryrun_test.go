package change

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/preview"
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
	want := []Refusal{{Clusters: []string{"c4", "c5"}, Message: "no"}, {Clusters: []string{"c6"}, Message: "never"}} // each cluster is named once
	if diff := cmp.Diff(want, got.Refused); diff != "" {
		t.Error(diff)
	}
}

func TestFooterOfDryRuns(t *testing.T) {
	change := func(cluster string, kinds []string, effects ...preview.Effect) ChangeData {
		c := ChangeData{Clusters: []string{cluster}, UnknownKinds: kinds}
		task := preview.TaskData{Child: &preview.ChildData{Data: &preview.Data{}}}
		for _, effect := range effects {
			task.Objects = append(task.Objects, preview.ObjectData{Effect: effect})
		}
		below := preview.TaskData{Child: &preview.ChildData{Data: &preview.Data{Plans: []preview.PlanData{{Tasks: []preview.TaskData{task}}}}}}
		c.Plans = []preview.PlanData{{Tasks: []preview.TaskData{below}}}
		return c
	}
	const (
		owners = "whether the objects to create already exist, and who owns them"
		manual = "manual changes to existing objects"
		rules  = "permissions, quotas, admission webhooks and policies"
	)
	for sentence, test := range map[string]struct {
		changes []ChangeData
		want    string
	}{
		"nothing is applied":    {[]ChangeData{change("cluster1", nil, preview.Removed)}, ""},
		"an object of a child":  {[]ChangeData{change("cluster1", nil, preview.Created)}, "Not checked, because only cluster1 knows: " + owners + "; " + rules + "."},
		"an object that exists": {[]ChangeData{change("cluster1", nil, preview.Unchanged)}, "Not checked, because only cluster1 knows: " + manual + "; " + rules + "."},
		"two clusters, and kinds that packages choose": {
			[]ChangeData{change("cluster1", []string{"A.b"}, preview.Created), change("cluster2", []string{"A.b", "C\nd"}, preview.Changed)},
			"Not checked, because only the clusters know: " + owners + "; " + manual + `; whether these kinds exist: A.b, "C\nd"; ` + rules + ".",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := (DryRun{Changes: test.changes, NotChecked: NotChecked(test.changes)}).Footer(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
