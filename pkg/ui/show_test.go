package ui

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestAgo(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		0: "just now", 59 * time.Second: "just now", time.Minute: "1m ago", 59*time.Minute + 59*time.Second: "59m ago", time.Hour: "1h ago",
		47 * time.Hour: "47h ago", 48 * time.Hour: "2d ago", 1000 * 24 * time.Hour: "1000d ago",
		-59 * time.Second: "just now", -time.Minute: "2026-01-02 03:05:05Z",
	} {
		if got := momentOf(&metav1.Time{Time: now.Add(-ago)}, now).Ago(); got != want {
			t.Errorf("%v: %q, not %q", ago, got, want)
		}
	}
	if !momentOf(nil, now).IsZero() {
		t.Error("a missing time is one")
	}
}

func TestMessagesAreShownOnceAtTheirDeepestPlace(t *testing.T) {
	plan := func(plan, phase, step, task string) kudo.PlanStatus {
		return kudo.PlanStatus{Message: plan, Phases: []kudo.PhaseStatus{{Message: phase, Steps: []kudo.StepStatus{
			{Message: step, Tasks: []kudo.TaskStatus{{Name: "other"}, {Message: task}}}, {},
		}}}}
	}
	for name, test := range map[string]struct{ given, want kudo.PlanStatus }{
		"the same everywhere":             {plan("m", "m", "m", "m"), plan("", "", "", "m")},
		"with the path to the task":       {plan(`phase "a": step "b": m`, `step "b": m`, "", "m"), plan("", "", "", "m")},
		"of a step, without that of task": {plan("m", "", "m", ""), plan("", "", "m", "")},
		"different ones":                  {plan("timed out: m", "b", "c", "d"), plan("timed out: m", "b", "c", "d")},
		"of the plan only":                {plan("cancelled", "", "", ""), plan("cancelled", "", "", "")},
	} {
		given := *test.given.DeepCopy()
		if diff := cmp.Diff(test.want, withMessagesOnce(test.given)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(given, test.given); diff != "" {
			t.Errorf("%s: the status was changed: %s", name, diff)
		}
	}
}
