package plan_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/window"
)

// suspend suspends the Instance at noon.
func suspend(o *plan.Observation) {
	o.Instance.Spec.Suspend = true
	*o = o.MarkSuspension()
}

func editPlain(o *plan.Observation) {
	o.Instance.Annotations[kudo.AnnotationHubGeneration] = "8"
	o.Instance.Spec.Parameters = map[string]string{"PLAIN": "b"}
}

func readyAt(generation int64) func(*plan.Observation) {
	return func(o *plan.Observation) {
		o.Instance.Status.Conditions = []metav1.Condition{{
			Type: kudo.ConditionReady, Status: metav1.ConditionTrue, Reason: kudo.ReasonHealthy, ObservedGeneration: generation,
		}}
	}
}

// waitsAt records that the change of a generation waits for a Secret, and that the last execution is of generation 5.
func waitsAt(generation int64) func(*plan.Observation) {
	return func(o *plan.Observation) {
		o.Instance.Status.Execution.Generation = 5
		o.Instance.Status.Conditions = []metav1.Condition{{
			Type: kudo.ConditionReady, Status: metav1.ConditionFalse, Reason: kudo.ReasonSecretNotFound, ObservedGeneration: generation,
		}}
	}
}

func TestASuspendedInstanceStartsNoPlan(t *testing.T) {
	begin := func(status kudo.ExecutionStatus) func(*plan.Observation) {
		return func(o *plan.Observation) {
			o.Instance.Status.PlanStatus["deploy"].Phases[0].Steps[0].Tasks[0].Status = status
		}
	}
	first := func(o *plan.Observation) { o.Instance.Status, o.Running = kudo.InstanceStatus{}, nil }
	handle := func(o *plan.Observation) {
		o.Instance.Spec.PlanExecution = kudo.PlanExecution{PlanName: "backup", UID: "r"}
	}
	cancel := func(o *plan.Observation) {
		o.Instance.Spec.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "x", Cancel: true}
	}
	for name, test := range map[string]struct {
		status kudo.ExecutionStatus
		change []func(*plan.Observation)
		kind   plan.ActionKind
		tasks  []plan.Task
		ready  string // of a wait
		waits  string
		at     int64 // generation of condition Ready
	}{
		"nothing to start": {
			status: kudo.Complete, change: []func(*plan.Observation){readyAt(7)}, kind: plan.ActionSettle,
			waits: "the Instance is suspended: no plan starts", at: 7},
		"a first installation": {
			change: []func(*plan.Observation){first}, kind: plan.ActionSettle, waits: `plan "deploy" waits: the Instance is suspended`},
		"a changed parameter": {
			status: kudo.Complete, change: []func(*plan.Observation){readyAt(7), editPlain}, kind: plan.ActionSettle,
			waits: `plan "update" waits: the Instance is suspended`, at: 7},
		"a change that waited for a Secret before": {
			status: kudo.Complete, change: []func(*plan.Observation){waitsAt(8), editPlain}, kind: plan.ActionSettle,
			waits: `plan "update" waits: the Instance is suspended`, at: 5},
		"a requested plan leaves the generation of Ready": {
			status: kudo.Complete, change: []func(*plan.Observation){readyAt(7), handle}, kind: plan.ActionSettle,
			waits: `plan "backup" waits: the Instance is suspended`, at: 7},
		"no step of a running plan has started": {
			status: kudo.InProgress, kind: plan.ActionWait, ready: `plan "deploy" is suspended before step "s1" of phase "p"`,
			waits: `the Instance is suspended: plan "deploy" does not start step "s1" of phase "p"`, at: 7},
		"a step that has started ends": {
			status: kudo.InProgress, change: []func(*plan.Observation){begin(kudo.InProgress)}, kind: plan.ActionStep, tasks: []plan.Task{{}},
			waits: `the Instance is suspended: plan "deploy" does not start step "s2" of phase "p"`, at: 7},
		"and is retried": {
			status: kudo.InProgress, change: []func(*plan.Observation){begin(kudo.Error)}, kind: plan.ActionStep, tasks: []plan.Task{{}},
			waits: `the Instance is suspended: plan "deploy" does not start step "s2" of phase "p"`, at: 7},
		"a cancellation": {status: kudo.InProgress, change: []func(*plan.Observation){cancel}, kind: plan.ActionCancel,
			waits: `the Instance is suspended: plan "deploy" does not start step "s1" of phase "p"`, at: 7},
		"a removal": {status: kudo.Complete, change: []func(*plan.Observation){requestRemoval}, kind: plan.ActionRemove, at: 7},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObservation(test.status, append(test.change, suspend)...)
			action := plan.Decide(o)
			if action.Kind != test.kind {
				t.Errorf("got action %s, want %s", action.Kind, test.kind)
			}
			if diff := cmp.Diff(test.tasks, action.Tasks); diff != "" {
				t.Error(diff)
			}
			if test.ready != "" && action.Ready.Message != test.ready {
				t.Errorf("got %q, want %q", action.Ready.Message, test.ready)
			}
			waits := ""
			if wait := o.Waiting(o.Instance.Status); wait != nil {
				waits = wait.Message
			}
			if diff := cmp.Diff(test.waits, waits); diff != "" {
				t.Error(diff)
			}
			if at := o.ReadyGeneration(); at != test.at {
				t.Errorf("Ready is of generation %d, want %d", at, test.at)
			}
		})
	}
}

func TestASuspensionByObjectsOfTheHubIsNamed(t *testing.T) {
	const by = `ManagedCluster cluster1 ("a reason")`
	for name, test := range map[string]struct {
		status kudo.ExecutionStatus
		change func(*plan.Observation)
		kind   plan.ActionKind
		waits  string
	}{
		"nothing to start":    {kudo.Complete, readyAt(7), plan.ActionSettle, "the Instance is suspended by " + by + ": no plan starts"},
		"a changed parameter": {kudo.Complete, editPlain, plan.ActionSettle, `plan "update" waits: the Instance is suspended by ` + by},
		"together with its own": {kudo.Complete, func(o *plan.Observation) { o.Instance.Spec.Suspend = true }, plan.ActionSettle,
			"the Instance is suspended by " + by + " and spec.suspend: no plan starts"},
		"a running plan": {kudo.InProgress, readyAt(7), plan.ActionWait,
			"the Instance is suspended by " + by + `: plan "deploy" does not start step "s1" of phase "p"`},
		"a removal": {kudo.Complete, requestRemoval, plan.ActionRemove, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObservation(test.status, test.change, func(o *plan.Observation) {
				o.Instance.Spec.SuspendedBy = by
				*o = o.MarkSuspension()
			})
			if action := plan.Decide(o); action.Kind != test.kind {
				t.Errorf("got action %s, want %s", action.Kind, test.kind)
			}
			waits := ""
			if wait := o.Waiting(o.Instance.Status); wait != nil {
				waits = wait.Message
			}
			if diff := cmp.Diff(test.waits, waits); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestASuspensionLeavesReadyAsTheLastExecutionLeftIt(t *testing.T) {
	for name, test := range map[string]struct {
		status kudo.ExecutionStatus
		want   metav1.ConditionStatus
		reason string
	}{
		"a complete plan": {kudo.Complete, metav1.ConditionTrue, kudo.ReasonHealthy},
		"a failed plan":   {kudo.FatalError, metav1.ConditionFalse, kudo.ReasonPlanFailed},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObservation(test.status, readyAt(7), editPlain, suspend)
			if ready := o.SettledReady(nil, nil); ready.Status != test.want || ready.Reason != test.reason {
				t.Errorf("got %s %s: %s", ready.Status, ready.Reason, ready.Message)
			}
		})
	}
	pending := newObservation(kudo.Complete, editPlain).SettledReady(nil, nil)
	if pending.Reason != kudo.ReasonPlanPending {
		t.Errorf("without a suspension: %s", pending.Reason)
	}
	owed := newObservation(kudo.Complete, editPlain, suspend)
	owed.Instance.Status.Execution.Owed = []kudo.OwedPlan{{Plan: "backup"}}
	if ready := owed.SettledReady(nil, nil); ready.Status != metav1.ConditionFalse || ready.Reason != kudo.ReasonPlanPending {
		t.Errorf("with an owed plan: %s %s", ready.Status, ready.Reason)
	}
}

func TestChooseReportsASuspension(t *testing.T) {
	s := plan.State{Version: versionOf("deploy"), Suspended: true}
	choice, err := plan.Choose(s)
	if suspended := (*plan.SuspendedError)(nil); choice.Start != nil || !errors.As(err, &suspended) || suspended.Plan != "deploy" {
		t.Errorf("got %v, %v", choice.Start, err)
	}
	if plan.Due(s) != "deploy" {
		t.Error("no plan is due")
	}
	s.Removing = true
	if choice, err := plan.Choose(s); err != nil || !choice.Remove {
		t.Errorf("a removal waits: %v", err)
	}
}

func TestAClosedWindowHoldsUpStartsOnly(t *testing.T) {
	closed := func(o *plan.Observation) { o.Window = &window.Wait{Message: "closed by the hub"} }
	retry := func(o *plan.Observation) {
		o.Instance.Status.Execution.Owed = []kudo.OwedPlan{{Plan: "deploy", Outcome: kudo.OwedFailed, RetryTime: &metav1.Time{Time: noon.Add(-time.Hour)}}}
	}
	for name, test := range map[string]struct {
		status kudo.ExecutionStatus
		change []func(*plan.Observation)
		kind   plan.ActionKind
		waits  string
		at     int64 // generation of condition Ready
	}{
		"nothing to start":    {kudo.Complete, []func(*plan.Observation){readyAt(7)}, plan.ActionSettle, "", 7},
		"a changed parameter": {kudo.Complete, []func(*plan.Observation){readyAt(7), editPlain}, plan.ActionSettle, "update", 7},
		"a retry":             {kudo.FatalError, []func(*plan.Observation){readyAt(7), retry}, plan.ActionSettle, "deploy", 7},
		"a running plan":      {kudo.InProgress, nil, plan.ActionStep, "", 7},
		"a removal":           {kudo.Complete, []func(*plan.Observation){requestRemoval}, plan.ActionRemove, "", 7},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObservation(test.status, append(test.change, closed)...)
			if action := plan.Decide(o); action.Kind != test.kind {
				t.Errorf("got action %s, want %s", action.Kind, test.kind)
			}
			waits, want := "", ""
			if wait := o.Waiting(o.Instance.Status); wait != nil {
				waits = wait.Reason + ": " + wait.Message
			}
			if test.waits != "" {
				want = kudo.ReasonWindow + `: plan "` + test.waits + `" waits for a maintenance window, closed by the hub`
			}
			if diff := cmp.Diff(want, waits); diff != "" {
				t.Error(diff)
			}
			if at := o.ReadyGeneration(); at != test.at {
				t.Errorf("Ready is of generation %d, want %d", at, test.at)
			}
		})
	}
}

func TestTimeoutsStopDuringASuspension(t *testing.T) {
	spec := twoSteps(func(p *kudo.Plan) { p.Timeout, p.Phases[0].Steps[0].Timeout = within(time.Hour), within(5*time.Minute) })
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	record := func(status kudo.PlanStatus, minutes int) kudo.PlanStatus {
		return plan.Record(spec, status, map[plan.Task]plan.Outcome{{}: waits}, at(minutes))
	}
	status := record(plan.Begin("deploy", spec, "x", noon), 1)
	status = record(plan.MarkSuspension(spec, status, true, at(2)), 100)
	if status.Status != kudo.InProgress || !plan.Deadline(spec, status).IsZero() {
		t.Fatalf("during the suspension: %s, deadline %s", status.Message, plan.Deadline(spec, status))
	}
	if again := plan.MarkSuspension(spec, status, true, at(50)); !cmp.Equal(again, status) {
		t.Error("a suspension begins twice")
	}
	status = plan.MarkSuspension(spec, status, false, at(102))
	if got, want := plan.Deadline(spec, status), at(105).Add(time.Second); !got.Equal(want) {
		t.Errorf("after the suspension: deadline %s, want %s", got, want)
	}
	status = plan.MarkSuspension(spec, plan.MarkSuspension(spec, status, true, at(103)), false, at(203))
	if status = record(status, 204); status.Status != kudo.InProgress {
		t.Errorf("after another suspension: %s", status.Message)
	}
	if failed := record(status, 206); failed.Status != kudo.FatalError {
		t.Error("the timeout does not continue")
	}
	for name, forged := range map[string]int64{"negative": -1 << 62, "large": 1 << 62} {
		status.Phases[0].Steps[0].SuspendedSeconds = forged
		if deadline := plan.Deadline(spec, status); deadline.Before(noon) || deadline.After(noon.AddDate(2, 0, 0)) {
			t.Errorf("a %s number: %s", name, deadline)
		}
	}
	ended := plan.MarkSuspension(spec, status, true, at(206))
	ended.Status = kudo.FatalError
	if plan.MarkSuspension(spec, ended, true, at(207)).SuspendedSince != nil {
		t.Error("an execution that has ended is suspended")
	}
}

func TestASuspensionStopsTheTimeOfAnUpdate(t *testing.T) {
	started := metav1.NewTime(noon)
	status := kudo.PlanStatus{Name: "update", Status: kudo.InProgress, StartedTimestamp: &started, SuspendedSince: &started}
	got, again := plan.UpdatingAvailable(plan.Owner{}, kudo.Plan{}, status, nil, nil, noon.Add(time.Hour))
	if got.Status != metav1.ConditionTrue || !again.IsZero() {
		t.Errorf("got %s: %s, until %s", got.Status, got.Message, again)
	}
}

func TestAParentNamesASuspendedChild(t *testing.T) {
	child := plan.Child{Due: true, Mirror: &kudo.Instance{}}
	child.Name.Namespace, child.Name.Name = "apps", "kafka-zk"
	child.Mirror.Annotations = map[string]string{kudo.AnnotationHubUID: "c"}
	child.Acknowledged = kudo.ChildStatus{Execution: "x", UID: "c", State: kudo.ChildApplied}
	meta.SetStatusCondition(&child.Mirror.Status.Conditions, *plan.WaitingCondition("", "deploy", kudo.Plan{}, kudo.PlanStatus{}))
	got := plan.ChildOutcome(plan.ApplyChild, "x", child)
	want := plan.Outcome{Status: kudo.InProgress, Message: `Instance apps/kafka-zk: plan "deploy" waits: the Instance is suspended`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
