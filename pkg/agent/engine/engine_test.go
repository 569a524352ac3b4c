package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// nested returns an object with one field set.
func nested(kind string, value any, path ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err)
	}
	return o
}

func TestOnlyWhatIsJudgedOfAnObjectLeadsToAPass(t *testing.T) {
	plain := nested("Pod", "a", "metadata", "name")
	for name, c := range map[string]struct {
		before, after *unstructured.Unstructured
		passes        bool
	}{
		"nothing":                        {plain, plain, false},
		"a new resource version":         {nested("ConfigMap", "1", "metadata", "resourceVersion"), nested("ConfigMap", "2", "metadata", "resourceVersion"), false},
		"what it holds":                  {nested("ConfigMap", "1", "data", "a"), nested("ConfigMap", "2", "data", "a"), false},
		"a leader that renews":           {nested("ConfigMap", "1", "metadata", "annotations", "leader"), nested("ConfigMap", "2", "metadata", "annotations", "leader"), false},
		"a counter in its status":        {nested("Pod", int64(1), "status", "count"), nested("Pod", int64(2), "status", "count"), false},
		"its health":                     {plain, nested("Pod", "Succeeded", "status", "phase"), true},
		"its labels":                     {plain, nested("Pod", "other", "metadata", "labels", kudo.LabelInstance), true},
		"who has applied it":             {plain, nested("Pod", "x", "metadata", "annotations", kudo.AnnotationExecution), true},
		"whose it is":                    {plain, nested("Pod", "x", "metadata", "annotations", kudo.AnnotationInstanceNamespace), true},
		"its finalizers":                 {plain, nested("Pod", []any{"hold"}, "metadata", "finalizers"), true},
		"its deletion":                   {plain, nested("Pod", time.Unix(0, 0).Format(time.RFC3339), "metadata", "deletionTimestamp"), true},
		"another object of its name":     {nested("ConfigMap", "1", "metadata", "uid"), nested("ConfigMap", "2", "metadata", "uid"), true},
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
	pod := nested("Pod", "true", "metadata", "annotations", kudo.AnnotationPipe)
	pod.SetResourceVersion(resourceVersion)
	return pod
}

func TestTasksThatWaitAreLookedAtAgain(t *testing.T) {
	for status, want := range map[kudo.ExecutionStatus]time.Duration{
		kudo.InProgress: slow, kudo.Pending: slow, kudo.Error: 0, kudo.Complete: 0, kudo.FatalError: 0,
	} {
		if got := lookAgain(map[plan.Task]plan.Outcome{{}: {Status: status}}); got != want {
			t.Errorf("%s: want %v, got %v", status, want, got)
		}
	}
}

func TestARemovalThatFailsIsTriedLessAndLessOften(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	e := &engine{backoff: flowcontrol.NewBackOff(leastBackoff, mostBackoff)}
	o := plan.Observation{Now: now, Instance: &kudo.Instance{}}
	var waits []time.Duration
	for range 8 {
		waits = append(waits, e.removalWait(o, errors.New("refused")))
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(waits, want) {
		t.Errorf("want %v, got %v", want, waits)
	}
	if wait := e.removalWait(o, nil); wait != removalPause {
		t.Errorf("nothing fails any more, and it waits %v", wait)
	}
}

func TestWhatAnAPIServerAnswersIsCutToALine(t *testing.T) {
	got := oneLine("refused:\n" + strings.Repeat("ö", 1<<20))
	if !strings.HasPrefix(got, "refused: ö") || len(got) > 4096 || !utf8.ValidString(got) {
		t.Errorf("got %d bytes: %.20q", len(got), got)
	}
}
