package plans

import (
	"slices"
	"testing"

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
		{Verb: "create", Resource: "events", Name: "e", Code: 201}, {Verb: "delete", Resource: "configmaps", Name: "run7-base", Code: 200},
		{Verb: "delete", Resource: "configmaps", Name: "run7-base", Code: 404}, record("1"), record("1"), record("2"), refused,
	}, "run7")
	want := map[string]int{"create configmaps X-base": 1, "delete configmaps X-base": 1, "start deploy of X": 2}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if different := Differences(want, map[string]int{"create configmaps X-base": 2, "start deploy of X": 2}); len(different) != 2 {
		t.Errorf("differences: %q", different)
	}
}
