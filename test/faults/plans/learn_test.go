package plans

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/test/faults/proxy"
)

func status(plan, uid, state, step string) map[string]any {
	return map[string]any{"status": map[string]any{
		"execution": map[string]any{"plan": plan, "uid": uid},
		"planStatus": map[string]any{plan: map[string]any{
			"status": state, "phases": []any{map[string]any{"steps": []any{map[string]any{"name": "a", "status": step}}}},
		}},
	}}
}

func TestDescribe(t *testing.T) {
	for want, w := range map[string]*proxy.Write{
		"apply configmaps X-base by engine": {Verb: "apply", Resource: "configmaps", Name: "run7-base", Manager: "addon-agent-engine"},
		"create operatorversions faulty-1.0.0-UID by mirror": {
			Verb: "create", Resource: "operatorversions", Name: "faulty-1.0.0-0123abcd", Manager: "addon-agent-mirror",
		},
		"update instances/status X (deploy runs, a done)": {
			Verb: "update", Resource: "instances", Subresource: "status", Name: "run7", Body: status("deploy", "1", "IN_PROGRESS", "COMPLETE"),
		},
	} {
		if got := Describe(w, "run7"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNormalRemovesHashesOfConfigs(t *testing.T) {
	if got, want := Normal("run7: "+strings.Repeat("0a", 32)+" "+strings.Repeat("0a", 31), "run7"), "X: HASH "+strings.Repeat("0a", 31); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPlansOfASeedAreTheSame(t *testing.T) {
	places := []Place{{"s", "1-deploy", "agent-hub", "a"}, {"s", "1-deploy", "agent-hub", "b"}}
	plans := Plans(places, 7)
	if len(plans) != len(places)*(len(patterns)+1) {
		t.Errorf("%d plans: %v", len(plans), plans)
	}
	first, second := Shuffle(plans, 7), Shuffle(Plans(places, 7), 7)
	if !cmp.Equal(first, second) {
		t.Error(cmp.Diff(first, second))
	}
	if cmp.Equal(first, Shuffle(plans, 8)) {
		t.Error("another seed has the same order")
	}
	slices.Reverse(plans)
	if again := Shuffle(plans, 7); !cmp.Equal(first, again) {
		t.Error("the order depends on the order of the plans: ", cmp.Diff(first, again))
	}
}

func TestPartsAreAllPlans(t *testing.T) {
	var places []Place
	for _, write := range []string{"a", "b", "c", "d"} {
		places = append(places, Place{"s", "1-deploy", "agent-hub", write})
	}
	plans := Shuffle(Plans(places, 7), 7)
	seen := map[Plan]int{}
	for k := range uint64(3) {
		part := Part(plans, k+1, 3)
		if len(part) == 0 || len(part) == len(plans) {
			t.Errorf("part %d has %d of %d plans", k+1, len(part), len(plans))
		}
		for _, p := range part {
			seen[p]++
		}
	}
	for _, p := range plans {
		if seen[p] != 1 {
			t.Errorf("%s is in %d parts", p, seen[p])
		}
	}
}

func TestTally(t *testing.T) {
	record := func(uid string) *proxy.Write {
		return &proxy.Write{
			Verb: "update", Resource: "instances", Subresource: "status", Name: "run7", Code: 200, Body: status("deploy", uid, "COMPLETE", "COMPLETE"),
		}
	}
	refused := record("3")
	refused.Code = 409
	got := Tally([]*proxy.Write{
		{Verb: "apply", Resource: "configmaps", Name: "run7-base", Code: 201}, {Verb: "apply", Resource: "configmaps", Name: "run7-base", Code: 200},
		{Verb: "create", Resource: "configmaps", Name: "run7-dry", Code: 201, IsDryRun: true},
		{Verb: "create", Resource: "events", Name: "e", Code: 201}, {Verb: "delete", Resource: "configmaps", Name: "run7-base", Code: 200},
		{Verb: "delete", Resource: "configmaps", Name: "run7-base", Code: 404}, {Verb: "delete", Resource: "manifestworks", Name: "run7", Code: 200},
		{Verb: "delete", Resource: "instances", Name: "run7", UID: "held", Code: 200}, {Verb: "delete", Resource: "instances", Name: "run7", UID: "held", Code: 200},
		{Verb: "delete", Resource: "instances", Name: "run7", UID: "other", Code: 200}, record("1"), record("1"), record("2"), refused,
	}, "run7")
	want := map[string]int{"create configmaps X-base": 1, "delete configmaps X-base": 1, "delete instances X": 2, "start deploy of X": 2}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if different := Differences(want, map[string]int{"create configmaps X-base": 2, "delete instances X": 2, "start deploy of X": 2}); len(different) != 2 {
		t.Errorf("differences: %q", different)
	}
}

func TestBatchesHaveOnePlanForEachAction(t *testing.T) {
	plan := func(scenario, action, write string) Plan {
		return Plan{Place: Place{Scenario: scenario, Action: action, Link: "agent@hub", Write: write}, Pattern: Before}
	}
	a1, a2, b1, c1, c2 := plan("s", "1-a", "1"), plan("s", "1-a", "2"), plan("s", "2-b", "1"), plan("t", "1-a", "1"), plan("t", "2-b", "1")
	got := Batches([]Plan{a1, a2, c1, b1, c2})
	if want := [][]Plan{{a1, b1}, {a2}, {c1, c2}}; !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestWorking(t *testing.T) {
	for metrics, want := range map[string]bool{
		"workqueue_depth{name=\"a\"} 0\ncontroller_runtime_active_workers{controller=\"a\"} 0\nother 3\n": false,
		"workqueue_depth{name=\"a\"} 0\nworkqueue_depth{name=\"b\"} 2\n":                                  true,
		"controller_runtime_active_workers{controller=\"a\"} 1\n":                                         true,
		"addon_queue_backlog{controller=\"a\"} 1":                                                         true,
	} {
		if got := IsWorking(metrics); got != want {
			t.Errorf("%q: %t", metrics, got)
		}
	}
}

func TestQueue(t *testing.T) {
	plan := func(action string) Plan { return Plan{Place: Place{Scenario: "s", Action: action}, Pattern: Before} }
	one, two, three := plan("1-a"), plan("2-b"), plan("3-c")
	pending := newQueue([]Plan{one, two, three}, time.Time{})
	for _, run := range []struct {
		want    []Plan
		results map[Plan]result
	}{
		{[]Plan{one, two, three}, map[Plan]result{one: unmet, two: failed}}, // three was not reached in time
		{[]Plan{one, three}, map[Plan]result{one: unmet, three: passed}},
		{nil, nil},
	} {
		got := pending.next()
		if !cmp.Equal(got, run.want) {
			t.Fatal(cmp.Diff(run.want, got))
		}
		pending.record(got, run.results)
	}
	if text := pending.report(); !strings.Contains(text, ": 1 passed 1 failed 1 not reached 0 not tried") {
		t.Error(text)
	}
}

func TestQueueEndsIfRunsFailBeforeTheirFirstWrite(t *testing.T) {
	pending := newQueue([]Plan{{Place: Place{Scenario: "s", Action: "1-a"}, Pattern: Before}}, time.Time{})
	for range interruptions {
		batch := pending.next()
		if len(batch) != 1 {
			t.Fatalf("%d plans in the next run, want 1", len(batch))
		}
		pending.record(batch, nil)
	}
	if batch := pending.next(); batch != nil {
		t.Errorf("%v is planned again", batch)
	}
}
