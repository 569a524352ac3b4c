package plan_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/window"
)

// upgradeFailed returns an Instance whose plan for version 2 has failed, after version 1 was completely applied with other values. It returns.
func upgradeFailed(change ...func(*plan.Observation)) plan.Observation {
	o := newObservation(kudo.FatalError)
	o.Former = o.Running
	o.Former.Version = "1"
	delete(o.Former.Plans, "update")
	o.Running = o.Running.DeepCopy()
	o.Running.Version, o.Running.Returnable, o.Running.Operator.Name = "2", true, "kafka"
	o.Desired, o.Reference = o.Running, two
	o.Instance.Spec.OnFailure = kudo.FailureReturn
	o.Instance.Spec.Parameters = map[string]string{"PLAIN": "b", "BACKUP": "c"}
	status := &o.Instance.Status
	status.Execution.OperatorVersion, status.Execution.Parameters, status.Execution.Generation = two, maps.Clone(o.Instance.Spec.Parameters), 7
	status.Execution.Owed = []kudo.OwedPlan{{Plan: "deploy", Whole: true, Outcome: kudo.OwedFailed}}
	status.Whole = &kudo.WholeVersion{OperatorVersion: one, Version: "1"}
	status.Former = &kudo.FormerVersion{OperatorVersion: one, Version: "1", Parameters: map[string]string{"PLAIN": "a"}, Cluster: &kudo.ClusterFacts{Name: "c1"}}
	for _, c := range change {
		c(&o)
	}
	return o
}

// startNext returns the observation after the plan that Choose starts.
func startNext(t *testing.T, o plan.Observation) plan.Observation {
	t.Helper()
	choice, err := plan.Choose(o.State())
	if err != nil || choice.Start == nil {
		t.Fatalf("got %v, %v, want a start", choice.Start, err)
	}
	o.Instance = o.Instance.DeepCopy()
	o.Instance.Status = plan.Start(o.Instance.Status, choice, "u", noon)
	o.Running = choice.Version
	return o
}

// endWith returns the observation after its execution has ended with that outcome.
func endWith(o plan.Observation, outcome plan.Outcome) plan.Observation {
	status := o.Instance.Status
	for range 10 {
		outcomes := map[plan.Task]plan.Outcome{}
		for _, task := range plan.Next(o.Running.Plans[status.Execution.Plan], status.PlanStatus[status.Execution.Plan]) {
			outcomes[task] = outcome
		}
		if len(outcomes) == 0 {
			break
		}
		status = o.Advance(status, outcomes)
	}
	o.Instance = o.Instance.DeepCopy()
	o.Instance.Status = status
	return o.Normalize()
}

var succeeded, failed = plan.Outcome{Status: kudo.Complete}, plan.Outcome{Status: kudo.FatalError, Message: "no such class", Passing: true}

// unhealthy completes the plan, after which the Instance was not healthy for long enough.
func unhealthy(o *plan.Observation) {
	status := &o.Instance.Status
	status.Execution.Owed, status.Whole.OperatorVersion = nil, two
	ran := status.PlanStatus["deploy"]
	ran.Status, ran.Message = kudo.Complete, ""
	status.PlanStatus["deploy"] = ran
	o.SoakFailure = "its containers restart again and again"
}

func TestWhenAnInstanceReturns(t *testing.T) {
	onSpec := func(change func(*kudo.InstanceSpec)) func(*plan.Observation) {
		return func(o *plan.Observation) { change(&o.Instance.Spec) }
	}
	onStatus := func(change func(*kudo.InstanceStatus)) func(*plan.Observation) {
		return func(o *plan.Observation) { change(&o.Instance.Status) }
	}
	returns := func(o *plan.Observation) { o.Instance.Status.Execution.Returns = true }
	closed := func(o *plan.Observation) { o.Window = &window.Wait{Message: "closed"} }
	for sentence, test := range map[string]struct {
		o       plan.Observation
		want    string // version that starts
		problem string // in condition Ready if nothing starts
	}{
		"the plan for another version has failed":                    {o: upgradeFailed(), want: "1"},
		"it fails for a reason that may pass":                        {o: upgradeFailed(onStatus(func(s *kudo.InstanceStatus) { s.Execution.Owed[0].RetryTime = &metav1.Time{Time: noon} })), want: "1"},
		"a maintenance window is closed":                             {o: upgradeFailed(closed, returns), want: "1"},
		"a window is closed, and the policy was set after the start": {o: upgradeFailed(closed), problem: `plan "deploy" failed: no image`},
		"a window is closed, for a change, too":                      {o: upgradeFailed(closed, returns, onSpec(func(s *kudo.InstanceSpec) { s.Parameters["PLAIN"] = "c" })), want: "1"},
		"a Secret of a change is missing": {o: upgradeFailed(func(o *plan.Observation) { o.Sensitive.Unresolved = "no Secret" },
			onSpec(func(s *kudo.InstanceSpec) { s.Parameters["PLAIN"] = "c" })), want: "1"},
		"the former version does not support the cluster": {o: upgradeFailed(func(o *plan.Observation) {
			o.Former.KubernetesVersion, o.KubernetesVersion = "<1.30.0", "v1.37.0"
		}), problem: "the former version cannot be applied again: "},
		"values of the spec cannot be read": {o: upgradeFailed(func(o *plan.Observation) { o.Sensitive.Unresolved = "no Secret" }), want: "1"},
		"the policy is Stop":                {o: upgradeFailed(onSpec(func(s *kudo.InstanceSpec) { s.OnFailure = kudo.FailureStop })), problem: `plan "deploy" failed: no image`},
		"there is no policy":                {o: upgradeFailed(onSpec(func(s *kudo.InstanceSpec) { s.OnFailure = "" })), problem: `plan "deploy" failed: no image`},
		"it is a child":                     {o: upgradeFailed(func(o *plan.Observation) { o.Instance.Annotations[kudo.AnnotationParent] = "zoo" }), problem: "failed: no image"},
		"its package is not returnable": {
			o: upgradeFailed(func(o *plan.Observation) { o.Running.Returnable = false }), problem: "package kafka 2 does not declare that returning from it loses nothing",
		},
		"the former version is lost":         {o: upgradeFailed(func(o *plan.Observation) { o.Former = nil }), problem: `OperatorVersion "kafka-1.0.0", which ran before, is no longer on the managed cluster`},
		"a former value is lost":             {o: upgradeFailed(func(o *plan.Observation) { o.Sensitive.FormerLost = "PASSWORD is lost" }), problem: "PASSWORD is lost"},
		"nothing was applied before":         {o: upgradeFailed(onStatus(func(s *kudo.InstanceStatus) { s.Former = nil })), problem: "what ran before is not known"},
		"the plan was cancelled":             {o: upgradeFailed(onStatus(func(s *kudo.InstanceStatus) { s.Execution.Owed[0].Outcome = kudo.OwedCancelled })), problem: `plan "deploy" failed`},
		"another plan of it has failed":      {o: upgradeFailed(onStatus(func(s *kudo.InstanceStatus) { s.Execution.Owed[0].Whole = false })), problem: `plan "deploy" failed`},
		"a parameter changes at the time":    {o: upgradeFailed(onSpec(func(s *kudo.InstanceSpec) { s.Parameters["PLAIN"] = "c" })), want: "2"},
		"it is suspended":                    {o: upgradeFailed(onSpec(func(s *kudo.InstanceSpec) { s.Suspend = true })), problem: `plan "deploy" failed`},
		"it was not healthy for long enough": {o: upgradeFailed(unhealthy), want: "1"},
		"it is being removed":                {o: upgradeFailed(requestRemoval, func(o *plan.Observation) { o.Running.Plans["cleanup"] = kudo.Plan{} }), want: "2"},
	} {
		t.Run(sentence, func(t *testing.T) {
			action := plan.Decide(test.o)
			got := ""
			if v := action.Start.Version; v != nil {
				got = v.Version
			}
			if isReturn := action.Start.Start != nil && action.Start.Start.Return; got != test.want || isReturn != (test.want == "1") {
				t.Errorf("version %q starts, want %q", got, test.want)
			}
			if ready := test.o.SettledReady(nil, nil); test.problem != "" && !strings.Contains(ready.Message, test.problem) {
				t.Errorf("got %q, want %q", ready.Message, test.problem)
			}
		})
	}
}

func TestAReturnAppliesTheFormerValuesOnce(t *testing.T) {
	o := startNext(t, upgradeFailed())
	execution, returned := o.Instance.Status.Execution, o.Instance.Status.Returned
	if execution.OperatorVersion != one || execution.Parameters["PLAIN"] != "a" || execution.Parameters["BACKUP"] != "" || execution.Cluster.Name != "c1" {
		t.Errorf("got %v", execution)
	}
	wanted, content := returned.Wanted, plan.ContentDigest(o.Desired)
	if diff := cmp.Diff(&kudo.Return{
		OperatorVersion: two, From: "2", To: "1", Plan: "deploy", Execution: "x", Cause: "no image", Content: content, Wanted: wanted, Time: metav1.Time{Time: noon},
	}, returned); diff != "" || wanted == "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if h := o.Instance.Status.History; h[len(h)-1].Cause != kudo.CauseReturn {
		t.Errorf("got history %v", h)
	}
	if choice, err := plan.Choose(o.State()); err != nil || choice.Start != nil {
		t.Errorf("while it runs, got %v, %v", choice.Start, err)
	}
}

func TestAReturnStaysInForce(t *testing.T) {
	done := endWith(startNext(t, upgradeFailed()), succeeded)
	for done.Instance.Status.Execution.Plan == "deploy" && plan.Due(done.State()) != "" { // plan backup follows: its parameter has changed back
		done = endWith(startNext(t, done), succeeded)
	}
	if s := done.Instance.Status; s.Former != nil || s.Whole.OperatorVersion != one || s.Returned == nil {
		t.Errorf("got former %v, whole %v, returned %v", s.Former, s.Whole, s.Returned)
	}
	if due := plan.Due(done.State()); due != "" {
		t.Errorf("plan %q starts after the return", due)
	}
	if ready := done.SettledReady(nil, nil); ready.Reason != kudo.ReasonReturned || ready.Message != "version 2 has failed, and version 1 runs again: no image" {
		t.Errorf("got %v", ready)
	}
	if available, _ := done.SettledAvailable(done.SettledReady(nil, nil), nil, nil); available == nil || available.Status != metav1.ConditionTrue {
		t.Errorf("got %v", available)
	}
	if stalled := plan.Stalled(done.Instance.Status, done.SettledReady(nil, nil)); stalled == nil {
		t.Error("condition Stalled is absent")
	}
}

func TestAFailedReturnStops(t *testing.T) {
	o := endWith(startNext(t, upgradeFailed()), failed)
	o.Now = noon.Add(time.Hour)
	if due := plan.Due(o.State()); due != "" || plan.NextRetry(o.Instance.Status) != nil {
		t.Errorf("plan %q starts, retry %v", due, plan.NextRetry(o.Instance.Status))
	}
	const want = `version 2 has failed, and so has the return to version 1: plan "deploy" failed: `
	if ready := o.SettledReady(nil, nil); !strings.HasPrefix(ready.Message, want) || ready.Reason != kudo.ReasonPlanFailed {
		t.Errorf("got %v", ready)
	}
}

func TestWhatEndsAReturn(t *testing.T) {
	returned := endWith(startNext(t, upgradeFailed(func(o *plan.Observation) {
		o.Instance.Spec.Parameters = map[string]string{"PLAIN": "b"}
		o.Instance.Status.Execution.Parameters = map[string]string{"PLAIN": "b"}
	})), succeeded)
	for sentence, test := range map[string]struct {
		change func(*plan.Observation)
		want   string // version that starts
	}{
		"nothing":                    {func(*plan.Observation) {}, ""},
		"a change of its generation": {func(o *plan.Observation) { o.Instance.Annotations[kudo.AnnotationHubGeneration] = "99" }, ""},
		"a change of windows":        {func(o *plan.Observation) { o.Instance.Spec.Windows = "allow: []" }, ""},
		"a value of a Secret":        {func(o *plan.Observation) { o.Sensitive.From = []kudo.StartedParameterFrom{{Digest: "new"}} }, ""},
		"the loss of its version":    {func(o *plan.Observation) { o.Desired = nil }, ""},
		"a parameter":                {parameter("PLAIN", "c"), "2"},
		"an image registry":          {func(o *plan.Observation) { o.Instance.Spec.ImageRegistries = mirror("a") }, "2"},
		"a third version": {func(o *plan.Observation) {
			o.Desired = o.Desired.DeepCopy()
			o.Desired.Version = "3"
			o.Reference.UID = "3"
		}, "3"},
		"a request to try it again":     {asksFor("x"), "2"},
		"a request for another one":     {asksFor("y"), ""},
		"the same version, pushed anew": {func(o *plan.Observation) { o.Desired = o.Desired.DeepCopy(); o.Reference.UID = "4" }, ""},
		"a parameter, while a window is closed": {func(o *plan.Observation) {
			parameter("PLAIN", "c")(o)
			o.Window = &window.Wait{Message: "closed"}
		}, ""},
		"a request for a plan": {func(o *plan.Observation) {
			o.Instance.Spec.PlanExecution = kudo.PlanExecution{PlanName: "backup", UID: "b"}
		}, "1"},
		"the former version and values": {func(o *plan.Observation) {
			o.Desired, o.Reference, o.Instance.Spec.Parameters = o.Running, one, map[string]string{"PLAIN": "a"}
		}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := returned
			o.Instance = o.Instance.DeepCopy()
			test.change(&o)
			o = o.Normalize()
			choice, err := plan.Choose(o.State())
			if closed := new(plan.ClosedError); err != nil && !errors.As(err, &closed) {
				t.Fatal(err)
			}
			if ready := o.SettledReady(nil, nil); o.Window != nil && ready.Reason != kudo.ReasonReturned {
				t.Errorf("while the change waits, got %v", ready)
			}
			got := ""
			if choice.Start != nil {
				got = choice.Version.Version
				status := plan.Start(o.Instance.Status, choice, "v", noon)
				if inForce := status.Returned != nil; inForce != (got == "1") {
					t.Errorf("the return is in force: %v", inForce)
				}
				if asked := o.Instance.Spec.PlanExecution.UID; asked != "" && !plan.IsHandled(status, asked) {
					t.Error("the request is not handled")
				}
			}
			if got != test.want {
				t.Errorf("version %q starts, want %q", got, test.want)
			}
			if sentence == "the former version and values" && o.SettledReady(nil, nil).Status != metav1.ConditionTrue {
				t.Errorf("got %v", o.SettledReady(nil, nil))
			}
		})
	}
}

func TestWhatIsRecordedOfTheFormerVersion(t *testing.T) {
	complete := newObservation(kudo.Complete)
	complete.Instance.Status.Whole.Version = "1"
	delete(complete.Running.Plans, "update")
	upgrade := func(o plan.Observation, uid types.UID) plan.Observation {
		o.Desired, o.Reference = o.Desired.DeepCopy(), two
		o.Desired.Version, o.Reference.UID = string(uid), uid
		return startNext(t, o)
	}
	second := upgrade(complete, "2")
	if got := second.Instance.Status.Former; got == nil || got.OperatorVersion != one || got.Version != "1" || got.Parameters["PLAIN"] != "a" {
		t.Fatalf("got %v", got)
	}
	if third := upgrade(endWith(second, failed), "3"); third.Instance.Status.Former != nil {
		t.Errorf("after a failed version that is not returnable, got %v", third.Instance.Status.Former)
	}
	second.Running.Returnable = true
	if third := upgrade(endWith(second, failed), "3"); third.Instance.Status.Former.OperatorVersion != one {
		t.Errorf("after a failed version, got %v", third.Instance.Status.Former)
	}
	if done := endWith(second, succeeded); done.Instance.Status.Former != nil {
		t.Errorf("after the end, got %v", done.Instance.Status.Former)
	}
	second.Instance.Spec.OnFailure, second.Instance.Spec.HealthyFor = kudo.FailureReturn, &metav1.Duration{Duration: time.Hour}
	waits := endWith(second, succeeded)
	if waits.Instance.Status.Former == nil {
		t.Error("it is dropped before the Instance was healthy for long enough")
	}
	waits.Instance.Status.Soak = &kudo.SoakStatus{Execution: "u", CompletionTime: &metav1.Time{Time: noon}}
	if waits = waits.Normalize(); waits.Instance.Status.Former != nil {
		t.Error("it is kept after the Instance was healthy for long enough")
	}
	complete.Instance.Status.Execution.Parameters = map[string]string{"PLAIN": strings.Repeat("x", 70_000)}
	if large := upgrade(complete, "2"); large.Instance.Status.Former != nil {
		t.Error("a large record is kept")
	}
}
