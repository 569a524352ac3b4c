package release

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// world is a cluster with one Helm task. What it records survives a kill of the agent, except for the record of a pass.
type world struct {
	t         *testing.T
	rendering Rendering
	postHooks kudo.PostHookPolicy
	execution types.UID

	stored  kudo.TaskRecord
	objects map[string]*unstructured.Unstructured
	applied bool // the manifests
	healthy bool // and so are they, two ticks later

	// fails are the hooks that fail, and log is what happens, in order.
	fails map[string]bool
	log   []string

	// steps are what a kill may precede; killAt is the step of the kill, and killed whether it has happened.
	steps, killAt int
	killed        bool
}

// newWorld returns a world with the objects of a YAML document a hook: those with annotation helm.sh/hook, with their events.
func newWorld(t *testing.T, hooks ...Hook) *world {
	t.Helper()
	return &world{
		t: t, rendering: Rendering{Hooks: hooks}, execution: "first", stored: kudo.TaskRecord{Task: "app"},
		objects: map[string]*unstructured.Unstructured{}, fails: map[string]bool{}, killAt: -1,
	}
}

// hook returns a hook with an object of the kind; policies are before-hook-creation if there are none.
func hook(t *testing.T, kind, name, spec string, events []Event, policies ...DeletePolicy) Hook {
	t.Helper()
	apiVersion := map[string]string{"Job": "batch/v1", "CustomResourceDefinition": "apiextensions.k8s.io/v1"}[kind]
	if apiVersion == "" {
		apiVersion = "v1"
	}
	o := &unstructured.Unstructured{}
	text := fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: ns}, spec: %s}", apiVersion, kind, name, spec)
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	if len(policies) == 0 {
		policies = []DeletePolicy{BeforeHookCreation}
	}
	return Hook{Object: Object{Object: o}, Events: events, DeletePolicies: policies}
}

// kill reports whether the agent is killed now.
func (w *world) kill() bool {
	w.steps++
	if w.killed || w.steps-1 != w.killAt {
		return false
	}
	w.killed = true
	return true
}

// pass executes one pass of the agent, up to a kill, and returns its outcome.
func (w *world) pass() (outcome plan.Outcome, ended bool) {
	o := Observation{
		Execution: w.execution, PostHooks: w.postHooks, Rendering: w.rendering, Stored: w.stored, Record: w.stored, Hooks: map[int]Seen{},
	}
	for {
		if w.kill() {
			return plan.Outcome{}, false
		}
		d := Decide(o)
		o.Record = d.Record
		var h Hook
		if d.Event != "" {
			h = w.rendering.Hooks[d.Hook]
		}
		switch d.Kind {
		case End:
			if w.kill() {
				return plan.Outcome{}, false
			}
			w.stored = d.Record
			return d.Outcome, d.Outcome.Status == kudo.Complete || d.Outcome.Status == kudo.FatalError
		case ReadHook:
		case ApplyHook:
			w.log = append(w.log, fmt.Sprint("apply ", d.Event, " ", h.Object.Object.GetName()))
			w.put(h.Started(d.Event))
		case RestoreHook:
			status := w.objects[nameOf(h)].Object["status"]
			w.put(h.Restored(d.Event))
			w.objects[nameOf(h)].Object["status"] = status
		case DeleteHook:
			w.log = append(w.log, fmt.Sprint("delete ", h.Object.Object.GetName()))
			delete(w.objects, nameOf(h))
		case ApplyManifests:
			if !w.applied {
				w.log = append(w.log, "manifests")
			}
			w.applied = true
			o.Manifests = &Manifests{Applied: true, Outcome: plan.Outcome{Status: kudo.InProgress, Message: "waits"}}
			if w.healthy {
				o.Manifests.Outcome = plan.Outcome{Status: kudo.Complete}
			}
			continue
		}
		o.Hooks[d.Hook] = Seen{Live: w.objects[nameOf(h)]}
	}
}

func nameOf(h Hook) string { return h.Object.Object.GetKind() + "/" + h.Object.Object.GetName() }

// put applies an object.
func (w *world) put(o *unstructured.Unstructured) {
	annotations := o.GetAnnotations()
	annotations[kudo.AnnotationExecution] = string(w.execution)
	o.SetAnnotations(annotations)
	w.objects[o.GetKind()+"/"+o.GetName()] = o.DeepCopy()
}

// tick lets Jobs and Pods end, and deletes Jobs whose time to live is over.
func (w *world) tick() {
	w.healthy = w.applied
	for _, key := range slices.Sorted(maps.Keys(w.objects)) {
		o := w.objects[key]
		if !runs(o) {
			continue
		}
		if o.Object["status"] != nil {
			if plan.IsShortLived(o) {
				w.log = append(w.log, "expire "+o.GetName())
				delete(w.objects, key)
			}
			continue
		}
		w.log = append(w.log, "ran "+o.GetName())
		status := map[string]any{"phase": "Succeeded", "succeeded": int64(1), "conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
		if w.fails[o.GetName()] {
			status = map[string]any{"phase": "Failed", "failed": int64(1), "conditions": []any{
				map[string]any{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "no more"}}}
		}
		o.Object["status"] = status
	}
}

// play lets passes and ticks alternate until the execution has ended.
func (w *world) play() plan.Outcome {
	w.t.Helper()
	for range 60 {
		outcome, ended := w.pass()
		if ended {
			return outcome
		}
		w.tick()
	}
	w.t.Fatalf("did not end; log: %s; record: %+v", strings.Join(w.log, ", "), w.stored)
	return plan.Outcome{}
}

// again starts another execution.
func (w *world) again() {
	w.execution, w.applied, w.healthy, w.log = types.UID(string(w.execution)+"+"), false, false, nil
	w.stored.Upgrade, w.stored.Hooks, w.stored.Applied = w.stored.Installed, nil, false
}

func (w *world) check(want ...string) {
	w.t.Helper()
	if got := strings.Join(w.log, ", "); got != strings.Join(want, ", ") {
		w.t.Errorf("got  %s\nwant %s", got, strings.Join(want, ", "))
	}
}

var install, upgrade = []Event{PreInstall}, []Event{PreUpgrade}

func TestOrder(t *testing.T) {
	both := []Event{PreInstall, PreUpgrade}
	w := newWorld(t, hook(t, "ConfigMap", "settings", "{}", install), hook(t, "Job", "migrate", "{}", both),
		hook(t, "Job", "seed", "{}", []Event{PostInstall}, HookSucceeded))
	if outcome := w.play(); outcome.Status != kudo.Complete {
		t.Fatal(outcome)
	}
	w.check("apply pre-install settings", "apply pre-install migrate", "ran migrate", "manifests", "apply post-install seed", "ran seed", "delete seed")
	if !w.stored.Installed || !w.stored.Applied {
		t.Errorf("the record lacks what has happened: %+v", w.stored)
	}
	w.again()
	if outcome := w.play(); outcome.Status != kudo.Complete {
		t.Fatal(outcome)
	}
	w.check("delete migrate", "apply pre-upgrade migrate", "ran migrate", "manifests")
	if w.objects["ConfigMap/settings"].GetAnnotations()[kudo.AnnotationExecution] != "first" {
		t.Error("an upgrade has touched a hook of the installation")
	}
}

func TestPostHooksWaitForHealth(t *testing.T) {
	for policy, unblocks := range map[kudo.PostHookPolicy]bool{"": true, kudo.PostHooksApplied: true, kudo.PostHooksHealthy: false} {
		w := newWorld(t, hook(t, "ConfigMap", "unblock", "{}", []Event{PostInstall}))
		w.postHooks = policy
		_, _ = w.pass()
		if applied := w.objects["ConfigMap/unblock"] != nil; applied != unblocks {
			t.Errorf("postHooks %q: the hook is applied before the manifests are healthy: %v, want %v", policy, applied, unblocks)
		}
	}
}

// TestAHookRunsOnceHoweverOftenTheAgentIsKilled kills the agent before every step. A Job with a time to live of zero is deleted as soon as it may.
func TestAHookRunsOnceHoweverOftenTheAgentIsKilled(t *testing.T) {
	spec := "{ttlSecondsAfterFinished: 0}"
	make := func() *world {
		return newWorld(t,
			hook(t, "Job", "first", spec, install), hook(t, "Job", "second", spec, install, HookSucceeded),
			hook(t, "Pod", "third", "{}", install, HookSucceeded, BeforeHookCreation), hook(t, "Job", "both", spec, []Event{PreInstall, PostInstall}),
			hook(t, "Job", "last", "{}", []Event{PostInstall}, HookFailed))
	}
	calm := make()
	calm.play()
	for at := range calm.steps {
		w := make()
		w.killAt = at
		if outcome := w.play(); outcome.Status != kudo.Complete {
			t.Errorf("killed before step %d: %+v", at, outcome)
		}
		count := map[string]int{}
		for _, line := range w.log {
			if name, ran := strings.CutPrefix(line, "ran "); ran {
				count[name]++
			}
		}
		want := map[string]int{"first": 1, "second": 1, "third": 1, "both": 2, "last": 1}
		if !maps.Equal(count, want) {
			t.Errorf("killed before step %d: hooks ran %v, want %v; log: %s", at, count, want, strings.Join(w.log, ", "))
		}
		w.tick()
		if got := slices.Sorted(maps.Keys(w.objects)); !slices.Equal(got, []string{"Job/last"}) {
			t.Errorf("killed before step %d: left %v", at, got)
		}
	}
}

func TestAFailedHookEndsTheExecution(t *testing.T) {
	w := newWorld(t, hook(t, "Job", "check", "{ttlSecondsAfterFinished: 0}", install, HookFailed), hook(t, "Job", "next", "{}", install))
	w.fails["check"] = true
	outcome := w.play()
	if want := "hook pre-install: Job ns/check: "; outcome.Status != kudo.FatalError || !strings.HasPrefix(outcome.Message, want) {
		t.Errorf("got %+v, want a message with %q", outcome, want)
	}
	w.check("apply pre-install check", "ran check", "delete check")
	if w.stored.Installed || w.stored.Applied {
		t.Errorf("the record says that more has happened: %+v", w.stored)
	}
	w.again()
	w.fails["check"] = false
	if outcome := w.play(); outcome.Status != kudo.Complete {
		t.Errorf("the next execution: %+v", outcome)
	}
	if w.stored.Upgrade {
		t.Error("an execution after one that failed counts as an upgrade")
	}
}

func TestAHookThatIsDeletedWhileItRuns(t *testing.T) {
	w := newWorld(t, hook(t, "Job", "check", "{}", install))
	_, _ = w.pass()
	delete(w.objects, "Job/check")
	outcome, _ := w.pass()
	if want := "hook pre-install: Job ns/check: was deleted while it ran"; outcome.Status != kudo.FatalError || outcome.Message != want {
		t.Errorf("got %+v, want %q", outcome, want)
	}
}

func TestDefinitionsAreNeverDeletedByPolicy(t *testing.T) {
	w := newWorld(t, hook(t, "CustomResourceDefinition", "things", "{}", install, HookSucceeded))
	w.play()
	w.check("apply pre-install things", "manifests")
	w.again()
	w.stored.Upgrade = false
	w.play()
	w.check("apply pre-install things", "manifests")
}

func TestAHookWithoutPolicyForItsCreation(t *testing.T) {
	w := newWorld(t, hook(t, "ConfigMap", "kept", "{}", upgrade, HookFailed), hook(t, "Job", "again", "{}", upgrade, HookFailed))
	w.stored.Installed = true
	w.again()
	w.play()
	w.again()
	w.play()
	w.check("apply pre-upgrade kept", "delete again", "apply pre-upgrade again", "ran again", "manifests")
}

func TestAHookWhoseObjectBelongsToNoInstance(t *testing.T) {
	for kind, want := range map[string]Kind{"ConfigMap": ApplyHook, "Job": End} {
		hooks := []Hook{hook(t, kind, "a", "{}", []Event{PreInstall})}
		live := hooks[0].Started(PreInstall)
		live.SetAnnotations(map[string]string{kudo.AnnotationExecution: "first", kudo.AnnotationHook: string(PreInstall)}) // anyone may write this
		o := Observation{
			Execution: "first", Rendering: Rendering{Hooks: hooks}, Record: kudo.TaskRecord{Task: "app"}, Hooks: map[int]Seen{0: {Live: live, Free: true}},
		}
		decision := Decide(o)
		if decision.Kind != want || len(decision.Record.Hooks) > 0 {
			t.Errorf("%s: %s, recorded %v", kind, decision.Kind, decision.Record.Hooks)
		}
		if kind == "Job" && (decision.Outcome.Status != kudo.Error || !strings.Contains(decision.Outcome.Message, "delete it")) {
			t.Errorf("got %v", decision.Outcome)
		}
	}
}
