package report

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

func TestAReportIsUpToDateOnceItIsWritten(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ready := plan.Condition(metav1.ConditionTrue, kudo.ReasonHealthy, "all is well")
	existing := &kudo.Instance{Status: kudo.InstanceStatus{Conditions: []metav1.Condition{ready}}}
	existing.Annotations = map[string]string{kudo.AnnotationHubUID: "u", kudo.AnnotationHubGeneration: "1"}

	for name, test := range map[string]struct {
		existing *kudo.Instance
		note     func(*mirror.Statuses, *kudo.Instance)
		reason   string
	}{
		"the stored status":                         {existing, func(*mirror.Statuses, *kudo.Instance) {}, kudo.ReasonHealthy},
		"why a change cannot be mirrored":           {existing, func(n *mirror.Statuses, i *kudo.Instance) { n.SetProblem(i, "refused") }, kudo.ReasonNotMirrored},
		"why it cannot be mirrored at all":          {nil, func(n *mirror.Statuses, i *kudo.Instance) { n.SetProblem(i, "refused") }, kudo.ReasonNotMirrored},
		"that nothing is left, whatever was before": {existing, func(n *mirror.Statuses, i *kudo.Instance) { n.SetRemoved(i) }, kudo.ReasonRemoved},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reporter{statuses: mirror.NewStatuses(), clock: func() time.Time { return now }}
			onHub := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: "kafka", UID: "u", Generation: 1}}
			test.note(r.statuses, onHub)
			first := r.decide(onHub, test.existing)
			if first == nil || len(first.Conditions) != 1 || first.Conditions[0].Reason != test.reason {
				t.Fatalf("want reason %s, got %+v", test.reason, first)
			}
			onHub.Status = *first.DeepCopy()
			now = now.Add(time.Minute)
			if again := r.decide(onHub, test.existing); !upToDate(onHub.Status, *again) {
				t.Errorf("it would be written again: %+v", again.Conditions)
			}
		})
	}
}

func TestConflictsAreRetriedLessAndLessOften(t *testing.T) {
	const interval = time.Second
	r := &reporter{conflicts: workqueue.NewTypedItemExponentialFailureRateLimiter[string](mirror.StaleCacheDelay, interval)}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "instances"}, "kafka", nil)
	for i, step := range []struct {
		err  error
		want time.Duration
	}{
		{conflict, 50 * time.Millisecond}, {conflict, 100 * time.Millisecond}, {conflict, 200 * time.Millisecond}, {conflict, 400 * time.Millisecond},
		{conflict, 800 * time.Millisecond}, {conflict, interval}, {conflict, interval}, {nil, 0}, {conflict, 50 * time.Millisecond},
	} {
		result, err := r.retry("kafka", step.err)
		if err != nil || result.RequeueAfter != step.want {
			t.Errorf("%d: retried after %s, want %s: %v", i, result.RequeueAfter, step.want, err)
		}
	}
}

func TestReportExtendsTheLastOneThatTheCacheLacks(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	said := kudo.InstanceStatus{ObservedGeneration: 2}
	for name, test := range map[string]struct {
		instance, read string
		since          time.Duration
		reported       int64
		onto           string
	}{
		"the cache is stale":                         {"kafka", "7", time.Second, 2, "8"},
		"the cache has it":                           {"kafka", "8", time.Second, 1, "8"},
		"another writer has written since":           {"kafka", "9", time.Second, 1, "9"},
		"the hub has gone back, and lost it":         {"kafka", "7", cacheLagTimeout, 1, "7"},
		"nothing was said of the Instance until now": {"zookeeper", "7", time.Second, 1, "7"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reporter{
				sent:  map[string]sent{"kafka": {at: now, said: said, read: "7", written: "8"}},
				clock: func() time.Time { return now.Add(test.since) },
			}
			onHub := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: test.instance, ResourceVersion: test.read}}
			due := &report{onHub: onHub, last: kudo.InstanceStatus{ObservedGeneration: 1}, read: test.read}
			if r.catchUp(due); due.last.ObservedGeneration != test.reported || onHub.ResourceVersion != test.onto {
				t.Errorf("told generation %d, goes onto %s", due.last.ObservedGeneration, onHub.ResourceVersion)
			}
		})
	}
}

func TestProgressWaitsForTheInterval(t *testing.T) {
	const interval = 10 * time.Second
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	running := func(status kudo.ExecutionStatus) kudo.InstanceStatus {
		return kudo.InstanceStatus{
			Execution: &kudo.Execution{Plan: "deploy"}, PlanStatus: map[string]kudo.PlanStatus{"deploy": {Status: status}},
		}
	}
	with := func(status kudo.InstanceStatus, reason string) kudo.InstanceStatus {
		status.Conditions = []metav1.Condition{plan.Condition(metav1.ConditionFalse, reason, "")}
		return status
	}
	for name, test := range map[string]struct {
		want          kudo.InstanceStatus
		sent, pending time.Duration // ago; 0 if not
		wait          time.Duration
	}{
		"the start of the first plan":                     {running(kudo.Pending), 0, 0, interval},
		"a step of it":                                    {running(kudo.InProgress), 0, 4 * time.Second, 6 * time.Second},
		"a task that has failed and is tried again":       {running(kudo.Error), 0, 4 * time.Second, 6 * time.Second},
		"the end of the first plan":                       {running(kudo.Complete), 0, 4 * time.Second, -4 * time.Second},
		"its failure":                                     {running(kudo.FatalError), 0, 4 * time.Second, -4 * time.Second},
		"a plan that is still running after the interval": {running(kudo.InProgress), time.Minute, 10 * time.Second, 0},
		"a step soon after a report":                      {running(kudo.InProgress), 3 * time.Second, 0, interval},
		"the end soon after a report":                     {running(kudo.Complete), 3 * time.Second, time.Second, 7 * time.Second},
		"a removal in progress":                           {with(running(kudo.Complete), kudo.ReasonRemoving), time.Minute, time.Second, 9 * time.Second},
		"the end of a removal":                            {with(running(kudo.Complete), kudo.ReasonRemoved), time.Minute, time.Second, -50 * time.Second},
		"why it cannot be mirrored":                       {with(kudo.InstanceStatus{}, kudo.ReasonNotMirrored), time.Minute, 0, -50 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reporter{
				interval: interval, clock: func() time.Time { return now }, sent: map[string]sent{}, since: map[string]time.Time{},
				early: flowcontrol.NewFakeAlwaysRateLimiter(), progress: flowcontrol.NewFakeAlwaysRateLimiter(),
			}
			if test.sent > 0 {
				r.sent["kafka"] = sent{at: now.Add(-test.sent)}
			}
			if test.pending > 0 {
				r.since["kafka"] = now.Add(-test.pending)
			}
			wait := r.wait(&report{onHub: &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: "kafka"}}, want: test.want})
			if wait != test.wait && (wait > 0 || test.wait > 0) {
				t.Errorf("it waits for %s, want %s", wait, test.wait)
			}
		})
	}
}

func TestOnlyProgressWaitsWhileManyInstancesReportIt(t *testing.T) {
	const interval = time.Second
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	always, never := flowcontrol.NewFakeAlwaysRateLimiter(), flowcontrol.NewFakeNeverRateLimiter()
	for name, test := range map[string]struct {
		status          kudo.ExecutionStatus
		pending         time.Duration
		early, progress flowcontrol.RateLimiter
		wait            time.Duration
	}{
		"progress of few Instances":                                {kudo.InProgress, 2 * time.Second, always, never, 0},
		"progress of many, most of which end soon":                 {kudo.InProgress, 2 * time.Second, never, always, 8 * time.Second},
		"progress of many that has been pending for long":          {kudo.InProgress, maxProgressDelay, never, always, 0},
		"progress of too many that has been pending for long":      {kudo.InProgress, maxProgressDelay, always, never, interval},
		"the end of a plan, whatever the number of Instances":      {kudo.Complete, 2 * time.Second, never, never, 0},
		"the failure of a plan, whatever the number of Instances":  {kudo.FatalError, 2 * time.Second, never, never, 0},
		"progress of few Instances, within the interval":           {kudo.InProgress, time.Second / 2, always, always, time.Second / 2},
		"progress of too many Instances, within the interval":      {kudo.InProgress, time.Second / 2, never, never, time.Second / 2},
		"a failed task that is tried again, of too many Instances": {kudo.Error, 4 * time.Second, never, always, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reporter{
				interval: interval, clock: func() time.Time { return now }, sent: map[string]sent{},
				since: map[string]time.Time{"kafka": now.Add(-test.pending)}, early: test.early, progress: test.progress,
			}
			due := &report{onHub: &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: "kafka"}}, want: kudo.InstanceStatus{
				Execution: &kudo.Execution{Plan: "deploy"}, PlanStatus: map[string]kudo.PlanStatus{"deploy": {Status: test.status}},
			}}
			if wait := r.wait(due); wait != test.wait && (wait > 0 || test.wait > 0) {
				t.Errorf("it waits for %s, want %s", wait, test.wait)
			}
		})
	}
}

func TestAnotherInstanceOfTheNameSaysNothing(t *testing.T) {
	r := &reporter{statuses: mirror.NewStatuses(), clock: time.Now}
	existing := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		kudo.AnnotationHubUID: "old", kudo.AnnotationHubGeneration: "1",
	}}}
	if got := r.decide(&kudo.Instance{ObjectMeta: metav1.ObjectMeta{UID: "new"}}, existing); got != nil {
		t.Errorf("it reports %+v", got)
	}
}
