package details

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/test/forged"
)

func at(minutes int) *metav1.Time {
	return &metav1.Time{Time: time.Date(2026, 1, 2, 3, minutes, 0, 0, time.UTC)}
}

func version(name string) corev1.ObjectReference {
	return corev1.ObjectReference{Namespace: "addon-packages", Name: name, UID: "v"}
}

// ran returns an Instance with every outcome and cause in its history.
func ran() *kudo.Instance {
	instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "kafka"}}
	entries := []kudo.HistoryEntry{
		{Plan: "deploy", Cause: kudo.CauseInstall, OperatorVersion: version("kafka-1.0.0"), Parameters: []string{"BROKERS"}, Outcome: kudo.HistoryComplete,
			By: "kubectl-addon (ManagedClusterAddOn cluster1/kafka)"},
		{Plan: "update", Cause: kudo.CauseParameters, OperatorVersion: version("kafka-1.0.0"), Parameters: []string{"A", "B", "C", "D"}, MoreParameters: 2,
			By:      "argo\x1b[31m (AddOnDeploymentConfig cluster1/kafka)",
			Outcome: kudo.HistorySuperseded, Message: `superseded by plan "upgrade"`},
		{Plan: "upgrade", Cause: kudo.CauseVersion, OperatorVersion: version("kafka-2.0.0"), From: "kafka-1.0.0", Retries: 2, By: "(Instance cluster1/top)", Outcome: kudo.HistoryFailed,
			Message: "phase \"brokers\": no more\ndisks: " + strings.Repeat("x", 80)},
		{Plan: "backup", Cause: kudo.CauseRequest, OperatorVersion: version("kafka-2.0.0"), Outcome: kudo.HistoryCancelled, Message: "cancelled", Retries: 1},
		{Plan: "deploy", Cause: kudo.CauseOwed, OperatorVersion: version("kafka-2.0.0\x1b[31m")},
		{Plan: "deploy", Cause: "Later"},
	}
	for i := range entries {
		entries[i].Revision, entries[i].UID, entries[i].StartedTimestamp = int64(i+3), "u", at(10*i)
		if entries[i].Outcome != "" {
			entries[i].EndedTimestamp = at(10*i + 2)
		}
	}
	entries[5].StartedTimestamp = nil
	instance.Status.History = entries
	return instance
}

func TestHistory(t *testing.T) {
	found, now := progress.RevisionsOf(ran()), at(59).Time
	none := progress.RevisionsOf(&kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster2", Name: "kafka"}})
	list := historyList{Histories: []progress.Revisions{found.Last(), none}}
	clitest.Golden(t, "revisions", clitest.Render(t, "table", terminal.Shown{Text: historyText(found, false, now)}))
	clitest.Golden(t, "revisions-wide", clitest.Render(t, "table", terminal.Shown{Text: historyText(found, true, now)}))
	clitest.Golden(t, "revisions-none", clitest.Render(t, "table", terminal.Shown{Text: historyText(none, false, now)}))
	clitest.Golden(t, "revisions-fleet", clitest.Render(t, "table", terminal.Shown{Text: lastText(list, false, now)}))
	clitest.Golden(t, "data-revisions", clitest.Render(t, "yaml", terminal.Shown{Data: found}))
	clitest.Golden(t, "data-revisions-fleet", clitest.Render(t, "yaml", terminal.Shown{Data: list}))
}

// FuzzForgedHistory prints forged histories: each entry is one row.
func FuzzForgedHistory(f *testing.F) {
	for _, seed := range forged.Seeds(200, forged.Words{}, ran().Status) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, encoded string) {
		status, ok := forged.Status(encoded)
		if !ok {
			return
		}
		found := progress.RevisionsOf(&kudo.Instance{Status: status})
		for _, wide := range []bool{false, true} {
			shown := historyText(found, wide, at(59).Time)
			if rows := len(found.Revisions); rows > 0 && strings.Count(shown, "\n") != rows+1 {
				t.Errorf("%d rows for %d entries:\n%s", strings.Count(shown, "\n")-1, rows, shown)
			}
		}
	})
}
