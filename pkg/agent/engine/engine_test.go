package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/flowcontrol"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/drift"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/release"
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
	drifts := drift.NewTracker(time.Minute)
	drifts.Of("instance", "", false, time.Now()).Note(drift.Key{}, newDrifted("1"), fieldManager, drift.Finding{Gone: true})
	byExpressions := func(o *unstructured.Unstructured) bool { return o.GetKind() == "Broker" }
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
		"what expressions may read":      {newBroker("1"), newBroker("2"), true},
		"nothing that they may read":     {newBroker("1"), newBroker("1"), false},
		"a field that it has applied":    {newApplied("a"), newApplied("b"), true},
		"any field of one that differs":  {newDrifted("1"), newDrifted("2"), true},
		"nothing of the pod of a Pipe":   {ofPipe("1"), ofPipe("1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			update := event.TypedUpdateEvent[client.Object]{ObjectOld: c.before, ObjectNew: c.after}
			if passes := judgedChanged(drifts, byExpressions).Update(update); passes != c.passes {
				t.Errorf("want %v, got %v", c.passes, passes)
			}
		})
	}
}

func newBroker(resourceVersion string) *unstructured.Unstructured {
	broker := newObject("Broker", resourceVersion, "metadata", "resourceVersion")
	broker.SetAPIVersion("x.example.com/v1")
	return broker
}

func newApplied(field string) *unstructured.Unstructured {
	applied := newObject("ConfigMap", "a", "metadata", "name")
	applied.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: fieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:data":{"f:` + field + `":{}}}`)},
	}})
	return applied
}

func newDrifted(resourceVersion string) *unstructured.Unstructured {
	drifted := newObject("ConfigMap", "drifted", "metadata", "uid")
	drifted.SetResourceVersion(resourceVersion)
	return drifted
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

func TestNamesOfReleases(t *testing.T) {
	long := strings.Repeat("r", release.MaxName+1)
	for sentence, test := range map[string]struct {
		instance, task string
		record         kudo.TaskRecord
		want, err      string
	}{
		"the name of the Instance":                 {instance: "web", want: "web"},
		"the name in the task":                     {instance: "web", task: "shop", want: "shop"},
		"an Instance with a long name":             {instance: long, err: "has 54 characters, more than 53: set a shorter releaseName in the task"},
		"an Instance with a long name, and a task": {instance: long, task: "shop", want: "shop"},
		"another name than the installed":          {instance: "web", task: "shop", record: kudo.TaskRecord{Installed: true, Release: "web"}, err: `set releaseName of the task to "web"`},
		"another name than one not installed":      {instance: "web", task: "shop", record: kudo.TaskRecord{Release: "web"}, want: "shop"},
	} {
		t.Run(sentence, func(t *testing.T) {
			x := &execution{instance: &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: test.instance}}}
			task := kudo.Task{}
			task.Spec.ReleaseName = test.task
			got, err := x.releaseName(task, test.record)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %q and error %v, want %q and %q", got, err, test.want, test.err)
			}
		})
	}
}
