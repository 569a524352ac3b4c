package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// observationWithTimeout returns the observation of an owed plan deploy of two parallel steps, which times out after five minutes.
func observationWithTimeout(change ...func(*plan.Observation)) plan.Observation {
	o := newObservation(kudo.InProgress, func(o *plan.Observation) {
		deploy := o.Running.Plans["deploy"]
		deploy.Timeout = within(5 * time.Minute)
		o.Running.Plans["deploy"] = deploy
	})
	for _, c := range change {
		c(&o)
	}
	return o
}

func asChild(o *plan.Observation) { o.Instance.Annotations[kudo.AnnotationParent] = "parent" }

// requestedBy makes the execution one that was requested manually.
func requestedBy(uid types.UID) func(*plan.Observation) {
	return func(o *plan.Observation) {
		status := &o.Instance.Status
		status.Execution.UID, status.Execution.Request, status.HandledRequests = uid, uid, []types.UID{uid}
		deploy := status.PlanStatus["deploy"]
		deploy.UID = uid
		status.PlanStatus["deploy"] = deploy
	}
}

func withRetries(retries int32) func(*plan.Observation) {
	return func(o *plan.Observation) { o.Instance.Status.Execution.Owed[0].Retries = retries }
}

// advance returns the observation after the outcomes.
func advance(o plan.Observation, after time.Duration, outcomes map[plan.Task]plan.Outcome) plan.Observation {
	o.Now = o.Now.Add(after)
	o.Instance = o.Instance.DeepCopy()
	o.Instance.Status = o.Advance(o.Instance.Status, outcomes)
	return o
}

func TestOnlyWhatMayPassIsRetried(t *testing.T) {
	first, second := plan.Task{}, plan.Task{Step: 1}
	refused := plan.Outcome{Status: kudo.Error, Message: "exceeded quota"}
	failed := plan.Outcome{Status: kudo.FatalError, Message: "Job apps/x: failed"}
	passing := plan.Outcome{Status: kudo.FatalError, Message: "Instance apps/aa.bb: timed out", Passing: true}
	const late = 6 * time.Minute
	for name, test := range map[string]struct {
		observed plan.Observation
		after    time.Duration
		outcomes map[plan.Task]plan.Outcome
		retried  bool
	}{
		"a timeout of what is waited for":          {observationWithTimeout(), late, map[plan.Task]plan.Outcome{first: waits}, true},
		"a timeout of what the API server refuses": {observationWithTimeout(), late, map[plan.Task]plan.Outcome{first: refused}, true},
		"a timeout by hand":                        {observationWithTimeout(requestedBy("u")), late, map[plan.Task]plan.Outcome{first: waits}, true},
		"a child that is retried":                  {observationWithTimeout(), 0, map[plan.Task]plan.Outcome{first: passing}, true},
		"a child that is retried beside a failure": {observationWithTimeout(), 0, map[plan.Task]plan.Outcome{first: passing, second: failed}, false},
		"a failure":                                  {observationWithTimeout(), 0, map[plan.Task]plan.Outcome{first: failed}, false},
		"a failure after the timeout":                {observationWithTimeout(), late, map[plan.Task]plan.Outcome{first: failed, second: waits}, false},
		"a plan that still runs":                     {observationWithTimeout(), 0, map[plan.Task]plan.Outcome{first: refused}, false},
		"a plan that is not owed":                    {observationWithTimeout(func(o *plan.Observation) { o.Instance.Status.Execution.Owed = nil }), late, map[plan.Task]plan.Outcome{first: waits}, false},
		"a child's timeout":                          {observationWithTimeout(asChild), late, map[plan.Task]plan.Outcome{first: waits}, true},
		"a child's timeout that the hub asked for":   {observationWithTimeout(asChild, requestedBy("parent.deploy.1")), late, map[plan.Task]plan.Outcome{first: waits}, true},
		"a child's timeout that a person asked for":  {observationWithTimeout(asChild, requestedBy("u")), late, map[plan.Task]plan.Outcome{first: waits}, false},
		"a timeout whose message another one quotes": {observationWithTimeout(), 0, map[plan.Task]plan.Outcome{first: {Status: kudo.FatalError, Message: "timed out after 5m0s: it says"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := advance(test.observed, test.after, test.outcomes)
			retry := plan.NextRetry(o.Instance.Status)
			if (retry != nil) != test.retried {
				t.Fatalf("retry: %v of %q", retry, o.Instance.Status.PlanStatus["deploy"].Message)
			}
			if test.observed.Instance.Status.Execution.Owed != nil && test.observed.Instance.Status.Execution.Owed[0].RetryTime != nil {
				t.Error("the input was changed")
			}
			ready := o.SettledReady(nil, nil)
			if says := strings.Contains(ready.Message, `plan "deploy" failed and will be retried: `); says != test.retried {
				t.Errorf("Ready says %q", ready.Message)
			}
			if o.Instance.Status.PlanStatus["deploy"].Status != kudo.FatalError {
				return
			}
			if action := plan.Decide(o); test.retried != (action.After > 0) {
				t.Errorf("it is decided to %s, and again after %s", action.Kind, action.After)
			}
		})
	}
}

func TestACancelledOrRefusedPlanIsNotRetried(t *testing.T) {
	o := observationWithTimeout(withRetries(2))
	for name, status := range map[string]kudo.InstanceStatus{
		"cancelled": plan.CancelExecution(o.Running, o.Instance.Status, noon),
		"refused":   plan.FailExecution(o.Running, o.Instance.Status, "too many objects", noon),
	} {
		ended := o
		ended.Instance = o.Instance.DeepCopy()
		ended.Instance.Status = status
		ended.Now = noon.Add(time.Hour)
		if action := plan.Decide(ended.Normalize()); action.Kind == plan.ActionStart || action.After > 0 {
			t.Errorf("%s: it is decided to %s, and again after %s", name, action.Kind, action.After)
		}
	}
}

// A plan that always times out starts again after delays that double up to the longest; nothing is written in between.
func TestRetriesBackOff(t *testing.T) {
	o := observationWithTimeout()
	var delays []time.Duration
	for range 7 {
		o = advance(o, 5*time.Minute+time.Second, map[plan.Task]plan.Outcome{{}: waits})
		wait := plan.Decide(o)
		if wait.Kind != plan.ActionWait || !cmp.Equal(wait.Status, o.Instance.Status) {
			t.Fatalf("it is decided to %s with %s", wait.Kind, cmp.Diff(o.Instance.Status, wait.Status))
		}
		delays = append(delays, wait.After.Truncate(time.Minute))
		o.Now = o.Now.Add(wait.After - time.Second)
		if early := plan.Decide(o); early.Kind != plan.ActionWait || early.After != time.Second {
			t.Fatalf("before its time it is decided to %s, after %s", early.Kind, early.After)
		}
		o.Now = o.Now.Add(time.Second)
		start := plan.Decide(o)
		if start.Kind != plan.ActionStart || start.Start.Start.Plan != "deploy" || start.Start.Restart {
			t.Fatalf("it is decided to %s: %+v", start.Kind, start.Start)
		}
		o.Instance.Status = plan.Start(o.Instance.Status, start.Start, types.UID(o.Now.String()), o.Now)
	}
	want := []time.Duration{1, 2, 4, 8, 10, 10, 10}
	for i := range want {
		want[i] *= time.Minute
	}
	if diff := cmp.Diff(want, delays); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if retries := plan.Retries(o.Instance.Status); retries != 7 {
		t.Errorf("%d retries", retries)
	}
	o = advance(o, time.Minute, map[plan.Task]plan.Outcome{{}: {Status: kudo.Complete}, {Step: 1}: {Status: kudo.Complete}})
	if owed := o.Instance.Status.Execution.Owed; len(owed) > 0 {
		t.Errorf("it is complete, and still owed: %v", owed)
	}
}

func TestDecideAboutARetry(t *testing.T) {
	timedOut := advance(observationWithTimeout(withRetries(3)), 6*time.Minute, map[plan.Task]plan.Outcome{{}: waits})
	unblocked := func(o *plan.Observation) { o.Unblocked = true }
	request := func(o *plan.Observation) {
		o.Instance.Spec.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "by-hand"}
	}
	backup := func(o *plan.Observation) {
		o.Instance.Spec.PlanExecution = kudo.PlanExecution{PlanName: "backup", UID: "by-hand"}
	}
	edit := func(o *plan.Observation) {
		parameter("PLAIN", "b")(o)
		o.Instance.Annotations[kudo.AnnotationHubGeneration] = "8"
	}
	whole := func(o *plan.Observation) {
		o.Instance.Status.Execution.Owed[0].Whole = true
		o.Instance.Status.Execution.Owed = append(o.Instance.Status.Execution.Owed, kudo.OwedPlan{Plan: "backup"})
	}
	forged := func(retries int32) func(*plan.Observation) {
		return func(o *plan.Observation) { o.Instance.Status.Execution.Owed[0].Retries = retries }
	}
	for name, test := range map[string]struct {
		after   time.Duration
		change  []func(*plan.Observation)
		want    plan.ActionKind
		starts  string
		retries int32
	}{
		"it waits":                                 {7 * time.Minute, nil, plan.ActionWait, "", 3},
		"it starts when it is due":                 {9 * time.Minute, nil, plan.ActionStart, "deploy", 4},
		"it starts early if nothing blocks it":     {2 * time.Minute, []func(*plan.Observation){unblocked}, plan.ActionStart, "deploy", 4},
		"not earlier than the first retry":         {30 * time.Second, []func(*plan.Observation){unblocked}, plan.ActionWait, "", 3},
		"a person starts it at once":               {0, []func(*plan.Observation){request}, plan.ActionStart, "deploy", 3},
		"a plan that a person requests runs":       {0, []func(*plan.Observation){backup}, plan.ActionStart, "backup", 3},
		"a change starts it at once, and afresh":   {0, []func(*plan.Observation){whole, edit}, plan.ActionStart, "deploy", 0},
		"no plan after the whole one overtakes it": {7 * time.Minute, []func(*plan.Observation){whole}, plan.ActionWait, "", 3},
		"a removal does not wait":                  {0, []func(*plan.Observation){requestRemoval}, plan.ActionRemove, "", 3},
		"a forged number of retries is bounded":    {11 * time.Minute, []func(*plan.Observation){forged(1 << 30)}, plan.ActionStart, "deploy", 1<<30 + 1},
		"a forged negative number of retries":      {9 * time.Minute, []func(*plan.Observation){forged(-5)}, plan.ActionStart, "deploy", -4},
	} {
		t.Run(name, func(t *testing.T) {
			o := timedOut
			o.Instance = o.Instance.DeepCopy()
			o.Now = o.Now.Add(test.after)
			for _, c := range test.change {
				c(&o)
			}
			action := plan.Decide(o)
			if action.Kind != test.want || test.starts != "" && action.Start.Start.Plan != test.starts {
				t.Fatalf("it is decided to %s: %+v", action.Kind, action.Start.Start)
			}
			owed := o.Instance.Status.Execution.Owed
			if action.Start.Start != nil {
				owed = action.Start.Start.Owed
			}
			if owed[0].Plan != "deploy" || owed[0].Retries != test.retries {
				t.Errorf("owed: %+v", owed)
			}
			if test.starts == "deploy" && (owed[0].RetryTime != nil || owed[0].Outcome != "") {
				t.Errorf("it starts, and owed is %+v", owed[0])
			}
		})
	}
}

// Releases before retryTime recorded a timeout as any failure. It is recognized by the message of the plan, phase or step.
func TestATimeoutOfAnEarlierReleaseIsRetried(t *testing.T) {
	for name, test := range map[string]struct {
		end     func(*kudo.PlanStatus)
		outcome kudo.OwedOutcome
		retried bool
	}{
		"of the plan": {func(s *kudo.PlanStatus) { s.Message = "timed out after 5m0s: is waiting" }, kudo.OwedFailed, true},
		"of a phase": {func(s *kudo.PlanStatus) {
			s.Message = `phase "p": timed out after 5m0s: is waiting`
			s.Phases[0].Status, s.Phases[0].Message = kudo.FatalError, "timed out after 5m0s: is waiting"
		}, kudo.OwedFailed, true},
		"of a step": {func(s *kudo.PlanStatus) {
			s.Message = `phase "p": step "a": timed out after 5m0s: is waiting`
			step := &s.Phases[0].Steps[0]
			step.Status, step.Message = kudo.FatalError, "timed out after 5m0s: is waiting"
		}, kudo.OwedFailed, true},
		"of which a task only speaks": {func(s *kudo.PlanStatus) {
			s.Message = `phase "p": step "a": task "t": timed out after 5m0s: is waiting`
			task := &s.Phases[0].Steps[0].Tasks[0]
			task.Status, task.Message = kudo.FatalError, "timed out after 5m0s: is waiting"
		}, kudo.OwedFailed, false},
		"beside a failure": {func(s *kudo.PlanStatus) {
			s.Message = "timed out after 5m0s: is waiting"
			task := &s.Phases[0].Steps[0].Tasks[0]
			task.Status, task.Message = kudo.FatalError, "Job failed"
		}, kudo.OwedFailed, false},
		"that was cancelled": {func(s *kudo.PlanStatus) { s.Message = "cancelled" }, kudo.OwedCancelled, false},
		"that failed":        {func(s *kudo.PlanStatus) { s.Message = `phase "p": step "a": task "t": no image` }, kudo.OwedFailed, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObservation(kudo.FatalError, func(o *plan.Observation) {
				status := o.Instance.Status.PlanStatus["deploy"]
				test.end(&status)
				status.LastUpdatedTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)}
				o.Instance.Status.PlanStatus["deploy"] = status
				o.Instance.Status.Execution.Owed[0].Outcome = test.outcome
			}).Normalize()
			if action := plan.Decide(o); (action.Kind == plan.ActionStart) != test.retried {
				t.Errorf("it is decided to %s %+v", action.Kind, action.Start.Start)
			}
		})
	}
}

func TestAFailedChildPassesIfItIsRetried(t *testing.T) {
	child := plan.Child{Name: types.NamespacedName{Namespace: "apps", Name: "aa.bb"}, Acknowledged: childStatus(kudo.ChildApplied), Mirror: newMirror("u", 2, 2, childFailed)}
	child.Mirror.Status.Execution = &kudo.Execution{Owed: []kudo.OwedPlan{{Plan: "deploy", Outcome: kudo.OwedFailed}}}
	if outcome := plan.ChildOutcome(plan.ApplyChild, "x", child); outcome.Status != kudo.FatalError || outcome.Passing {
		t.Errorf("a child that has failed: %+v", outcome)
	}
	child.Mirror.Status.Execution.Owed[0].RetryTime = &metav1.Time{Time: noon}
	if outcome := plan.ChildOutcome(plan.ApplyChild, "x", child); outcome.Status != kudo.FatalError || !outcome.Passing {
		t.Errorf("a child that is retried: %+v", outcome)
	}
}

func TestStalled(t *testing.T) {
	failed := plan.Condition(metav1.ConditionFalse, kudo.ReasonPlanFailed, "plan \"deploy\" failed")
	retried := kudo.InstanceStatus{Execution: &kudo.Execution{Owed: []kudo.OwedPlan{{Plan: "deploy", RetryTime: &metav1.Time{}}}}}
	for name, test := range map[string]struct {
		status kudo.InstanceStatus
		ready  metav1.Condition
		want   string
	}{
		"a plan that failed":                 {kudo.InstanceStatus{}, failed, `plan "deploy" failed`},
		"a plan that failed and is retried":  {retried, failed, ""},
		"a plan that runs":                   {kudo.InstanceStatus{}, plan.RunningCondition(kudo.PlanStatus{Name: "deploy"}), ""},
		"an object that is not healthy":      {kudo.InstanceStatus{}, plan.Condition(metav1.ConditionFalse, kudo.ReasonUnhealthy, "crashes"), ""},
		"an Instance with healthy workloads": {kudo.InstanceStatus{}, plan.Condition(metav1.ConditionTrue, kudo.ReasonHealthy, ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.Stalled(test.status, test.ready)
			switch {
			case got == nil && test.want != "", got != nil && (test.want == "" || got.Message != test.want || got.Status != metav1.ConditionTrue):
				t.Errorf("got %v, want %q", got, test.want)
			}
		})
	}
}
