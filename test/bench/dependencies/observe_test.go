package main

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tandem-addons/tandem/test/audit"
)

// writeEntry returns a write of an add-on's status on cluster c, received and answered that many milliseconds after a fixed time.
func writeEntry(by, name string, code, received, answered int) audit.Entry {
	at := func(milliseconds int) metav1.MicroTime {
		return metav1.NewMicroTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(milliseconds) * time.Millisecond))
	}
	var e audit.Entry
	e.Verb, e.User.Username, e.ResponseStatus.Code = "patch", by, code
	e.ObjectRef.Resource, e.ObjectRef.Subresource = "managedclusteraddons", "status"
	e.ObjectRef.Namespace, e.ObjectRef.Name = "c", name
	e.RequestReceivedTimestamp, e.StageTimestamp = at(received), at(answered)
	return e
}

// on returns the entry for another resource.
func on(resource string, e audit.Entry) audit.Entry {
	e.ObjectRef.Resource, e.ObjectRef.Subresource = resource, ""
	return e
}

func TestObservation(t *testing.T) {
	// b requires a, and c requires b.
	due := []verdict{{addOn: "b", cause: "a"}, {addOn: "c", cause: "b"}}
	change := writeEntry(others, "a", 200, 0, 10)
	b, c := writeEntry(judge, "b", 200, 12, 15), writeEntry(judge, "c", 200, 18, 22)

	type outcome struct {
		Complete                           bool
		Writes, Surplus, Conflicts, Events int
		Failed                             int
		Milliseconds                       float64
	}
	for name, tc := range map[string]struct {
		entries []audit.Entry
		want    outcome
	}{
		"a change alone leaves verdicts missing": {
			entries: []audit.Entry{change}, want: outcome{},
		},
		"with every verdict written it is complete, from the change's answer to the last verdict's": {
			entries: []audit.Entry{change, b, c}, want: outcome{Complete: true, Writes: 2, Milliseconds: 12},
		},
		"a verdict that is logged before the change is still to be compared with it": {
			entries: []audit.Entry{b, c}, want: outcome{Writes: 2, Milliseconds: 10},
		},
		"a write that arrives before the change is answered counts from its arrival": {
			entries: []audit.Entry{change, writeEntry(judge, "b", 200, 8, 15), c}, want: outcome{Complete: true, Writes: 2, Milliseconds: 14},
		},
		"writing a verdict twice is surplus": {
			entries: []audit.Entry{change, b, c, c}, want: outcome{Complete: true, Writes: 3, Surplus: 1, Milliseconds: 12},
		},
		"a write of something else is surplus": {
			entries: []audit.Entry{change, b, c, on("managedclusteraddons", b)},
			want:    outcome{Complete: true, Writes: 3, Surplus: 1, Milliseconds: 12},
		},
		"an event is counted by itself": {
			entries: []audit.Entry{change, b, c, on("events", b)}, want: outcome{Complete: true, Writes: 2, Events: 1, Milliseconds: 12},
		},
		"a conflict is no write": {
			entries: []audit.Entry{change, b, writeEntry(judge, "c", 409, 16, 17)}, want: outcome{Writes: 1, Conflicts: 1, Milliseconds: 5},
		},
		"a JSON patch whose test fails is a conflict": {
			entries: []audit.Entry{change, writeEntry(judge, "b", 422, 16, 17)}, want: outcome{Conflicts: 1},
		},
		"a refusal is a failure": {
			entries: []audit.Entry{change, writeEntry(judge, "b", 403, 16, 17)}, want: outcome{Failed: 1},
		},
		"a change that fails is a failure, and makes nothing necessary": {
			entries: []audit.Entry{writeEntry(others, "a", 500, 0, 10), b, c}, want: outcome{Writes: 2, Failed: 1, Milliseconds: 10},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := expect(due, []string{"c"})
			o.add(tc.entries)
			got := outcome{
				Complete: o.complete(), Writes: len(o.sent), Surplus: len(o.surplus), Conflicts: o.conflicts, Events: o.events,
				Failed: len(o.failed), Milliseconds: o.seconds() * 1000,
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLatencyIsFromTheWriteThatMadeAVerdictNecessary(t *testing.T) {
	o := expect([]verdict{{addOn: "b", cause: "a"}, {addOn: "c", cause: "b"}, {addOn: "d"}}, []string{"c"})
	definition := on("clustermanagementaddons", writeEntry(others, "d", 200, 0, 1))
	definition.ObjectRef.Namespace = ""
	o.add([]audit.Entry{
		definition, writeEntry(others, "a", 200, 0, 10),
		writeEntry(judge, "b", 200, 12, 15), writeEntry(judge, "c", 200, 18, 22), writeEntry(judge, "d", 200, 20, 31),
	})
	got := o.latencies()
	for part, want := range map[string][]time.Duration{"whole": {5, 7, 30}, "reaction": {2, 3, 19}, "write": {3, 4, 11}} {
		durations := map[string][]time.Duration{"whole": got.whole, "reaction": got.reaction, "write": got.write}[part]
		for i := range want {
			want[i] *= time.Millisecond
		}
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(durations))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", part, diff)
		}
	}
	rest := slices.Collect(o.except([]types.NamespacedName{{Namespace: "c", Name: "b"}, {Namespace: "c", Name: "c"}}))
	if diff := cmp.Diff([]types.NamespacedName{{Namespace: "c", Name: "d"}}, rest); diff != "" {
		t.Errorf("all but two (-want +got):\n%s", diff)
	}
}
