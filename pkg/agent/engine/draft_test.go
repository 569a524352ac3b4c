package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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

// keepProgress keeps a draft in which the plan is in progress, its only object was applied in round 0, and the next round is 1.
func keepProgress(d *drafts, stored *kudo.Instance, now time.Time) time.Duration {
	last := d.of(stored)
	x := &execution{instance: last.onto(stored), Execution: stored.Status.Execution, inventory: &ledger{}}
	last.resume(x)
	if x.inventory.rounds == nil {
		x.inventory.rounds = map[kudo.InventoryEntry]int{{Kind: "ConfigMap", Name: "a"}: 0}
	}
	x.round++
	next := newInstance(stored.Name, kudo.InProgress).Status
	next.Inventory[0].Pending = false
	return d.keep(x, last, next, now)
}

func TestDraftContinuesWhereItEnded(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	d, stored := newDrafts(shortPace), newInstance("a", kudo.Pending)
	if wait := keepProgress(d, stored, now); wait != shortPace {
		t.Errorf("recorded after %s, want %s", wait, shortPace)
	}
	seen := d.of(stored).onto(stored)
	if got := seen.Status.PlanStatus[kudo.DeployPlan].Status; got != kudo.InProgress || seen.Status.Inventory[0].Pending {
		t.Errorf("continues with plan %s and inventory %v, want the draft's", got, seen.Status.Inventory)
	}
	if stored.Status.PlanStatus[kudo.DeployPlan].Status != kudo.Pending || !stored.Status.Inventory[0].Pending {
		t.Error("the stored status was changed")
	}
	if wait := keepProgress(d, stored, now.Add(shortPace/2)); wait != shortPace/2 {
		t.Errorf("recorded after %s more, want %s: progress does not delay it", wait, shortPace/2)
	}
	if last := d.of(stored); last.round != 2 || len(last.claims) != 1 {
		t.Errorf("the draft has round %d and %d claims, want 2 and 1", last.round, len(last.claims))
	}
	if wait := keepProgress(d, stored, now.Add(shortPace)); wait != 0 {
		t.Errorf("recorded after %s more, want now", wait)
	}
}

func TestDraftOfAStatusWithoutPlans(t *testing.T) {
	d, stored := newDrafts(shortPace), newInstance("a", kudo.Pending)
	stored.Status.PlanStatus = nil // as edited or restored
	keepProgress(d, stored, time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	if got := d.of(stored).onto(stored).Status.PlanStatus[kudo.DeployPlan].Status; got != kudo.InProgress {
		t.Errorf("continues with plan %s, want the draft's", got)
	}
}

func TestWhatIsRecordedNeedsNoDraft(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	d, recorded := newDrafts(shortPace), newInstance("a", kudo.InProgress)
	recorded.Status.Inventory[0].Pending = false
	for range 2 * progressBurst {
		if wait := keepProgress(d, recorded, now); wait != 0 || d.of(recorded).started {
			t.Fatalf("a pass without progress is recorded after %s", wait)
		}
	}
	if wait := keepProgress(d, newInstance("b", kudo.Pending), now); wait != shortPace {
		t.Errorf("the progress of another Instance is recorded after %s, want %s", wait, shortPace)
	}
}

func TestDraftIsOfOneStatus(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	acknowledged := newInstance("a", kudo.Pending)
	acknowledged.Status.Children = []kudo.ChildStatus{{Task: "child"}}
	other := newInstance("a", kudo.Pending)
	other.UID = "another"
	cancelled := newInstance("a", kudo.FatalError)
	for name, tc := range map[string]struct {
		read *kudo.Instance
		want bool
	}{
		"the same status":                           {newInstance("a", kudo.Pending), true},
		"another writer's part of the status":       {acknowledged, true},
		"another state of the execution":            {cancelled, false},
		"another Instance of the same name":         {other, false},
		"a status that was recorded in another way": {newInstance("b", kudo.Pending), false},
	} {
		d := newDrafts(shortPace)
		keepProgress(d, newInstance("a", kudo.Pending), now)
		if got := d.of(tc.read).started; got != tc.want {
			t.Errorf("%s: continues %t, want %t", name, got, tc.want)
		}
	}
}

func TestFewDraftsAreRecordedSoon(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	d, soon := newDrafts(shortPace), 0
	for i := range 3 * progressBurst {
		switch wait := keepProgress(d, newInstance(string(rune('a'+i)), kudo.Pending), now); wait {
		case shortPace:
			soon++
		case longPace:
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
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	budget := newDrafts(shortPace).budget
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
		return r.statusOf(plan.Observation{Now: now, Instance: newInstance("a", kudo.InProgress)}, stored, budget)
	}
	records := func(ago time.Duration) (bool, time.Duration) {
		status, after := decides(said("2 of 3 pods are ready", 0), ago)
		return status.PlanStatus[kudo.DeployPlan].Message != "1 of 2 pods are ready", after
	}
	for range 2 * progressBurst {
		if _, after := decides(said("1 of 2 pods are ready", minMessageInterval), minMessageInterval); after != 0 {
			t.Errorf("a status that is recorded is decided again after %s", after)
		}
	}
	for i := range progressBurst {
		if recorded, _ := records(minMessageInterval); !recorded {
			t.Errorf("message %d is not recorded", i)
		}
	}
	if recorded, after := records(minMessageInterval / 2); recorded || after != minMessageInterval {
		t.Errorf("a message right after another: recorded %t, decided again after %s", recorded, after)
	}
	for budget.TryAccept() {
	}
	for ago, want := range map[time.Duration]time.Duration{minMessageInterval: longPace, longPace: longPace, maxMessageInterval - time.Second: time.Second} {
		if recorded, after := records(ago); recorded || after != want {
			t.Errorf("a message beyond the budget, %s after the last one: recorded %t, decided again after %s", ago, recorded, after)
		}
	}
	for _, ago := range []time.Duration{maxMessageInterval, -maxMessageInterval} { // the clock may have been set back
		if recorded, _ := records(ago); !recorded {
			t.Errorf("a message %s after the last one is not recorded", ago)
		}
	}
}

func TestOnlyAPlanThatRunsForAWhileHasAnEventOfItsStart(t *testing.T) {
	for sentence, test := range map[string]struct {
		run  func(starts, ends func(instance, plan string))
		want []string
	}{
		"it runs for a while": {func(starts, _ func(_, _ string)) { starts("kafka", "deploy") }, []string{"deploy"}},
		"it ends soon": {func(starts, ends func(_, _ string)) {
			starts("kafka", "deploy")
			<-time.After(longPace / 2)
			ends("kafka", "deploy")
		}, nil},
		"another plan supersedes it": {func(starts, _ func(_, _ string)) {
			starts("kafka", "deploy")
			<-time.After(longPace / 2)
			starts("kafka", "update")
		}, []string{"update"}},
		"the plan of another Instance ends": {func(starts, ends func(_, _ string)) {
			starts("kafka", "deploy")
			starts("redis", "update")
			ends("redis", "update")
		}, []string{"deploy"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var emitted []string
				b := newStartEvents()
				test.run(func(instance, plan string) {
					for range 2 {
						b.schedule(types.UID(instance), types.UID(plan), longPace, func() { emitted = append(emitted, plan) })
					}
				}, func(instance, plan string) { b.cancel(types.UID(instance), types.UID(plan)) })
				<-time.After(2 * longPace) // in the time of synctest
				synctest.Wait()
				if !slices.Equal(emitted, test.want) || len(b.timers) > 0 {
					t.Errorf("got %q, want %q; %d timers are left", emitted, test.want, len(b.timers))
				}
			})
		})
	}
}
