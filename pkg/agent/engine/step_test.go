package engine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/lru"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// newInstance returns an Instance whose plan deploy has that state.
func newInstance(name string, state kudo.ExecutionStatus) *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name, UID: types.UID(name)},
		Status: kudo.InstanceStatus{
			Execution:  &kudo.Execution{UID: "x", Plan: kudo.DeployPlan},
			PlanStatus: map[string]kudo.PlanStatus{kudo.DeployPlan: {Name: kudo.DeployPlan, Status: state}},
			Inventory:  []kudo.InventoryEntry{{Kind: "ConfigMap", Name: "a", Pending: true}},
		},
	}
}

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// newEngine returns an engine that has no clients.
func newEngine() *engine {
	return &engine{
		drafts: lru.New(maxRemembered), progressDelay: progressDelay, budget: flowcontrol.NewTokenBucketRateLimiter(progressQPS, progressBurst),
		started: lru.New(maxRemembered),
	}
}

// keepProgress keeps a draft in which the plan is in progress, and returns when it is recorded.
func keepProgress(e *engine, stored *kudo.Instance, now time.Time) time.Duration {
	return e.keepDraft(stored, e.draftOf(stored).With(newInstance(stored.Name, kudo.InProgress).Status, 1, nil), now)
}

func TestFurtherProgressDoesNotDelayTheRecord(t *testing.T) {
	e, stored := newEngine(), newInstance("a", kudo.Pending)
	for _, step := range []struct{ age, want time.Duration }{
		{0, progressDelay}, {progressDelay - 1, 1}, {progressDelay, 0}, {progressDelay + 1, 0}, {-progressDelay, 2 * progressDelay},
	} {
		if wait := keepProgress(e, stored, noon.Add(step.age)); wait != step.want {
			t.Errorf("recorded %s later, want %s", wait, step.want)
		}
	}
	if wait := keepProgress(e, newInstance("a", kudo.Error), noon.Add(progressDelay)); wait != progressDelay {
		t.Errorf("the progress beyond another status is recorded %s later", wait)
	}
}

func TestWhatIsRecordedNeedsNoDraft(t *testing.T) {
	e, recorded := newEngine(), newInstance("a", kudo.InProgress)
	keepProgress(e, newInstance("a", kudo.Pending), noon)
	for range 2 * progressBurst {
		if wait := keepProgress(e, recorded, noon); wait != 0 || e.drafts.Len() > 0 {
			t.Fatalf("a pass without progress is recorded after %s", wait)
		}
	}
	if wait := keepProgress(e, newInstance("b", kudo.Pending), noon); wait != progressDelay {
		t.Errorf("the progress of another Instance is recorded after %s, want %s", wait, progressDelay)
	}
}

func TestFewDraftsAreRecordedSoon(t *testing.T) {
	e, soon := newEngine(), 0
	for i := range 3 * progressBurst {
		switch wait := keepProgress(e, newInstance(string(rune('a'+i)), kudo.Pending), noon); wait {
		case progressDelay:
			soon++
		case recheckInterval:
		default:
			t.Errorf("recorded after %s", wait)
		}
	}
	if soon < progressBurst || soon > progressBurst+progressQPS {
		t.Errorf("%d are recorded soon, want %d", soon, progressBurst)
	}
}

func TestATaskClaimsItsObjectsAgain(t *testing.T) {
	l := &ledger{}
	wants := []*unstructured.Unstructured{newObject("ConfigMap", "a", "metadata", "name")}
	for range 2 {
		if !l.claim(0, false, wants) {
			t.Error("parallel tasks may not apply an object")
		}
	}
	if l.claim(1, false, wants) {
		t.Error("a later task may apply the object before the earlier one is recorded")
	}
	if !l.claim(2, true, wants) {
		t.Error("a task that has begun may not continue")
	}
	if l.claim(2, false, wants) {
		t.Error("a later task may apply the object because the earlier one, which is not recorded, continues beside it")
	}
}

func TestMessagesOfManyInstancesAreRecordedLess(t *testing.T) {
	now, budget := noon, newEngine().budget
	said := func(message string, ago time.Duration) kudo.InstanceStatus {
		status := newInstance("a", kudo.InProgress).Status
		deploy := status.PlanStatus[kudo.DeployPlan]
		deploy.Message, deploy.LastUpdatedTimestamp = message, &metav1.Time{Time: now.Add(-ago)}
		status.PlanStatus[kudo.DeployPlan] = deploy
		return status
	}
	// decides records a status with a message that long after the last one, and returns when it is decided again.
	decides := func(next kudo.InstanceStatus, ago time.Duration) (kudo.InstanceStatus, time.Duration) {
		stored := said("1 of 2 pods are ready", ago)
		r := result{status: next, paced: true}
		r.ready.Type, r.ready.Status, r.ready.LastTransitionTime = kudo.ConditionReady, metav1.ConditionFalse, metav1.Time{Time: now}
		stored.Conditions = []metav1.Condition{r.ready}
		return r.statusOf(plan.Observation{Now: now, Instance: newInstance("a", kudo.InProgress)}, stored, time.Time{}, budget.TryAccept)
	}
	records := func(ago time.Duration) (bool, time.Duration) {
		status, after := decides(said("2 of 3 pods are ready", 0), ago)
		return status.PlanStatus[kudo.DeployPlan].Message != "1 of 2 pods are ready", after
	}
	for range 2 * progressBurst {
		if _, after := decides(said("1 of 2 pods are ready", messageInterval.Min), messageInterval.Min); after != 0 {
			t.Errorf("a status that is recorded is decided again after %s", after)
		}
	}
	for i := range progressBurst {
		if recorded, _ := records(messageInterval.Min); !recorded {
			t.Errorf("message %d is not recorded", i)
		}
	}
	if recorded, after := records(messageInterval.Min / 2); recorded || after != messageInterval.Min/2 {
		t.Errorf("a message right after another: recorded %t, decided again after %s", recorded, after)
	}
	for budget.TryAccept() {
	}
	for ago, want := range map[time.Duration]time.Duration{
		messageInterval.Min: messageInterval.Retry, messageInterval.Retry: messageInterval.Retry, messageInterval.Max - time.Second: time.Second,
	} {
		if recorded, after := records(ago); recorded || after != want {
			t.Errorf("a message beyond the budget, %s after the last one: recorded %t, decided again after %s", ago, recorded, after)
		}
	}
	for _, ago := range []time.Duration{messageInterval.Max, -messageInterval.Max} { // the clock may have been set back
		if recorded, _ := records(ago); !recorded {
			t.Errorf("a message %s after the last one is not recorded", ago)
		}
	}
}

func TestMessagesThatChangeAllTheTimeAtRestAreRecordedLess(t *testing.T) {
	budget := newEngine().budget
	instance := newInstance("a", kudo.Complete)
	decides := func(reason, message string, stored kudo.InstanceStatus, worded time.Time) (kudo.InstanceStatus, time.Duration) {
		r := result{status: instance.Status}
		r.ready = metav1.Condition{Type: kudo.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message}
		return r.statusOf(plan.Observation{Now: noon, Instance: instance}, stored, worded, budget.TryAccept)
	}
	stored, _ := decides("NotReady", "0 of 1 replicas updated", instance.Status, time.Time{})
	for what, test := range map[string]struct {
		reason, message string
		worded          time.Duration
		recorded        bool
		after           time.Duration
	}{
		"the first message":             {"NotReady", "another", 0, true, 0},
		"a message right after another": {"NotReady", "another", messageInterval.Min / 2, false, messageInterval.Min / 2},
		"a message a while later":       {"NotReady", "another", messageInterval.Min, true, 0},
		"the same message":              {"NotReady", "0 of 1 replicas updated", messageInterval.Min / 2, true, 0},
		"another reason":                {"Broken", "another", messageInterval.Min / 2, true, 0},
	} {
		t.Run(what, func(t *testing.T) {
			worded := time.Time{}
			if test.worded > 0 {
				worded = noon.Add(-test.worded)
			}
			got, after := decides(test.reason, test.message, stored, worded)
			if recorded := meta.FindStatusCondition(got.Conditions, kudo.ConditionReady).Message == test.message; recorded != test.recorded || after != test.after {
				t.Errorf("recorded %t and decided again after %s, want %t and %s", recorded, after, test.recorded, test.after)
			}
		})
	}
}

func TestOnlyAPlanThatRunsForAWhileHasAnEventOfItsStart(t *testing.T) {
	type pass struct {
		execution types.UID
		age, wait time.Duration
	}
	for what, test := range map[string]struct {
		passes []pass
		want   int
	}{
		"it runs for a while":                {[]pass{{"deploy", 0, recheckInterval}, {"deploy", recheckInterval - 1, 1}, {"deploy", recheckInterval, 0}}, 1},
		"it runs for long":                   {[]pass{{"deploy", 0, recheckInterval}, {"deploy", time.Hour, 0}, {"deploy", 2 * time.Hour, 0}}, 1},
		"it ends soon":                       {[]pass{{"deploy", 0, recheckInterval}}, 0},
		"another plan follows it":            {[]pass{{"deploy", 0, recheckInterval}, {"update", 0, recheckInterval}, {"update", recheckInterval, 0}}, 1},
		"the agent has restarted since then": {[]pass{{"deploy", recheckInterval, 0}}, 0},
		"another one has started since then": {[]pass{{"update", 0, recheckInterval}, {"deploy", recheckInterval, 0}}, 0},
		"the clock is set back":              {[]pass{{"deploy", -time.Second, recheckInterval + time.Second}, {"deploy", recheckInterval, 0}}, 1},
	} {
		recorder := events.NewFakeRecorder(10)
		e := newEngine()
		e.events = recorder
		for _, p := range test.passes {
			instance := newInstance("a", kudo.InProgress)
			instance.Status.PlanStatus[kudo.DeployPlan] = kudo.PlanStatus{StartedTimestamp: &metav1.Time{Time: noon}}
			x := &execution{instance: instance, Execution: &kudo.Execution{UID: p.execution, Plan: kudo.DeployPlan}}
			if wait := e.emitStart(x, noon.Add(p.age)); wait != p.wait {
				t.Errorf("%s: the event of %q is due in %s, want %s", what, p.execution, wait, p.wait)
			}
		}
		if len(recorder.Events) != test.want {
			t.Errorf("%s: got %d events, want %d", what, len(recorder.Events), test.want)
		}
	}
}

func TestTheSoonestOfSomeWaits(t *testing.T) {
	for what, test := range map[string]struct {
		waits []time.Duration
		want  time.Duration
	}{
		"no wait":           {nil, 0},
		"none that is set":  {[]time.Duration{0, 0}, 0},
		"the only one":      {[]time.Duration{0, 3, 0}, 3},
		"the shortest":      {[]time.Duration{3, 0, 2, 4}, 2},
		"the first of them": {[]time.Duration{1, 0, 2}, 1},
	} {
		if got := soonest(test.waits...); got != test.want {
			t.Errorf("%s: got %d, want %d", what, got, test.want)
		}
	}
}
