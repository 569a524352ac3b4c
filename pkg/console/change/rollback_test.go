package change

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

// withHistory returns an Instance that runs a version, with a history. An entry is VERSION OUTCOME CAUSE [PARAMETER,...].
func withHistory(version string, entries ...string) *kudo.Instance {
	instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "kafka"}}
	instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: "addon-packages", Name: version}
	for i, entry := range entries {
		fields := append(strings.Fields(entry), "")
		e := kudo.HistoryEntry{
			Revision: int64(i + 4), OperatorVersion: corev1.ObjectReference{Namespace: "addon-packages", Name: fields[0], UID: "u"},
			Outcome: kudo.HistoryOutcome(fields[1]), Cause: kudo.HistoryCause(fields[2]),
		}
		if fields[3] != "" {
			e.Parameters = strings.Split(fields[3], ",")
		}
		instance.Status.History = append(instance.Status.History, e)
	}
	return instance
}

func TestRevisionToRestore(t *testing.T) {
	for what, test := range map[string]struct {
		instance *kudo.Instance
		waiting  bool
		to, want int64
		err      string
	}{
		"the version that runs, if another one waits": {
			instance: withHistory("v2", "v1 Complete Install", "v2 Complete Version", "v2 Complete Parameters"), waiting: true, want: 6,
		},
		"the version before": {
			instance: withHistory("v2", "v1 Complete Install", "v1 Complete Parameters", "v2 Complete Version", "v2 Complete Parameters"), want: 5,
		},
		"after a failed upgrade": {instance: withHistory("v2", "v1 Complete Install", "v2 Failed Version"), want: 4},
		"the last one that completed": {
			instance: withHistory("v3", "v1 Complete Install", "v2 Failed Version", "v2 Complete Request", "v3 Complete Version"), want: 4,
		},
		"after a rollback, the version before that": {
			instance: withHistory("v1", "v1 Complete Install", "v2 Complete Version", "v1 Complete Version"), want: 5,
		},
		"a version that is set and has not started": {instance: withHistory("v2", "v1 Complete Install"), want: 4},
		"the one that is named":                     {instance: withHistory("v3", "v1 Complete Install", "v2 Failed Version", "v3 Complete Version"), to: 5, want: 5},
		"no history":                                {instance: withHistory("v1"), err: "has no earlier OperatorVersion than v1 that was completely applied"},
		"no other version": {
			instance: withHistory("v1", "v1 Complete Install", "v1 Complete Parameters"), err: "use 'kubectl addon upgrade' with --version",
		},
		"a revision that is not there": {
			instance: withHistory("v1", "v1 Complete Install", "v2 Complete Version"), to: 3,
			err: "has no revision 3, only 4 to 5: see 'kubectl addon history kafka --cluster cluster1'",
		},
		"a revision of an empty history": {instance: withHistory("v1"), to: 1, err: "is empty"},
		"a revision of the present version": {
			instance: withHistory("v2", "v1 Complete Install", "v2 Complete Version"), to: 5, err: "has the present OperatorVersion v2: a rollback restores no parameters",
		},
	} {
		t.Run(what, func(t *testing.T) {
			present := install.VersionOf(test.instance)
			if test.waiting {
				present = client.ObjectKey{}
			}
			entry, err := revisionToRestore(test.instance, present, test.to)
			if entry.Revision != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got revision %d, %v, want %d, %s", entry.Revision, err, test.want, test.err)
			}
		})
	}
}

func TestRollbackRemarks(t *testing.T) {
	instance := withHistory("v2", "v1 Complete Install A", "v1 Complete Parameters B", "v2 Complete Version C,B", "v2 Complete Parameters C")
	history := instance.Status.History
	history[3].MoreParameters = 2
	same, other := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Name: "v1", UID: "u"}}, &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Name: "v1", UID: "w"}}
	kept := "parameters that changed since revision 5 keep their present values, which the history does not store: C, B, and up to 2 more"
	if diff := cmp.Diff([]string{kept}, rollbackRemarks(instance, history[1], same)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []string{"OperatorVersion v1 was deleted and re-created since revision 7: its content may be another one"}
	if diff := cmp.Diff(want, rollbackRemarks(instance, history[3], other)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
