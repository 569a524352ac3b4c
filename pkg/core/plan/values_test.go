package plan_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// reference returns a reference of parameter S with the digest of a value; without a value, it is not known.
func reference(secret, key, value string) []kudo.StartedParameterFrom {
	f := kudo.StartedParameterFrom{ParameterFrom: kudo.ParameterFrom{Name: "S", SecretKeyRef: kudo.SecretKeyRef{Name: secret, Key: "k"}}}
	if value != "" {
		f.Digest, f.DigestKey = "digest of "+value, key
	}
	return []kudo.StartedParameterFrom{f}
}

// versionWithRotate returns a version whose sensitive parameter S triggers plan rotate.
func versionWithRotate() *kudo.OperatorVersionSpec {
	noop := kudo.Plan{Phases: []kudo.Phase{{Name: "p", Steps: []kudo.Step{{Name: "s", Tasks: []string{"t"}}}}}}
	return &kudo.OperatorVersionSpec{
		Parameters: []kudo.Parameter{{Name: "S", Sensitive: new(true), Trigger: "rotate"}, {Name: "P", Trigger: "other"}},
		Plans:      map[string]kudo.Plan{"deploy": noop, "rotate": noop, "other": noop, "cleanup": noop},
	}
}

func TestAChangedSecretIsAChangedParameter(t *testing.T) {
	for name, test := range map[string]struct {
		before, after []kudo.StartedParameterFrom
		want          bool
	}{
		"none":                           {nil, nil, false},
		"a new reference":                {nil, reference("a", "1", "x"), true},
		"a removed reference":            {reference("a", "1", "x"), nil, true},
		"the same value":                 {reference("a", "1", "x"), reference("a", "1", "x"), false},
		"the same value elsewhere":       {reference("a", "1", "x"), reference("b", "1", "x"), false},
		"another value":                  {reference("a", "1", "x"), reference("a", "1", "y"), true},
		"another key of digests":         {reference("a", "1", "x"), reference("a", "2", "y"), false},
		"a Secret that is missing":       {reference("a", "1", "x"), reference("a", "", ""), false},
		"another Secret that is missing": {reference("a", "1", "x"), reference("b", "", ""), true},
		"on the hub, without any digest": {reference("a", "", ""), reference("a", "", ""), false},
		"on the hub, with another place": {reference("a", "", ""), reference("b", "", ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.Triggers(versionWithRotate().Parameters, plan.Values{From: test.before}, plan.Values{From: test.after})
			if (len(got) > 0) != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// runningState returns the state of an Instance that runs a plan, or has run it, with value x.
func runningState(name string, status kudo.ExecutionStatus, desired []kudo.StartedParameterFrom) plan.State {
	version := versionWithRotate()
	return plan.State{
		Version: version, LastVersion: version, LastStatus: status, Generation: 1, Whole: &kudo.WholeVersion{},
		Last:      &kudo.Execution{UID: "1", Plan: name, Generation: 1, ParametersFrom: reference("a", "1", "x")},
		Sensitive: plan.Sensitive{From: desired},
	}
}

func TestPlansOfASensitiveParameter(t *testing.T) {
	rotated := reference("a", "1", "y")
	for name, test := range map[string]struct {
		state func() plan.State
		want  string // the plan that starts
		from  []kudo.StartedParameterFrom
	}{
		"a changed value starts its trigger":      {func() plan.State { return runningState("deploy", kudo.Complete, rotated) }, "rotate", rotated},
		"a changed value waits for another plan":  {func() plan.State { return runningState("deploy", kudo.InProgress, rotated) }, "", nil},
		"a changed value supersedes one in ERROR": {func() plan.State { return runningState("deploy", kudo.Error, rotated) }, "rotate", rotated},
		"a changed value restarts its own plan":   {func() plan.State { return runningState("rotate", kudo.InProgress, rotated) }, "rotate", rotated},
		"an unchanged one starts nothing":         {func() plan.State { return runningState("deploy", kudo.Complete, reference("a", "1", "x")) }, "", nil},
		"another parameter keeps the value": {func() plan.State {
			s := runningState("deploy", kudo.Complete, reference("a", "1", "x"))
			s.Generation, s.Parameters = 2, map[string]string{"P": "p"}
			return s
		}, "other", reference("a", "1", "x")},
		"a plan run by hand keeps the value": {func() plan.State {
			s := runningState("deploy", kudo.Complete, reference("a", "1", "x"))
			s.Request = kudo.PlanExecution{PlanName: "other", UID: "2"}
			return s
		}, "other", reference("a", "1", "x")},
		"a removal keeps the value, although its Secret is missing": {func() plan.State {
			s := runningState("deploy", kudo.Complete, reference("a", "", ""))
			s.Sensitive.Unresolved, s.Removing = "missing", true
			return s
		}, "cleanup", reference("a", "1", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			choice, err := plan.Choose(test.state())
			if err != nil {
				t.Fatal(err)
			}
			started := &kudo.Execution{}
			if choice.Start != nil {
				started = choice.Start
			}
			if diff := cmp.Diff(test.want, started.Plan); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.from, started.ParametersFrom); diff != "" {
				t.Error(diff)
			}
			if choice.Start != nil && test.want == "rotate" && !choice.Restart {
				t.Error("no pod restarts")
			}
		})
	}
}

func TestNothingStartsWithoutItsSensitiveValues(t *testing.T) {
	first := plan.State{Version: versionWithRotate(), Sensitive: plan.Sensitive{From: reference("a", "", ""), Unresolved: "Secret a is missing"}}
	byHand := runningState("deploy", kudo.Complete, reference("a", "", ""))
	byHand.Request, byHand.Sensitive.Unresolved = kudo.PlanExecution{PlanName: "other", UID: "2"}, "Secret a is missing"
	for name, s := range map[string]plan.State{"deploy": first, "other": byHand} {
		choice, err := plan.Choose(s)
		var unresolved *plan.UnresolvedError
		if !errors.As(err, &unresolved) || unresolved.Plan != name || choice.Start != nil {
			t.Errorf("plan %s: got %v, %v", name, choice, err)
		}
		if due := plan.Due(s); due != name {
			t.Errorf("plan %s: plan %q is due", name, due)
		}
	}
	idle := runningState("deploy", kudo.Complete, reference("a", "", ""))
	idle.Sensitive.Unresolved = "Secret a is missing"
	if choice, err := plan.Choose(idle); err != nil || choice.Start != nil {
		t.Errorf("an idle Instance: got %v, %v", choice, err)
	}
}

func TestReferencesAreRecordedWithoutAPlan(t *testing.T) {
	s := runningState("deploy", kudo.InProgress, reference("a", "2", "x"))
	s.Sensitive.Rebased = reference("a", "2", "x")
	choice, err := plan.Choose(s)
	if err != nil || !choice.Adopt || choice.Start != nil {
		t.Fatalf("got %v, %v", choice, err)
	}
	o := plan.Observation{
		Instance: &kudo.Instance{Status: kudo.InstanceStatus{
			Execution: s.Last, PlanStatus: map[string]kudo.PlanStatus{"deploy": {Status: kudo.InProgress}},
		}},
		Desired: versionWithRotate(), Running: versionWithRotate(), Sensitive: s.Sensitive,
	}
	action := plan.Decide(o)
	if action.Kind != plan.ActionAdopt {
		t.Fatalf("got %v", action.Kind)
	}
	want := *s.Last
	want.ParametersFrom = s.Sensitive.Rebased
	if diff := cmp.Diff(&want, action.Status.Execution); diff != "" {
		t.Error(diff)
	}
}

func TestAnExecutionWithoutItsValuesWaits(t *testing.T) {
	o := plan.Observation{
		Instance: &kudo.Instance{Status: kudo.InstanceStatus{
			Execution:  &kudo.Execution{UID: "1", Plan: "deploy", ParametersFrom: reference("a", "1", "x")},
			PlanStatus: map[string]kudo.PlanStatus{"deploy": {Status: kudo.InProgress, UID: "1"}},
		}},
		Desired: versionWithRotate(), Running: versionWithRotate(), Sensitive: plan.Sensitive{From: reference("a", "", ""), Lost: "the values are lost"},
	}
	action := plan.Decide(o)
	if action.Kind != plan.ActionWait || action.Ready.Reason != kudo.ReasonSecretNotFound || action.Ready.Message != "the values are lost" {
		t.Errorf("got %v", action)
	}
}
