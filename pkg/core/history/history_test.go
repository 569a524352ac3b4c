package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func start(uid, plan, version string, cause kudo.HistoryCause) Start {
	return Start{
		Execution: &kudo.Execution{UID: types.UID(uid), Plan: plan, OperatorVersion: corev1.ObjectReference{Name: version}},
		Cause:     cause, From: corev1.ObjectReference{Name: "v1"}, Now: noon,
	}
}

func end(entries []kudo.HistoryEntry, uid, plan string, state kudo.ExecutionStatus, failed kudo.HistoryOutcome) []kudo.HistoryEntry {
	return End(kudo.InstanceStatus{
		History:   entries,
		Execution: &kudo.Execution{UID: types.UID(uid), Plan: plan, OperatorVersion: corev1.ObjectReference{Name: "v1"}},
		PlanStatus: map[string]kudo.PlanStatus{plan: {
			Status: state, Message: "why", LastUpdatedTimestamp: &metav1.Time{Time: noon.Add(time.Minute)}, UID: types.UID(uid),
		}},
	}, failed)
}

// lines describes entries: revision, uid, plan, cause, outcome, retries, versions and message.
func lines(entries []kudo.HistoryEntry) (lines []string) {
	for _, e := range entries {
		line := fmt.Sprintf("%d %s %s %s", e.Revision, e.UID, e.Plan, e.Cause)
		if e.From != "" {
			line += " " + e.From + "->" + e.OperatorVersion.Name
		}
		if e.Retries > 0 {
			line += fmt.Sprint(" retries=", e.Retries)
		}
		if e.Outcome != "" {
			line += " " + strings.TrimSpace(string(e.Outcome)+" "+e.Message)
		}
		if (e.Outcome == "") != (e.EndedTimestamp == nil) {
			line += " with an end that does not match its outcome"
		}
		lines = append(lines, line)
	}
	return lines
}

func TestEachExecutionAppearsOnce(t *testing.T) {
	type step func([]kudo.HistoryEntry) []kudo.HistoryEntry
	begin := func(s Start) step { return func(e []kudo.HistoryEntry) []kudo.HistoryEntry { return Begin(e, s) } }
	ends := func(uid, plan string, state kudo.ExecutionStatus, failed kudo.HistoryOutcome) step {
		return func(e []kudo.HistoryEntry) []kudo.HistoryEntry { return end(e, uid, plan, state, failed) }
	}
	changed := start("b", "deploy", "v1", kudo.CauseRetry)
	changed.Parameters = []string{"NODES"}
	for what, test := range map[string]struct {
		steps []step
		want  []string
	}{
		"a plan that runs": {
			[]step{begin(start("a", "deploy", "v1", kudo.CauseInstall)), ends("a", "deploy", kudo.InProgress, kudo.HistoryFailed)},
			[]string{"1 a deploy Install"},
		},
		"a plan that completes, however often that is recorded": {
			[]step{
				begin(start("a", "deploy", "v1", kudo.CauseInstall)),
				ends("a", "deploy", kudo.Complete, kudo.HistoryFailed), ends("a", "deploy", kudo.FatalError, kudo.HistoryFailed),
			},
			[]string{"1 a deploy Install Complete"},
		},
		"a plan that is cancelled": {
			[]step{begin(start("a", "deploy", "v1", kudo.CauseInstall)), ends("a", "deploy", kudo.FatalError, kudo.HistoryCancelled)},
			[]string{"1 a deploy Install Cancelled why"},
		},
		"a plan that another one supersedes": {
			[]step{
				begin(start("a", "deploy", "v1", kudo.CauseInstall)), begin(start("b", "upgrade", "v2", kudo.CauseVersion)),
				ends("b", "upgrade", kudo.Complete, kudo.HistoryFailed),
			},
			[]string{`1 a deploy Install Superseded superseded by plan "upgrade"`, "2 b upgrade Version v1->v2 Complete"},
		},
		"a plan that is restarted with other values": {
			[]step{begin(start("a", "deploy", "v1", kudo.CauseInstall)), begin(start("b", "deploy", "v1", kudo.CauseParameters))},
			[]string{`1 a deploy Install Superseded superseded by plan "deploy"`, "2 b deploy Parameters"},
		},
		"a failed plan that starts again by itself": {
			[]step{
				begin(start("a", "deploy", "v1", kudo.CauseInstall)), ends("a", "deploy", kudo.FatalError, kudo.HistoryFailed),
				begin(start("b", "deploy", "v1", kudo.CauseRetry)), ends("b", "deploy", kudo.FatalError, kudo.HistoryFailed),
				begin(start("c", "deploy", "v1", kudo.CauseRetry)),
			},
			[]string{"1 c deploy Install retries=2"},
		},
		"a failed cleanup plan that is retried": {
			[]step{
				begin(start("a", "cleanup", "v1", kudo.CauseRemoval)), ends("a", "cleanup", kudo.FatalError, kudo.HistoryFailed),
				begin(start("b", "cleanup", "v1", kudo.CauseRemoval)), ends("b", "cleanup", kudo.Complete, kudo.HistoryFailed),
			},
			[]string{"1 b cleanup Removal retries=1 Complete"},
		},
		"the failed plan of a child that its parent runs again": {
			[]step{
				begin(start("a", "deploy", "v1", kudo.CauseInstall)), ends("a", "deploy", kudo.FatalError, kudo.HistoryFailed),
				begin(start("b", "deploy", "v1", kudo.CauseParent)),
			},
			[]string{"1 b deploy Install retries=1"},
		},
		"a failed plan that a user requests again": {
			[]step{
				begin(start("a", "deploy", "v1", kudo.CauseInstall)), ends("a", "deploy", kudo.FatalError, kudo.HistoryFailed),
				begin(start("b", "deploy", "v1", kudo.CauseRequest)),
			},
			[]string{"1 a deploy Install Failed why", "2 b deploy Request"},
		},
		"a failed plan that starts again after another one": {
			[]step{
				begin(start("a", "deploy", "v1", kudo.CauseInstall)), ends("a", "deploy", kudo.FatalError, kudo.HistoryFailed),
				begin(start("x", "backup", "v1", kudo.CauseRequest)), ends("x", "backup", kudo.Complete, kudo.HistoryFailed),
				begin(start("b", "deploy", "v1", kudo.CauseRetry)),
			},
			[]string{"1 a deploy Install Failed why", "2 x backup Request Complete", "3 b deploy Retry"},
		},
		"a failed plan that starts again with other values": {
			[]step{
				begin(start("a", "deploy", "v1", kudo.CauseInstall)), ends("a", "deploy", kudo.FatalError, kudo.HistoryFailed), begin(changed),
			},
			[]string{"1 a deploy Install Failed why", "2 b deploy Retry"},
		},
		"a plan that an earlier release has started": {
			[]step{
				ends("a", "deploy", kudo.InProgress, kudo.HistoryFailed), ends("a", "deploy", kudo.Complete, kudo.HistoryFailed),
				ends("a", "deploy", kudo.Complete, kudo.HistoryFailed),
			},
			[]string{"1 a deploy  Complete"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			var entries []kudo.HistoryEntry
			for i, step := range test.steps {
				before := append([]kudo.HistoryEntry{}, entries...)
				next := step(entries)
				if diff := cmp.Diff(before, append([]kudo.HistoryEntry{}, entries...)); diff != "" {
					t.Fatalf("step %d changes its input (-before +after):\n%s", i, diff)
				}
				entries = next
			}
			if diff := cmp.Diff(test.want, lines(entries)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHistoryIsBounded(t *testing.T) {
	many, long := make([]string, 100), strings.Repeat("x", 200)
	for i := range many {
		many[i] = fmt.Sprint("PARAMETER_", i)
	}
	for what, test := range map[string]struct {
		version    string
		parameters []string
		message    string
		max        int // entries
		kept, more int // names of parameters
	}{
		"ordinary names":        {"kafka-3.9.0-1.0.0", []string{"A", "B"}, "why", MaxEntries, 2, 0},
		"many parameters":       {"kafka-3.9.0-1.0.0", many, "why", MaxEntries, maxParameters, 100 - maxParameters},
		"long names":            {"kafka-3.9.0-1.0.0", []string{long, long, long}, "why", MaxEntries, 2, 1},
		"a long message":        {"kafka-3.9.0-1.0.0", nil, strings.Repeat("é ", 9000), MaxEntries, 0, 0},
		"everything at maximum": {strings.Repeat(long, 5), []string{long, long}, strings.Repeat(long, 100), 9, 2, 0},
		"larger than the limit": {strings.Repeat("x", 2*maxBytes), nil, "", 1, 0, 0},
	} {
		t.Run(what, func(t *testing.T) {
			var entries []kudo.HistoryEntry
			for i := range 50 {
				s := start(fmt.Sprint(i), "deploy", test.version, kudo.CauseParameters)
				s.Parameters = test.parameters
				entries = Begin(entries, s)
				entries = End(kudo.InstanceStatus{
					History: entries, Execution: s.Execution,
					PlanStatus: map[string]kudo.PlanStatus{"deploy": {Status: kudo.FatalError, Message: test.message, LastUpdatedTimestamp: &metav1.Time{Time: noon}}},
				}, kudo.HistoryFailed)
			}
			last := entries[len(entries)-1]
			if last.Revision != 50 || last.UID != "49" || len(entries) > test.max || test.max == MaxEntries && len(entries) != MaxEntries {
				t.Errorf("%d entries up to revision %d, want at most %d up to 50", len(entries), last.Revision, test.max)
			}
			if size := sizeOf(entries); size > maxBytes && len(entries) > 1 {
				t.Errorf("%d bytes, want at most %d", size, maxBytes)
			}
			if len(last.Parameters) != test.kept || int(last.MoreParameters) != test.more || len(last.Message) > maxMessageBytes {
				t.Errorf("%d names and %d more, and a message of %d bytes", len(last.Parameters), last.MoreParameters, len(last.Message))
			}
		})
	}
}
