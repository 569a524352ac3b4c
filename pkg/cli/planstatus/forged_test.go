package planstatus

import (
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/test/forged"
	"github.com/tandem-addons/tandem/test/sample"
)

// FuzzForgedStatus prints the plans of an Instance and its child with forged statuses.
func FuzzForgedStatus(f *testing.F) {
	words := forged.Words{
		"":           {"ran", "version", "kafka.zookeeper"},
		"PlanStatus": {"deploy", "cleanup", "noop"},
		"Plan":       {"deploy", "cleanup", "noop"},
		"Name":       {"brokers", "topics", "config", "setup"},
		"State":      {string(kudo.ChildRemoved)},
	}
	for _, seed := range forged.Seeds(200, words, runningInstance().Status, failedInstance().Status, timedOutInstance().Status) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, encoded string) {
		status, ok := forged.Status(encoded)
		if !ok {
			return
		}
		instance, child := sample.Instance(), sample.Instance()
		instance.Status, child.Status = status, status
		for _, version := range []*kudo.OperatorVersion{sample.Version(), nil} {
			view := progress.View{Instance: instance, Version: version, WithChildren: true, Children: []progress.View{{Instance: child, Version: version}}}
			Text(view)
			progress.StatusOf(view)
			InstanceProgress(view)
		}
	})
}
