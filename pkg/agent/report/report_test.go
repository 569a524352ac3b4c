package report

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/report"
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
			if again := r.decide(onHub, test.existing); !report.IsUpToDate(onHub.Status, *again) {
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
			due := &pending{onHub: onHub, last: kudo.InstanceStatus{ObservedGeneration: 1}, read: test.read}
			if r.catchUp(due); due.last.ObservedGeneration != test.reported || onHub.ResourceVersion != test.onto {
				t.Errorf("told generation %d, goes onto %s", due.last.ObservedGeneration, onHub.ResourceVersion)
			}
		})
	}
}
