package main

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/audit"
)

// writeEntry returns a write of that user to Instance p or one of its children, with a response that many milliseconds after noon.
func writeEntry(user, subresource, name string, code, milliseconds int) audit.Entry {
	var e audit.Entry
	e.Verb, e.User.Username, e.ResponseStatus.Code = "patch", user, code
	e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ObjectRef.Name = kudo.GroupVersion.Group, "instances", subresource, name
	e.StageTimestamp = metav1.NewMicroTime(time.Date(2026, 11, 21, 12, 0, 0, milliseconds*int(time.Millisecond), time.UTC))
	return e
}

// progressEntry returns a status with the progress of an execution and its steps.
func progressEntry(t *testing.T, user, name string, milliseconds int, uid types.UID, plan kudo.ExecutionStatus, steps ...kudo.StepStatus) audit.Entry {
	t.Helper()
	var i kudo.Instance
	i.Status.Execution = &kudo.Execution{UID: uid, Plan: kudo.DeployPlan}
	i.Status.PlanStatus = map[string]kudo.PlanStatus{kudo.DeployPlan: {
		Name: kudo.DeployPlan, Status: plan, Message: "why", Phases: []kudo.PhaseStatus{{Steps: steps}},
	}}
	e := writeEntry(user, "status", name, 200, milliseconds)
	var err error
	if e.RequestObject, err = json.Marshal(i); err != nil {
		t.Fatal(err)
	}
	return e
}

func step(name string, status kudo.ExecutionStatus) kudo.StepStatus {
	return kudo.StepStatus{Name: name, Status: status}
}

func TestAChildIsTimedFromItsStepByItsReport(t *testing.T) {
	o := expect([]string{"p"}, nil)
	pending, asked := step("child-1", kudo.Pending), step("child-0", kudo.InProgress)
	entries := []audit.Entry{
		writeEntry(administrator, "", "p", 201, 5),
		progressEntry(t, agentHere, "p", 10, "u", kudo.InProgress, step("settings", kudo.InProgress), step("child-0", kudo.Pending), pending),
		progressEntry(t, agentHere, "p", 20, "u", kudo.InProgress, step("settings", kudo.Complete), asked, pending),
		progressEntry(t, agentHere, "p", 30, "u", kudo.InProgress, step("settings", kudo.Complete), asked, pending),
		progressEntry(t, agentOnHub, "p", 45, "u", kudo.InProgress, step("settings", kudo.Complete), asked, pending),
		writeEntry(manager, "status", "p", 200, 50),
		writeEntry(manager, "", "p.child-0", 409, 55),
		writeEntry(manager, "", "p.child-0", 201, 60),
		writeEntry(manager, "", "p.child-0", 200, 70),
	}
	if active, err := o.add(entries); err != nil || !active {
		t.Fatalf("active %t, error %v", active, err)
	}
	for what, test := range map[string]struct {
		from, to moments
		want     time.Duration
	}{
		"step to child":   {o.asked, o.created, 40 * time.Millisecond},
		"step to report":  {o.asked, o.reported, 25 * time.Millisecond},
		"report to child": {o.reported, o.created, 15 * time.Millisecond},
	} {
		if diff := cmp.Diff([]time.Duration{test.want}, between(test.from, test.to)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	if took := o.ended.Sub(o.began); took != 65*time.Millisecond || o.complete() {
		t.Errorf("took %s, complete %t", took, o.complete())
	}
	if o.manager.all != 4 || o.manager.conflicts != 1 || o.agent.all != 4 || len(o.manager.failed)+len(o.agent.failed) > 0 {
		t.Errorf("addon-manager wrote %+v, addon-agent %+v", o.manager, o.agent)
	}
}

func TestFleetIsCompleteOnceTheHubHasNewExecutions(t *testing.T) {
	known := map[execution]bool{{"p", "old"}: true}
	for sentence, test := range map[string]struct {
		entries  []audit.Entry
		complete bool
		broken   int
		ran      map[string]int
	}{
		"nothing has happened": {nil, false, 0, map[string]int{}},
		"one that is known is reported again": {
			[]audit.Entry{progressEntry(t, agentHere, "p", 1, "old", kudo.Complete), progressEntry(t, agentOnHub, "p", 2, "old", kudo.Complete)},
			false, 0, map[string]int{},
		},
		"the hub does not know yet":        {[]audit.Entry{progressEntry(t, agentHere, "p", 1, "new", kudo.Complete)}, false, 0, map[string]int{"p": 1}},
		"the hub knows":                    {[]audit.Entry{progressEntry(t, agentOnHub, "p", 1, "new", kudo.Complete)}, true, 0, map[string]int{}},
		"the hub knows that it has failed": {[]audit.Entry{progressEntry(t, agentOnHub, "p", 1, "new", kudo.FatalError)}, false, 1, map[string]int{}},
		"a child ran two": {
			[]audit.Entry{progressEntry(t, agentHere, "p.child-0", 1, "a", kudo.Complete), progressEntry(t, agentHere, "p.child-0", 2, "b", kudo.InProgress)},
			false, 0, map[string]int{"p.child-0": 2},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := expect([]string{"p"}, known)
			if _, err := o.add(test.entries); err != nil {
				t.Fatal(err)
			}
			if o.complete() != test.complete || len(o.broken) != test.broken || !maps.Equal(o.ran(), test.ran) {
				t.Errorf("complete %t, broken %q, ran %v", o.complete(), o.broken, o.ran())
			}
		})
	}
}

func TestFailures(t *testing.T) {
	var w writes
	for i, code := range []int{200, 201, 409, 422, 404, 403, 500} {
		e := writeEntry(manager, "", "p", code, i)
		w.add(&e)
	}
	if w.all != 7 || w.conflicts != 2 || len(w.failed) != 2 || len(w.some) != shownWrong {
		t.Errorf("%+v", w)
	}
}

func TestEveryNameOfTheFleetIsMadeOnce(t *testing.T) {
	f := fleet{parents: 3, children: 2, namespaces: 2}
	want := []string{
		"bench-000", "bench-000.child-0", "bench-000.child-1", "bench-001", "bench-001.child-0", "bench-001.child-1",
		"bench-002", "bench-002.child-0", "bench-002.child-1",
	}
	if diff := cmp.Diff(want, f.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if children := slices.DeleteFunc(f.all(), func(name string) bool { return !isChild(name) }); len(children) != 6 {
		t.Errorf("children: %q", children)
	}
}
