package preview_test

import (
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/preview"
	"github.com/tandem-addons/tandem/test/forged"
)

// FuzzForgedStatus previews changes and removals of an Instance and its child with forged statuses.
func FuzzForgedStatus(f *testing.F) {
	version := shop()
	child := instance(new(db()), map[string]string{"ROWS": "1"})
	child.Name, child.UID = "shop.db", "shop.db"
	words := forged.Words{
		"":           {"before", "now", "shop-1.0.0", "db-2.0.0"},
		"PlanStatus": {"deploy", "resize", "cleanup", "fail"},
		"Plan":       {"deploy", "resize", "cleanup", "fail"},
		"Name":       {"app", "KEY", "SIZE", "shop-1.0.0"},
		"Namespace":  {"ns", "addon-packages"},
		"Parameters": {"SIZE", "MODE", "EXTRA", "DB"},
		"Task":       {"app", "db", "once"},
		"Instance":   {"shop.db"},
	}
	for _, seed := range forged.Seeds(100, words,
		deployedInstance(version, kudo.Complete, nil, applied...).Status,
		withRunningPlan("resize", deployedInstance(version, kudo.InProgress, map[string]string{"SIZE": "2"}, applied...)).Status,
	) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, encoded string) {
		status, ok := forged.Status(encoded)
		if !ok {
			return
		}
		before, existing := instance(version, nil), child.DeepCopy()
		before.Status, existing.Status = status, status
		after := instance(version, map[string]string{"SIZE": "3", "DB": "false"})
		for _, change := range []preview.Change{{Before: before, After: after, Version: version}, {Before: before}} {
			for _, started := range []*kudo.OperatorVersion{version, nil} {
				change.Started, change.Candidates = started, []kudo.OperatorVersion{db()}
				change.Instances = []kudo.Instance{*before, *existing}
				_ = preview.DataOf(preview.Of(change)).Err()
			}
		}
	})
}
