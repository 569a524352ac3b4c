package apply

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSettle(t *testing.T) {
	earlier := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := earlier.Add(time.Hour)
	stored := metav1.Condition{
		Type: "Degraded", Status: metav1.ConditionTrue, Reason: "A", Message: "a", ObservedGeneration: 1,
		LastTransitionTime: metav1.NewTime(earlier),
	}
	with := func(change func(*metav1.Condition)) metav1.Condition {
		c := stored
		c.LastTransitionTime = metav1.Time{}
		change(&c)
		return c
	}
	for name, tc := range map[string]struct {
		current []metav1.Condition
		want    metav1.Condition
		changed bool
		at      time.Time
	}{
		"a condition that is not there yet is written, now": {
			current: nil, want: with(func(*metav1.Condition) {}), changed: true, at: now,
		},
		"the same condition is not written again": {
			current: []metav1.Condition{stored}, want: with(func(*metav1.Condition) {}), changed: false, at: earlier,
		},
		"another message keeps the transition time": {
			current: []metav1.Condition{stored}, want: with(func(c *metav1.Condition) { c.Message = "b" }), changed: true, at: earlier,
		},
		"another reason keeps the transition time": {
			current: []metav1.Condition{stored}, want: with(func(c *metav1.Condition) { c.Reason = "B" }), changed: true, at: earlier,
		},
		"another observed generation keeps the transition time": {
			current: []metav1.Condition{stored}, want: with(func(c *metav1.Condition) { c.ObservedGeneration = 2 }), changed: true, at: earlier,
		},
		"another status is a transition": {
			current: []metav1.Condition{stored}, want: with(func(c *metav1.Condition) { c.Status = metav1.ConditionFalse }), changed: true, at: now,
		},
		"a condition of another type does not count": {
			current: []metav1.Condition{stored}, want: with(func(c *metav1.Condition) { c.Type = "Available" }), changed: true, at: now,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := MergeCondition(tc.current, tc.want, now)
			if changed != tc.changed {
				t.Errorf("changed: got %v, want %v", changed, tc.changed)
			}
			if !got.LastTransitionTime.Time.Equal(tc.at) {
				t.Errorf("lastTransitionTime: got %v, want %v", got.LastTransitionTime, tc.at)
			}
			got.LastTransitionTime = metav1.Time{}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettleCutsAMessageThatIsTooLong(t *testing.T) {
	long := metav1.Condition{Type: "Degraded", Status: metav1.ConditionTrue, Message: strings.Repeat("é", messageLimit)}
	got, changed := MergeCondition(nil, long, time.Time{})
	if !changed || len(got.Message) > messageLimit || !utf8.ValidString(got.Message) || !strings.HasSuffix(got.Message, "é…") {
		t.Fatalf("changed %v, %d bytes, ending in %q", changed, len(got.Message), got.Message[len(got.Message)-8:])
	}
	if _, changed := MergeCondition([]metav1.Condition{got}, long, time.Time{}); changed {
		t.Error("the same message would be written again")
	}
}

func TestRelease(t *testing.T) {
	current := []metav1.Condition{
		{Type: "Available", Status: metav1.ConditionTrue, Reason: "Works"},
		{Type: "Degraded", Status: metav1.ConditionTrue, Reason: "Ours"},
	}
	for name, tc := range map[string]struct {
		current []metav1.Condition
		reasons []string
		want    []Operation
	}{
		"a condition with one of the reasons is tested and removed": {
			current: current, reasons: []string{"Other", "Ours"},
			want: []Operation{
				{Op: "test", Path: "/status/conditions/1/type", Value: "Degraded"},
				{Op: "test", Path: "/status/conditions/1/reason", Value: "Ours"},
				{Op: "remove", Path: "/status/conditions/1"},
			},
		},
		"a condition with a foreign reason stays":  {current: current, reasons: []string{"Other"}},
		"a condition that is not there is no work": {current: current[:1], reasons: []string{"Ours"}},
		"without reasons nothing is removed":       {current: current},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Release(tc.current, "Degraded", tc.reasons...)); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
		})
	}
}
