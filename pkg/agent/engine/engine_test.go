package engine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/flowcontrol"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// newObject returns an object with one field set.
func newObject(kind string, value any, path ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err)
	}
	return o
}

func TestOnlyWhatIsJudgedOfAnObjectLeadsToAPass(t *testing.T) {
	plain := newObject("Pod", "a", "metadata", "name")
	for name, c := range map[string]struct {
		before, after *unstructured.Unstructured
		passes        bool
	}{
		"nothing":                        {plain, plain, false},
		"a new resource version":         {newObject("ConfigMap", "1", "metadata", "resourceVersion"), newObject("ConfigMap", "2", "metadata", "resourceVersion"), false},
		"what it holds":                  {newObject("ConfigMap", "1", "data", "a"), newObject("ConfigMap", "2", "data", "a"), false},
		"a leader that renews":           {newObject("ConfigMap", "1", "metadata", "annotations", "leader"), newObject("ConfigMap", "2", "metadata", "annotations", "leader"), false},
		"a counter in its status":        {newObject("Pod", int64(1), "status", "count"), newObject("Pod", int64(2), "status", "count"), false},
		"its health":                     {plain, newObject("Pod", "Succeeded", "status", "phase"), true},
		"its labels":                     {plain, newObject("Pod", "other", "metadata", "labels", kudo.LabelInstance), true},
		"who has applied it":             {plain, newObject("Pod", "x", "metadata", "annotations", kudo.AnnotationExecution), true},
		"whose it is":                    {plain, newObject("Pod", "x", "metadata", "annotations", kudo.AnnotationInstanceNamespace), true},
		"its finalizers":                 {plain, newObject("Pod", []any{"hold"}, "metadata", "finalizers"), true},
		"its deletion":                   {plain, newObject("Pod", time.Unix(0, 0).Format(time.RFC3339), "metadata", "deletionTimestamp"), true},
		"another object of its name":     {newObject("ConfigMap", "1", "metadata", "uid"), newObject("ConfigMap", "2", "metadata", "uid"), true},
		"the containers of a Pipe's pod": {ofPipe("1"), ofPipe("2"), true},
		"nothing of the pod of a Pipe":   {ofPipe("1"), ofPipe("1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			update := event.TypedUpdateEvent[client.Object]{ObjectOld: c.before, ObjectNew: c.after}
			if passes := judgedChanged().Update(update); passes != c.passes {
				t.Errorf("want %v, got %v", c.passes, passes)
			}
		})
	}
}

func ofPipe(resourceVersion string) *unstructured.Unstructured {
	pod := newObject("Pod", "true", "metadata", "annotations", kudo.AnnotationPipe)
	pod.SetResourceVersion(resourceVersion)
	return pod
}

func TestTasksThatWaitAreLookedAtAgain(t *testing.T) {
	for status, want := range map[kudo.ExecutionStatus]time.Duration{
		kudo.InProgress: recheckInterval, kudo.Pending: recheckInterval, kudo.Error: 0, kudo.Complete: 0, kudo.FatalError: 0,
	} {
		if got := recheckDelay(map[plan.Task]plan.Outcome{{}: {Status: status}}); got != want {
			t.Errorf("%s: want %v, got %v", status, want, got)
		}
	}
}

func TestARemovalThatFailsIsTriedLessAndLessOften(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	e := &engine{backoff: flowcontrol.NewFakeBackOff(minBackoff, maxBackoff, clock)}
	o := plan.Observation{Instance: &kudo.Instance{}}
	fail := func() time.Duration {
		o.Now = clock.Now()
		return e.removalWait(o, errors.New("refused"))
	}
	var waits []time.Duration
	for range 8 {
		wait := fail()
		waits = append(waits, wait)
		clock.Step(wait / 2)
		if again := fail(); again != wait {
			t.Errorf("a failure within %v increases the delay to %v", wait, again)
		}
		clock.Step(wait)
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(waits, want) {
		t.Errorf("want %v, got %v", want, waits)
	}
	if wait := e.removalWait(o, nil); wait != pollInterval {
		t.Errorf("nothing fails any more, and it waits %v", wait)
	}
}
