package drift

import (
	"errors"
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
		m.StartRound()
		return m
	}
	due := func(m *Memory, live *unstructured.Unstructured, want bool, why string) {
		t.Helper()
		if got := m.IsDue(key, live, manager, ""); got != want {
			t.Errorf("due is %t, want %t: %s", got, want, why)
		}
	}
	note := func(m *Memory, live *unstructured.Unstructured, found Finding, want int, compared bool) {
		t.Helper()
		m.Note(key, live, manager, found)
		findings, areCompared := m.findings([]Key{key}, true)
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
	due(m, at("4", "b"), false, "it was compared just now")
	if wake := m.wake([]Key{key}); !wake.Equal(start.Add(comparisonDelay)) {
		t.Errorf("compared again at %s", wake)
	}
	m = memory("first", comparisonDelay)
	due(m, at("3", "b"), false, "it has not changed")
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
	m.findings(nil, true)
	if findings, _ := m.findings([]Key{key}, true); len(findings) != 0 {
		t.Error("an object that is no longer applied is remembered")
	}
	checkFailures(t, memory("third", 30*time.Minute), func() *Memory { return memory("third", 31*time.Minute) })
	tracker.Forget("instance")
	due(tracker.Of("instance", "third", true, start), at("7", "c"), true, "drift is recorded, and the process has just started")
	if spread("a") == spread("b") || spread("a") < 0 || spread("a") >= 1 {
		t.Error("rounds of all Instances begin at the same time")
	}
}

// The drift of an object from before the process has started shows in the fields that the applier still owns.
func TestDriftFromBeforeTheStartIsDue(t *testing.T) {
	live := at("2", "b")
	for name, c := range map[string]struct {
		applied string
		want    bool
	}{
		"it owns the fields that it has applied":     {Digest(live, manager), false},
		"it owns other fields":                       {Digest(at("1", "a"), manager), true},
		"what it has applied was not recorded, once": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewTracker(time.Hour).Of("instance", "first", false, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			if got := m.IsDue(Key{}, live, manager, c.applied); got != c.want {
				t.Errorf("due is %t, want %t", got, c.want)
			}
		})
	}
}

// checkFailures checks that an object that cannot be compared is tried again later, and that what was found about it before is kept.
func checkFailures(t *testing.T, m *Memory, later func() *Memory) {
	t.Helper()
	drifted, unknown := Key{NamespacedName: types.NamespacedName{Name: "drifted"}}, Key{NamespacedName: types.NamespacedName{Name: "unknown"}}
	refused, forbidden := errors.New("refused"), errors.New("forbidden")
	m.Note(drifted, at("1", "a"), manager, Finding{Object: "drifted", Gone: true})
	m.NoteFailure(drifted, at("2", "b"), manager, refused, time.Minute)
	m.NoteFailure(unknown, at("1", "a"), manager, forbidden, 2*time.Minute)
	if m.IsDue(drifted, at("3", "c"), manager, "") || m.IsDue(unknown, at("3", "c"), manager, "") {
		t.Error("an object that could not be compared is compared immediately again, before others")
	}
	retry, failure := m.failureOf([]Key{drifted, unknown})
	if findings, _ := m.findings([]Key{drifted, unknown}, true); len(findings) != 1 || !errors.Is(failure, refused) || !retry.Equal(m.now.Add(time.Minute)) {
		t.Errorf("findings %v, failure %v until %s", findings, failure, retry)
	}
	if !m.IsWaiting(drifted) || m.IsWaiting(Key{}) {
		t.Error("it is put back before it is tried again")
	}
	m = later()
	if !m.IsDue(drifted, at("3", "c"), manager, "") || m.IsDue(unknown, at("3", "c"), manager, "") || m.HasLost(unknown, at("1", "a"), manager) {
		t.Error("the wrong object is compared again")
	}
	keys := []Key{drifted, unknown}
	m.Ignore(drifted)
	if result := m.Result(keys, true); !result.Again.After(m.now) || !errors.Is(result.Failure, forbidden) {
		t.Errorf("an object is skipped, and the next pass is at %s, now is %s: %v", result.Again, m.now, result.Failure)
	}
	m.Postpone(drifted, time.Second)
	if result := m.Result(keys, true); m.IsDue(drifted, at("3", "c"), manager, "") || !result.Again.Equal(m.now.Add(time.Second)) {
		t.Errorf("an object is being changed, and the next pass is at %s, now is %s", result.Again, m.now)
	}
	m.now = m.now.Add(2 * time.Second)
	if result := m.Result(keys, true); !m.IsDue(drifted, at("3", "c"), manager, "") || !result.Again.After(m.now) {
		t.Errorf("a pass has not compared an object that was due, and the next one is at %s, now is %s", result.Again, m.now)
	}
	m.Note(drifted, at("3", "c"), manager, Finding{})
	if _, failure = m.failureOf([]Key{drifted}); failure != nil {
		t.Errorf("it was compared, and has failed: %v", failure)
	}
}

// An object that another writer changes all the time is put back after delays that grow up to ten minutes, and immediately after it was left alone for long.
func TestRepairsBackOff(t *testing.T) {
	var (
		now     = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		key     = Key{NamespacedName: types.NamespacedName{Name: "config"}}
		tracker = NewTracker(time.Hour)
		changed = Finding{Object: "config", Fields: []Difference{{Path: "/data/a"}}}
		begin   = now
		delays  []time.Duration
	)
	memory := func() *Memory {
		m := tracker.Of("instance", "first", false, now)
		m.SetRepairing(true)
		return m
	}
	memory().Note(key, at("1", "b"), manager, changed)
	for len(delays) < 10 {
		m := memory()
		if !m.IsDue(key, at("1", "b"), manager, "") || !m.MayRepair(key) {
			t.Fatalf("after %s it is not put back", now.Sub(begin))
		}
		m.NoteRepair(key, at("2", "a"), manager)
		m.Note(key, at("1", "b"), manager, changed)
		if findings, _ := m.findings([]Key{key}, true); findings[0].Repairs != len(delays)+1 {
			t.Errorf("%d repairs, want %d", findings[0].Repairs, len(delays)+1)
		}
		if wake := m.wake([]Key{key}); !wake.Equal(now.Add(time.Millisecond)) {
			t.Errorf("after a repair it is judged at %s", wake)
		}
		wake := memory().wake([]Key{key})
		delays, now = append(delays, wake.Sub(now)), wake.Add(-time.Millisecond)
		if m = memory(); m.MayRepair(key) || m.IsDue(key, at("1", "b"), manager, "") {
			t.Error("it is put back too early")
		}
		now = wake
	}
	if want := 5 * time.Second; delays[0] != want || delays[1] != 2*want || delays[9] != 10*time.Minute {
		t.Errorf("delays %v", delays)
	}
	m := memory()
	m.SetRepairing(false)
	if m.MayRepair(key) || m.IsDue(key, at("1", "b"), manager, "") {
		t.Error("it is put back while it is only reported")
	}
	m.NoteRepair(key, at("2", "a"), manager)
	now = now.Add(21 * time.Minute)
	memory().Note(key, at("3", "b"), manager, changed)
	if findings, _ := memory().findings([]Key{key}, true); findings[0].Repairs != 0 || !memory().MayRepair(key) {
		t.Error("repairs of long ago count")
	}
}
