package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pace"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestStatus(t *testing.T) {
	for what, test := range map[string]struct {
		edit      func(o *Observation)
		want      string // of condition Ready: reason and message; empty if nothing is reported
		inventory int
	}{
		"the status of the mirror":                  {func(*Observation) {}, "Healthy all is well", 1},
		"why a change cannot be mirrored":           {func(o *Observation) { o.Problem = "refused" }, "NotMirrored refused", 1},
		"why it cannot be mirrored at all":          {func(o *Observation) { o.Mirror, o.Problem = nil, "refused" }, "NotMirrored refused", 2},
		"that nothing is left, whatever was before": {func(o *Observation) { o.Removed, o.Problem = true, "refused" }, "Removed " + plan.NothingLeft, 0},
		"that a plan is stalled, unless the Instance is not mirrored": {func(o *Observation) {
			o.Mirror.Status.Conditions = append(o.Mirror.Status.Conditions, metav1.Condition{Type: kudo.ConditionStalled})
			o.Problem = "refused"
		}, "NotMirrored refused", 1},
		"nothing without a mirror":                        {func(o *Observation) { o.Mirror = nil }, "", 0},
		"nothing of another Instance of that name":        {func(o *Observation) { o.OnHub.UID = "later" }, "", 0},
		"nothing of a mirror that is not copied":          {func(o *Observation) { delete(o.Mirror.Annotations, kudo.AnnotationHubGeneration) }, "", 0},
		"nothing of an orphan":                            {func(o *Observation) { o.Mirror.Annotations[kudo.AnnotationOrphaned] = "true" }, "", 0},
		"a problem beside the mirror of another Instance": {func(o *Observation) { o.OnHub.UID, o.Problem = "later", "refused" }, "NotMirrored refused", 2},
	} {
		t.Run(what, func(t *testing.T) {
			o := Observation{
				OnHub: &kudo.Instance{
					ObjectMeta: metav1.ObjectMeta{Name: "kafka", UID: "u", Generation: 3},
					Status: kudo.InstanceStatus{
						Conditions: []metav1.Condition{{Type: kudo.ConditionResolved, Status: metav1.ConditionTrue}},
						Inventory:  []kudo.InventoryEntry{{Name: "a"}, {Name: "b"}}, Children: []kudo.ChildStatus{{Task: "t"}},
					},
				},
				Mirror: &kudo.Instance{
					ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kudo.AnnotationHubUID: "u", kudo.AnnotationHubGeneration: "1"}},
					Status: kudo.InstanceStatus{
						Conditions: []metav1.Condition{plan.Condition(metav1.ConditionTrue, kudo.ReasonHealthy, "all is well"), {Type: kudo.ConditionSigned}},
						Inventory:  []kudo.InventoryEntry{{Name: "a"}}, Children: []kudo.ChildStatus{{Task: "t"}},
					},
				},
			}
			test.edit(&o)
			before := []*kudo.Instance{o.OnHub.DeepCopy(), o.Mirror.DeepCopy()}
			status := Status(o)
			if diff := cmp.Diff(before, []*kudo.Instance{o.OnHub, o.Mirror}); diff != "" {
				t.Fatalf("a decision changes what was observed (-before +after):\n%s", diff)
			}
			if status == nil {
				if test.want != "" {
					t.Fatal("nothing is reported")
				}
				return
			}
			ready := meta.FindStatusCondition(status.Conditions, kudo.ConditionReady)
			if got := ready.Reason + " " + ready.Message; got != test.want || len(status.Conditions) != 1 || len(status.Inventory) != test.inventory {
				t.Errorf("reports %s, %+v", got, status)
			}
			if ready.Reason != kudo.ReasonHealthy && ready.ObservedGeneration != 3 {
				t.Errorf("the condition is that of generation %d, want that on the hub", ready.ObservedGeneration)
			}
			if len(status.Children) > 0 {
				t.Error("the status of children is not the agent's")
			}
			o.OnHub.Status.Conditions = append(o.OnHub.Status.Conditions, status.Conditions...)
			reported := *status
			reported.Conditions, reported.Children = o.OnHub.Status.Conditions, o.OnHub.Status.Children
			if !IsUpToDate(reported, *status) {
				t.Error("it would be written again")
			}
		})
	}
}

func running(status kudo.ExecutionStatus) kudo.InstanceStatus {
	return kudo.InstanceStatus{Execution: &kudo.Execution{Plan: "deploy"}, PlanStatus: map[string]kudo.PlanStatus{"deploy": {Status: status}}}
}

func TestProgressWaitsForTheInterval(t *testing.T) {
	const interval = 10 * time.Second
	with := func(status kudo.InstanceStatus, reason string) kudo.InstanceStatus {
		status.Conditions = []metav1.Condition{plan.Condition(metav1.ConditionFalse, reason, "")}
		return status
	}
	for what, test := range map[string]struct {
		want          kudo.InstanceStatus
		sent, pending time.Duration // ago; 0 if never, or since now
		wait          time.Duration
	}{
		"the start of the first plan":                     {running(kudo.Pending), 0, 0, interval},
		"a step of it":                                    {running(kudo.InProgress), 0, 4 * time.Second, 6 * time.Second},
		"a task that has failed and is tried again":       {running(kudo.Error), 0, 4 * time.Second, 6 * time.Second},
		"the end of the first plan":                       {running(kudo.Complete), 0, 4 * time.Second, 0},
		"its failure":                                     {running(kudo.FatalError), 0, 4 * time.Second, 0},
		"a plan that is still running after the interval": {running(kudo.InProgress), time.Minute, 10 * time.Second, 0},
		"a step soon after a report":                      {running(kudo.InProgress), 3 * time.Second, 0, interval},
		"the end soon after a report":                     {running(kudo.Complete), 3 * time.Second, time.Second, 7 * time.Second},
		"a removal in progress":                           {with(running(kudo.Complete), kudo.ReasonRemoving), time.Minute, time.Second, 9 * time.Second},
		"the end of a removal":                            {with(running(kudo.Complete), kudo.ReasonRemoved), time.Minute, time.Second, 0},
		"why it cannot be mirrored":                       {with(kudo.InstanceStatus{}, kudo.ReasonNotMirrored), time.Minute, 0, 0},
	} {
		p := Pending{Now: noon, Since: noon.Add(-test.pending), Interval: interval}
		if test.sent > 0 {
			p.Sent = noon.Add(-test.sent)
		}
		if delay, _ := DelayOf(test.want, p); delay.Min != test.wait {
			t.Errorf("%s: it waits for %s, want %s", what, delay.Min, test.wait)
		}
	}
}

func TestOnlyProgressWaitsWhileManyInstancesReportIt(t *testing.T) {
	for what, test := range map[string]struct {
		status            kudo.ExecutionStatus
		interval, pending time.Duration
		want              pace.Delay
		early             bool
	}{
		"progress":                          {kudo.InProgress, time.Second, 2 * time.Second, pace.Delay{Max: 8 * time.Second}, true},
		"progress of almost the limit":      {kudo.InProgress, time.Second, MaxProgressDelay - 1, pace.Delay{Max: 1}, true},
		"progress of the limit":             {kudo.InProgress, time.Second, MaxProgressDelay, pace.Delay{Max: time.Second}, false},
		"progress within the interval":      {kudo.InProgress, time.Second, time.Second / 2, pace.Delay{Min: time.Second / 2}, true},
		"progress within a long interval":   {kudo.InProgress, time.Minute, MaxProgressDelay, pace.Delay{Min: 50 * time.Second}, true},
		"progress of a long interval":       {kudo.InProgress, time.Minute, time.Minute, pace.Delay{Max: time.Minute}, false},
		"progress after a clock was reset":  {kudo.InProgress, time.Second, -time.Hour, pace.Delay{}, true},
		"the end of a plan":                 {kudo.Complete, time.Second, 2 * time.Second, pace.Delay{}, false},
		"the failure of a plan":             {kudo.FatalError, time.Second, 2 * time.Second, pace.Delay{}, false},
		"a failed task that is tried again": {kudo.Error, time.Second, 4 * time.Second, pace.Delay{Max: 6 * time.Second}, true},
	} {
		delay, early := DelayOf(running(test.status), Pending{Now: noon, Since: noon.Add(-test.pending), Interval: test.interval})
		if delay.Max = max(delay.Max, 0); delay != test.want || early != test.early {
			t.Errorf("%s: got %+v, early %t, want %+v", what, delay, early, test.want)
		}
	}
}
