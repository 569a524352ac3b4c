package details

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/test/forged"
)

// newCompared returns an Instance with condition Drifted.
func newCompared(cluster, name string, status metav1.ConditionStatus, reason, message string, objects ...kudo.DriftedObject) *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name},
		Status: kudo.InstanceStatus{
			Conditions: []metav1.Condition{{Type: kudo.ConditionDrifted, Status: status, Reason: reason, Message: message, LastTransitionTime: *at(4)}},
			Drift:      objects,
		},
	}
}

// newDrifted returns an Instance with every kind of difference.
func newDrifted() *kudo.Instance {
	return newCompared("cluster1", "shop", metav1.ConditionTrue, kudo.ReasonDrifted, "Deployment shop/web: /spec/replicas is 0 instead of 3 (by kubectl-scale)",
		kudo.DriftedObject{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", More: 2, Fields: []kudo.DriftedField{
			{Path: "/spec/replicas", Applied: "3", Live: "0", Managers: []string{"kubectl-scale"}},
			{Path: "/spec/template/spec/containers/web/image", Applied: "web:1.2", Live: "evil:latest", Managers: []string{"kubectl-edit", "kubectl-scale"}},
			{Path: "/spec/template/spec/containers/web/args", Managers: []string{"kubectl-edit"}},
			{Path: "/metadata/labels/tier", Removed: true},
		}},
		kudo.DriftedObject{Kind: "ConfigMap", Namespace: "shop", Name: "settings", Fields: []kudo.DriftedField{{Path: "/data/config"}}},
		kudo.DriftedObject{Kind: "Namespace", Name: "shop-data", Gone: true},
	)
}

// forgedDrift returns an Instance whose agent reports texts that control a terminal, or look like other lines.
func forgedDrift() *kudo.Instance {
	const hostile = "web\x1b[2J\n  - 1\r\u202e"
	return newCompared("cluster1", "shop", metav1.ConditionTrue, hostile, hostile, kudo.DriftedObject{Kind: hostile, Namespace: hostile, Name: hostile, More: -1,
		Fields: []kudo.DriftedField{{Path: "/" + hostile, Applied: hostile, Live: hostile, Managers: []string{hostile}}, {Path: "/spec/replicas", Applied: "1"}}})
}

// driftsOf returns Instances in all states.
func driftsOf() []progress.Drift {
	off := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "quiet"}}
	off.Spec.Drift = &kudo.DriftPolicy{Mode: kudo.DriftOff}
	var many []kudo.DriftedObject
	for range 20 {
		many = append(many, kudo.DriftedObject{Kind: "ConfigMap", Name: "x", Fields: []kudo.DriftedField{{Path: "/data/x"}}})
	}
	var drifts []progress.Drift
	for _, instance := range []*kudo.Instance{
		newCompared("cluster3", "kafka", metav1.ConditionTrue, kudo.ReasonDrifted, "20 objects", many...),
		newCompared("cluster2", "kafka", metav1.ConditionUnknown, kudo.ReasonComparisonFailed, "comparing StatefulSet kafka/kafka: admission webhook \"x\"\ndoes not support dry run"),
		newDrifted(), off,
		newCompared("cluster1", "zookeeper", metav1.ConditionFalse, kudo.ReasonInSync, "all objects are as they were applied"),
		newCompared("cluster2", "zookeeper", metav1.ConditionFalse, kudo.ReasonInSync, "all objects are as they were applied"),
		{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster4", Name: "kafka"}},
		newCompared("cluster4", "shop", metav1.ConditionTrue, kudo.ReasonDrifted, "ConfigMap shop/settings is gone"),
	} {
		drifts = append(drifts, progress.DriftOf(instance))
	}
	return drifts
}

func TestDriftOfAFleet(t *testing.T) {
	all := driftsOf()
	found := progress.FleetDriftOf(all)
	clitest.Golden(t, "drift", clitest.Render(t, "table", terminal.Shown{Text: driftsText(found, false)}))
	clitest.Golden(t, "drift-wide", clitest.Render(t, "table", terminal.Shown{Text: driftsText(found, true)}))
	clitest.Golden(t, "data-drift", clitest.Render(t, "yaml", terminal.Shown{Data: progress.FleetDriftOf(all[1:])}))
	clitest.Golden(t, "drift-none", clitest.Render(t, "table", terminal.Shown{Text: driftsText(progress.FleetDriftOf(all[3:7]), false)}))
	clitest.Golden(t, "drift-empty", clitest.Render(t, "table", terminal.Shown{Text: driftsText(progress.FleetDriftOf(nil), false)}))
}

func TestDriftOfAnInstance(t *testing.T) {
	var texts []string
	for _, found := range driftsOf()[1:] {
		texts = append(texts, driftText(found))
	}
	clitest.Golden(t, "drift-instances", clitest.Render(t, "table", terminal.Shown{Text: strings.Join(texts, "\n---\n")}))
	found := progress.DriftOf(forgedDrift())
	var out bytes.Buffer // written as commands do
	shown := driftText(found) + "\n---\n" + driftsText(progress.FleetDriftOf([]progress.Drift{found}), true)
	if err := terminal.NewOutput().Print(terminal.Guard(&out), terminal.Shown{Text: shown}); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "drift-forged", out.String())
	limited := driftText(driftsOf()[0])
	if !strings.Contains(limited, "Agents report at most 20 objects: there may be more.\n") {
		t.Errorf("got %s", limited)
	}
}

// FuzzForgedDrift prints forged drift: no text of an agent adds a line.
func FuzzForgedDrift(f *testing.F) {
	for _, seed := range forged.Seeds(200, forged.Words{}, newDrifted().Status) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, encoded string) {
		status, ok := forged.Status(encoded)
		if !ok {
			return
		}
		found := progress.DriftOf(&kudo.Instance{Status: status})
		if shown := driftsText(progress.FleetDriftOf([]progress.Drift{found}), true); strings.Count(shown, "\n") > 6 {
			t.Errorf("more lines than the table has:\n%s", shown)
		}
		for _, object := range found.Objects {
			lines := 2 + 3*len(object.Fields)
			if shown := objectText(object); strings.Count(shown, "\n") > lines {
				t.Errorf("more than %d lines:\n%s", lines, shown)
			}
		}
	})
}
