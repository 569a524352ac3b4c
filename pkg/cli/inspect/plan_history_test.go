package inspect

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestPlanHistory(t *testing.T) {
	at := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 1, 2, 3, minutes, 0, 0, time.UTC)}
	}
	now := at(59).Time
	instance, version := sample.Ran("backup", kudo.InProgress)
	instance.Status.Execution.Request = "ran"
	view := progress.View{Instance: instance, Version: version}
	view.Instance.Status.PlanStatus = map[string]kudo.PlanStatus{
		"deploy": {Status: kudo.Complete, StartedTimestamp: at(1), LastUpdatedTimestamp: at(3)},
		"update": {Status: kudo.FatalError, StartedTimestamp: at(20), LastUpdatedTimestamp: at(21), Message: "phase \"brokers\": no more\ndisks"},
		"backup": {Status: kudo.InProgress, StartedTimestamp: at(50), LastUpdatedTimestamp: at(51), Message: sample.Waiting},
		"before": {Status: kudo.Complete, LastUpdatedTimestamp: at(2)},
		"topics": {Status: kudo.NeverRun},
		"noop":   {},
	}
	clitest.Golden(t, "history", historyText(progress.HistoryOf(view), now))
	clitest.Golden(t, "data-history", clitest.Render(t, "yaml", terminal.Shown{Data: progress.HistoryOf(view)}))
	if text := historyText(progress.HistoryOf(progress.View{Instance: sample.Instance(), Version: version}), now); text != "No plan has run yet.\n" {
		t.Error(text)
	}
}
