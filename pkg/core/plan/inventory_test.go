package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

type (
	entries = []kudo.InventoryEntry
	wants   = []*unstructured.Unstructured
)

// config returns the entry of a config map that a task has applied.
func config(name, task string) kudo.InventoryEntry {
	return kudo.InventoryEntry{Kind: "ConfigMap", Namespace: "apps", Name: name, Task: task}
}

// asPending returns the entry of an object that was never applied.
func asPending(entry kudo.InventoryEntry) kudo.InventoryEntry {
	entry.Pending = true
	return entry
}

func TestEntryNamesAnObjectByGroupAndNotByVersion(t *testing.T) {
	v1, v1beta1 := object("Widget", "w", version("example.com/v1")), object("Widget", "w", version("example.com/v1beta1"))
	want := kudo.InventoryEntry{Group: "example.com", Kind: "Widget", Namespace: "apps", Name: "w", Task: "t"}
	for _, o := range (wants{v1, v1beta1}) {
		if diff := cmp.Diff(want, plan.Entry(o, "t")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", o.GetAPIVersion(), diff)
		}
	}
}

func TestTrack(t *testing.T) {
	for name, test := range map[string]struct {
		before entries
		task   string
		wants  wants
		want   entries
	}{
		"what is new is appended in the order in which it is applied": {
			entries{config("a", "one")}, "two", wants{object("ConfigMap", "c"), object("ConfigMap", "b")},
			entries{config("a", "one"), asPending(config("c", "two")), asPending(config("b", "two"))}},
		"what is listed already is not listed twice": {
			entries{config("a", "one")}, "one", wants{object("ConfigMap", "a")}, entries{config("a", "one")}},
		"what another task has applied becomes this one's, at its place": {
			entries{config("a", "one"), config("b", "one")}, "two", wants{object("ConfigMap", "a")},
			entries{config("a", "two"), config("b", "one")}},
		"what the task renders no more stays until it is gone": {
			entries{config("old", "one")}, "one", wants{object("ConfigMap", "new")}, entries{config("old", "one"), asPending(config("new", "one"))}},
		"objects of one name in two kinds, groups or namespaces are two": {
			entries{config("a", "one")}, "one", wants{
				object("Secret", "a"), object("ConfigMap", "a", version("example.com/v1")),
				object("ConfigMap", "a", func(o *unstructured.Unstructured) { o.SetNamespace("other") }),
			},
			entries{config("a", "one"),
				{Kind: "Secret", Namespace: "apps", Name: "a", Task: "one", Pending: true},
				{Group: "example.com", Kind: "ConfigMap", Namespace: "apps", Name: "a", Task: "one", Pending: true},
				{Kind: "ConfigMap", Namespace: "other", Name: "a", Task: "one", Pending: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := append(entries(nil), test.before...)
			got := plan.Track(test.before, test.task, false, test.wants)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, plan.Track(got, test.task, false, test.wants)); diff != "" {
				t.Errorf("the second time changes something:\n%s", diff)
			}
			if diff := cmp.Diff(before, test.before); diff != "" {
				t.Errorf("the input was changed:\n%s", diff)
			}
		})
	}
}

func TestForgetStrikesOffWhicheverTaskAppliedIt(t *testing.T) {
	before := entries{config("a", "one"), config("b", "two")}
	got := plan.Forget(before, config("b", "three"), config("nowhere", ""))
	if diff := cmp.Diff(entries{config("a", "one")}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(entries{config("a", "one"), config("b", "two")}, before); diff != "" {
		t.Errorf("the input was changed:\n%s", diff)
	}
}

func TestServedVersionsAreThoseOfAppliedAPIServices(t *testing.T) {
	inventory := []kudo.InventoryEntry{
		{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1beta1.metrics.k8s.io", Task: "chart"},
		{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1.pending.example.com", Task: "chart", Pending: true},
		{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1", Task: "chart"},
		{Group: "example.com", Kind: "APIService", Name: "v1.other.example.com", Task: "chart"},
		{Kind: "ConfigMap", Namespace: "web", Name: "v1.config", Task: "chart"},
	}
	want := []schema.GroupVersion{{Group: "metrics.k8s.io", Version: "v1beta1"}}
	if diff := cmp.Diff(want, plan.ServedVersions(inventory)); diff != "" {
		t.Error(diff)
	}
}

func TestUnlistedObjects(t *testing.T) {
	listed, unlisted := object("ConfigMap", "a"), object("ConfigMap", "b")
	got := plan.UnlistedObjects(entries{config("a", "another")}, wants{listed, unlisted})
	if diff := cmp.Diff(wants{unlisted}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Objects that one task leaves behind, also after other tasks have applied them.
func TestSurplus(t *testing.T) {
	for name, test := range map[string]struct {
		inventory         entries
		wants             wants
		elsewhere         entries
		inherited, pruned entries
	}{
		"what the task still renders stays": {
			inventory: entries{config("a", "t")}, wants: wants{object("ConfigMap", "a")}},
		"what it renders no more goes": {
			inventory: entries{config("a", "t"), config("b", "t")}, wants: wants{object("ConfigMap", "a")},
			pruned: entries{config("b", "t")}},
		"so it does under its old name, when a parameter in the name has changed": {
			inventory: entries{config("web-1", "t"), config("web-2", "t")}, wants: wants{object("ConfigMap", "web-2")},
			pruned: entries{config("web-1", "t")}},
		"without anything rendered, all of the task's goes": {
			inventory: entries{config("a", "t"), config("b", "t")}, pruned: entries{config("a", "t"), config("b", "t")}},
		"hooks of a chart stay": {
			inventory: entries{config("a", "t"), {Kind: "ConfigMap", Namespace: "ns", Name: "b", Task: "t", Hook: true}}, pruned: entries{config("a", "t")}},
		"objects of another task are ignored": {
			inventory: entries{config("a", "other")}},
		"what another task renders now is that one's": {
			inventory: entries{config("a", "t"), config("b", "t")}, elsewhere: entries{config("a", "other"), config("z", "other")},
			inherited: entries{config("a", "other")}, pruned: entries{config("b", "t")}},
		"what the task renders at another place of the plans stays its own": {
			inventory: entries{config("step-1", "t"), config("step-2", "t")}, wants: wants{object("ConfigMap", "step-1")},
			elsewhere: entries{config("step-1", "t"), config("step-2", "t")}, inherited: entries{config("step-2", "t")}},
	} {
		t.Run(name, func(t *testing.T) {
			inherited, pruned := plan.Inherit(plan.Surplus(test.inventory, "t", test.wants), test.elsewhere)
			if diff := cmp.Diff(test.inherited, inherited, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("inherited (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.pruned, pruned, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("pruned (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVanishedEntries(t *testing.T) {
	version := &kudo.OperatorVersionSpec{Tasks: []kudo.Task{{Name: "new"}, {Name: "both"}}}
	inventory := entries{config("a", "old"), config("b", "both"), config("c", "new"), config("found", "")}
	if vanished := plan.VanishedEntries(inventory, nil); len(vanished) > 0 {
		t.Errorf("of a version that is lost: %v", vanished)
	}
	if diff := cmp.Diff(entries{config("a", "old")}, plan.VanishedEntries(inventory, version)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What the inventory marks is deleted once no plan is owed, not while a rollout may still use it.
func TestPrunable(t *testing.T) {
	version := &kudo.OperatorVersionSpec{Tasks: []kudo.Task{{Name: "t"}}}
	marked := plan.MarkSurplus(entries{config("a", "t"), config("b", "t"), config("old", "gone")}, config("b", "other"))
	surplus := config("b", "t")
	surplus.Surplus = true
	status := func(whole corev1.ObjectReference, owed ...kudo.OwedPlan) kudo.InstanceStatus {
		return kudo.InstanceStatus{
			Execution: &kudo.Execution{UID: "x", Plan: "deploy", OperatorVersion: two, Owed: owed}, Whole: &kudo.WholeVersion{OperatorVersion: whole},
		}
	}
	for name, test := range map[string]struct {
		inventory entries
		status    kudo.InstanceStatus
		want      entries
	}{
		"once no plan is owed":                     {marked, status(two), entries{config("old", "gone"), surplus}},
		"not while the plan that marked is owed":   {marked, status(one, kudo.OwedPlan{Plan: "deploy", Whole: true}), nil},
		"not while a plan that follows it is owed": {marked, status(two, kudo.OwedPlan{Plan: "exporter"}), entries{config("old", "gone")}},
		"not what a task applies again":            {plan.List(marked, config("b", "t")), status(two), entries{config("old", "gone")}},
		"not before the first execution":           {marked, kudo.InstanceStatus{}, nil},
		"once, also if its task has vanished too": {plan.MarkSurplus(marked, config("old", "")), status(two), entries{
			{Kind: "ConfigMap", Namespace: "apps", Name: "old", Task: "gone", Surplus: true}, surplus}},
	} {
		t.Run(name, func(t *testing.T) {
			test.status.Inventory = test.inventory
			if diff := cmp.Diff(test.want, plan.Prunable(test.status, version), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestIsWhole(t *testing.T) {
	execution := func(owed ...kudo.OwedPlan) *kudo.Execution {
		return &kudo.Execution{UID: "x", Plan: "upgrade", OperatorVersion: two, Owed: owed}
	}
	for name, test := range map[string]struct {
		status kudo.InstanceStatus
		want   bool
	}{
		"never executed":       {kudo.InstanceStatus{}, false},
		"the version is whole": {kudo.InstanceStatus{Execution: execution(), Whole: &kudo.WholeVersion{OperatorVersion: two}}, true},
		"a triggered plan is owed": {
			kudo.InstanceStatus{Execution: execution(kudo.OwedPlan{Plan: "exporter"}), Whole: &kudo.WholeVersion{OperatorVersion: two}}, true},
		"the version before was whole": {
			kudo.InstanceStatus{Execution: execution(kudo.OwedPlan{Plan: "upgrade", Whole: true}), Whole: &kudo.WholeVersion{OperatorVersion: one}}, false},
		"it runs again as a whole": {
			kudo.InstanceStatus{Execution: execution(kudo.OwedPlan{Plan: "upgrade", Whole: true}), Whole: &kudo.WholeVersion{OperatorVersion: two}}, false},
	} {
		if got := plan.IsWhole(test.status); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestAppliedLeavesOutWhatARemovalHasOnlyFound(t *testing.T) {
	got := plan.AppliedEntries(entries{config("a", "old"), config("found", ""), config("b", "both")})
	if diff := cmp.Diff(entries{config("a", "old"), config("b", "both")}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// threeSteps returns a plan of three serial steps, and its status with the first complete and the second in that state.
func threeSteps(second kudo.ExecutionStatus) (kudo.Plan, kudo.PlanStatus) {
	spec := kudo.Plan{Phases: []kudo.Phase{{Name: "p"}}}
	for _, name := range []string{"one", "two", "three"} {
		spec.Phases[0].Steps = append(spec.Phases[0].Steps, kudo.Step{Name: name, Tasks: []string{name}})
	}
	status := plan.Begin("deploy", spec, "x", noon)
	return spec, plan.Record(spec, status, map[plan.Task]plan.Outcome{{Step: 0}: {Status: kudo.Complete}, {Step: 1}: {Status: second}}, noon)
}

func TestObjectsArePendingUntilTheyAreApplied(t *testing.T) {
	a, b := object("ConfigMap", "a"), object("ConfigMap", "b")
	listed := plan.Track(entries{config("a", "one")}, "two", false, wants{a, b})
	if diff := cmp.Diff(entries{config("a", "two"), asPending(config("b", "two"))}, listed); diff != "" {
		t.Fatalf("listed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(entries{asPending(config("b", "two"))}, plan.PendingExcept(listed, nil)); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	if got := plan.PendingExcept(listed, entries{config("b", "another")}); len(got) > 0 {
		t.Errorf("expected objects are returned: %v", got)
	}
	before := slices.Clone(listed)
	applied := plan.MarkApplied(listed, plan.Entry(b, ""), false)
	if diff := cmp.Diff(entries{config("a", "two"), config("b", "two")}, applied); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, listed); diff != "" {
		t.Errorf("the input was changed:\n%s", diff)
	}
	if diff := cmp.Diff(applied, plan.Track(applied, "two", false, wants{a, b})); diff != "" {
		t.Errorf("listed again, an applied object is pending:\n%s", diff)
	}
}

func TestPendingOf(t *testing.T) {
	for state, want := range map[kudo.ExecutionStatus][]plan.Task{
		kudo.Pending:    {{Step: 1}},
		kudo.InProgress: nil,
		kudo.Error:      nil,
		kudo.FatalError: nil,
		kudo.Complete:   {{Step: 2}},
	} {
		spec, status := threeSteps(state)
		if diff := cmp.Diff(want, plan.PendingOf(status, plan.Next(spec, status)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", state, diff)
		}
	}
}

func TestEverywhereHasATaskAtEachOfItsPlaces(t *testing.T) {
	version := &kudo.OperatorVersionSpec{
		Tasks: []kudo.Task{{Name: "t"}},
		Plans: map[string]kudo.Plan{
			"update": {Phases: []kudo.Phase{{Name: "p", Steps: []kudo.Step{{Name: "s", Tasks: []string{"t"}}}}}},
			"deploy": {Phases: []kudo.Phase{{Name: "p", Steps: []kudo.Step{{Name: "s", Tasks: []string{"t", "unknown"}}, {Name: "r", Tasks: []string{"t"}}}}}},
		},
	}
	task := kudo.Task{Name: "t"}
	want := []plan.Placed{{"deploy", "p", "s", task}, {"deploy", "p", "r", task}, {"update", "p", "s", task}}
	if diff := cmp.Diff(want, plan.Everywhere(version)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnInventoryIsTornDownFromItsEnd(t *testing.T) {
	none := plan.Groups(nil)
	entry := func(group, kind, name string) kudo.InventoryEntry {
		return kudo.InventoryEntry{Group: group, Kind: kind, Name: name}
	}
	definition := func(name string) kudo.InventoryEntry {
		return entry("apiextensions.k8s.io", "CustomResourceDefinition", name)
	}
	account, roleA, roleB := entry("", "ServiceAccount", "a"), entry("rbac.authorization.k8s.io", "Role", "a"), entry("rbac.authorization.k8s.io", "Role", "b")
	operator, config := entry("apps", "Deployment", "operator"), entry("", "ConfigMap", "c")
	topics, users := definition("topics.kafka.example"), definition("users.kafka.example")
	topic, issuer := entry("kafka.example", "Topic", "t"), entry("cert-manager.io", "Issuer", "i")

	kept := func(entry kudo.InventoryEntry) kudo.InventoryEntry {
		entry.Keep = true
		return entry
	}

	type waves = [][]kudo.InventoryEntry
	list := func(entries ...kudo.InventoryEntry) []kudo.InventoryEntry { return entries }
	for name, c := range map[string]struct {
		applied      []kudo.InventoryEntry
		tree         plan.Groups
		custom, rest waves
	}{
		"nothing":                         {},
		"the last comes first":            {list(account, operator), none, nil, waves{{operator}, {account}}},
		"one kind is deleted immediately": {list(account, roleA, roleB, operator), none, nil, waves{{operator}, {roleB, roleA}, {account}}},
		"not what is in between":          {list(roleA, account, roleB), none, nil, waves{{roleB}, {account}, {roleA}}},
		"kinds of another owner":          {list(operator, issuer, config), none, nil, waves{{config}, {issuer}, {operator}}},
		"kinds of its own come before all else, with their definitions": {
			list(topics, users, account, topic, operator, issuer), none,
			waves{{topic}, {users, topics}}, waves{{issuer}, {operator}, {account}},
		},
		"so do kinds that another Instance of the tree defines": {
			list(issuer, operator, config), plan.Groups{"cert-manager.io": true},
			waves{{issuer}}, waves{{config}, {operator}},
		},
		"not what the package keeps, which is only released": {
			list(kept(topics), users, kept(topic), operator), none,
			waves{{users}}, waves{{operator}, {kept(topic)}, {kept(topics)}},
		},
		"not Kubernetes' own kinds, which no definition can have": {
			list(definition("deployments.apps"), definition("configmaps"), operator, config), none,
			waves{{definition("configmaps"), definition("deployments.apps")}}, waves{{config}, {operator}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(c.applied)
			custom, rest := plan.Teardown(c.applied, c.tree)
			if diff := cmp.Diff([]waves{c.custom, c.rest}, []waves{custom, rest}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, c.applied); diff != "" {
				t.Errorf("the input has changed:\n%s", diff)
			}
		})
	}
}

func TestFits(t *testing.T) {
	many := func(count int, name string) entries {
		var listed entries
		for i := range count {
			listed = append(listed, kudo.InventoryEntry{Group: "apps", Kind: "Deployment", Namespace: "monitoring", Name: fmt.Sprint(name, i), Task: "app"})
		}
		return listed
	}
	hooks := many(5000, "hook-of-a-chart-")
	for i := range hooks {
		hooks[i].Hook = true
	}
	long := strings.Repeat("n", 150)
	for name, test := range map[string]struct {
		inventory  entries
		parameters map[string]string
		says       string
	}{
		"10,000 objects with ordinary names": {many(10000, "prometheus-"), nil, ""},
		"5,000 hooks":                        {hooks, nil, "at most 1300000 bytes of inventory and parameters"},
		"one more":                           {many(10001, "p"), nil, "at most 10000 objects, and this one would have 10001"},
		"7,000 objects with long names and large parameters": {many(7000, long), map[string]string{"CONFIG": strings.Repeat("c", 400<<10)},
			"at most 1300000 bytes of inventory and parameters"},
		"parameters alone": {nil, map[string]string{"CONFIG": strings.Repeat("c", 700<<10)}, "for 0 objects"},
	} {
		err := plan.CheckSize(test.inventory, test.parameters)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
