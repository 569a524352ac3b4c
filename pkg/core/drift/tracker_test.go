package drift

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const manager = "addon-agent-engine"

// at returns an object in a version, of which the manager owns a field.
func at(version, field string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetUID("object")
	o.SetResourceVersion(version)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:data":{"f:` + field + `":{}}}`)},
	}})
	return o
}

func TestTrackerFindsWhatIsDue(t *testing.T) {
	var (
		start   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		key     = Key{NamespacedName: types.NamespacedName{Name: "config"}}
		tracker = NewTracker(10 * time.Minute)
		changed = Finding{Object: "config", Fields: []Difference{{Path: "/data/a"}}}
	)
	memory := func(execution types.UID, after time.Duration) *Memory {
		m := tracker.Of("instance", execution, false, start.Add(after))
		m.StartRound(start.Add(after))
		return m
	}
	due := func(m *Memory, live *unstructured.Unstructured, want bool, why string) {
		t.Helper()
		if got := m.IsDue(key, live, manager); got != want {
			t.Errorf("due is %t, want %t: %s", got, want, why)
		}
	}
	note := func(m *Memory, live *unstructured.Unstructured, found Finding, want int, compared bool) {
		t.Helper()
		m.Note(key, live, manager, found)
		findings, areCompared := m.Findings([]Key{key}, true)
		if len(findings) != want || areCompared != compared {
			t.Errorf("%d findings, compared %t, want %d, %t", len(findings), areCompared, want, compared)
		}
	}

	m := memory("first", 0)
	due(m, at("1", "a"), false, "it was applied just now")
	due(m, at("2", "a"), false, "another field has changed")
	due(m, at("3", "b"), true, "another writer owns the field")
	note(m, at("3", "b"), changed, 1, false)
	if !tracker.IsDrifted("object") {
		t.Error("its changes do not matter")
	}
	due(m, at("3", "b"), false, "it was compared")
	due(m, at("4", "b"), true, "it may have been put back")
	note(m, at("4", "b"), Finding{}, 0, false)
	if tracker.IsDrifted("object") {
		t.Error("its changes still matter")
	}

	due(memory("first", 4*time.Minute), at("4", "b"), false, "before half an interval")
	m = memory("first", 10*time.Minute)
	due(m, at("4", "b"), true, "a round has begun")
	note(m, at("4", "b"), changed, 1, true)
	due(memory("first", 19*time.Minute), at("4", "b"), false, "before the next round")

	m = memory("second", 19*time.Minute)
	due(m, at("4", "b"), false, "the execution has not applied it")
	due(m, at("5", "a"), true, "the execution has applied it")
	note(m, at("5", "a"), Finding{}, 0, true)
	due(memory("third", 19*time.Minute), at("6", "c"), false, "the execution has applied it, and it did not differ")

	m.Note(key, nil, manager, Finding{Gone: true})
	due(m, at("7", "c"), true, "it exists again")
	m.Findings(nil, true)
	if findings, _ := m.Findings([]Key{key}, true); len(findings) != 0 {
		t.Error("an object that is no longer applied is remembered")
	}
	tracker.Forget("instance")
	due(tracker.Of("instance", "third", true, start), at("7", "c"), true, "drift is recorded, and the process has just started")
	if spread("a") == spread("b") || spread("a") < 0 || spread("a") >= 1 {
		t.Error("rounds of all Instances begin at the same time")
	}
}
