package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// newWrite returns a request for an object in namespace ns that arrived that many seconds after the first request.
func newWrite(t *testing.T, second int, verb, resource, name string, body any) Entry {
	t.Helper()
	var e Entry
	e.Verb, e.ResponseStatus.Code = verb, 200
	e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name = resource, "ns", name
	e.RequestReceivedTimestamp = metav1.NewMicroTime(time.Date(2026, 11, 21, 12, 0, second, 0, time.UTC))
	var err error
	if e.RequestObject, err = json.Marshal(body); err != nil {
		t.Fatal(err)
	}
	return e
}

// objectWrite returns the write of an object of step x in an execution.
func objectWrite(t *testing.T, second int, execution string) Entry {
	var o metav1.PartialObjectMetadata
	o.Annotations = map[string]string{kudo.AnnotationExecution: execution, kudo.AnnotationStep: "x"}
	return newWrite(t, second, "patch", "configmaps", "one-x", o)
}

// statusWrite returns the status of Instance one with step x of an execution in that state.
func statusWrite(t *testing.T, second int, execution types.UID, plan, step kudo.ExecutionStatus) Entry {
	var i kudo.Instance
	i.Status.Execution = &kudo.Execution{UID: execution, Plan: "deploy"}
	i.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {
		Status: plan, Phases: []kudo.PhaseStatus{{Steps: []kudo.StepStatus{{Name: "x", Status: step}}}},
	}}
	e := newWrite(t, second, "update", "instances", "one", i)
	e.ObjectRef.Subresource = "status"
	return e
}

func deletion(t *testing.T, second int) Entry {
	return newWrite(t, second, "delete", "configmaps", "one-x", nil)
}

// byPrefix splits the name at the dash into Instance and step.
func byPrefix(object types.NamespacedName) (types.NamespacedName, string) {
	instance, step, _ := strings.Cut(object.Name, "-")
	return types.NamespacedName{Namespace: object.Namespace, Name: instance}, step
}

func TestLate(t *testing.T) {
	refused := objectWrite(t, 3, "a")
	refused.ResponseStatus.Code = 409
	for name, tc := range map[string]struct {
		entries []Entry
		writes  int
		late    int
	}{
		"what is applied before its step is complete is not late": {
			[]Entry{objectWrite(t, 1, "a"), statusWrite(t, 2, "a", kudo.Complete, kudo.Complete)}, 1, 0,
		},
		"what is applied afterwards is": {
			[]Entry{objectWrite(t, 1, "a"), statusWrite(t, 2, "a", kudo.InProgress, kudo.Complete), objectWrite(t, 3, "a")}, 2, 1,
		},
		"what is applied while its step is in progress is not": {
			[]Entry{statusWrite(t, 2, "a", kudo.InProgress, kudo.InProgress), objectWrite(t, 3, "a")}, 1, 0,
		},
		"another execution may do it again": {
			[]Entry{statusWrite(t, 2, "a", kudo.Complete, kudo.Complete), objectWrite(t, 3, "b")}, 1, 0,
		},
		"what was refused is no write": {
			[]Entry{statusWrite(t, 2, "a", kudo.Complete, kudo.Complete), refused}, 0, 0,
		},
		"what is recorded again was complete the first time": {
			[]Entry{
				statusWrite(t, 1, "a", kudo.InProgress, kudo.Complete), objectWrite(t, 2, "a"), statusWrite(t, 3, "a", kudo.Complete, kudo.Complete),
			}, 1, 1,
		},
		"what is deleted while its execution runs is late, too": {
			[]Entry{
				statusWrite(t, 1, "a", kudo.InProgress, kudo.Complete), deletion(t, 2), statusWrite(t, 3, "a", kudo.InProgress, kudo.Complete),
			}, 1, 1,
		},
		"what is deleted before its step is complete is not": {
			[]Entry{
				statusWrite(t, 1, "a", kudo.InProgress, kudo.InProgress), deletion(t, 2), statusWrite(t, 3, "a", kudo.InProgress, kudo.Complete),
			}, 1, 0,
		},
		"what is deleted next to the end of its execution may come after that, which the log has lost, and is no step's": {
			[]Entry{
				statusWrite(t, 1, "a", kudo.InProgress, kudo.Complete), deletion(t, 2), statusWrite(t, 3, "a", kudo.Complete, kudo.Complete),
			}, 0, 0,
		},
		"what is deleted while nothing runs is no step's": {
			[]Entry{
				statusWrite(t, 1, "a", kudo.Complete, kudo.Complete), deletion(t, 2), statusWrite(t, 3, "a", kudo.Complete, kudo.Complete),
			}, 0, 0,
		},
		"what is deleted while it is not certain which execution runs is no step's": {
			[]Entry{
				statusWrite(t, 1, "a", kudo.InProgress, kudo.Complete), deletion(t, 2), statusWrite(t, 3, "b", kudo.InProgress, kudo.Pending),
			}, 0, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := StepsIn(tc.entries, byPrefix)
			if err != nil {
				t.Fatal(err)
			}
			writes := 0
			for _, w := range steps.Writes {
				writes += len(w)
			}
			if late := steps.Late(); writes != tc.writes || len(late) != tc.late {
				t.Errorf("%d writes, want %d; late, want %d: %s", writes, tc.writes, tc.late, fmt.Sprint(late))
			}
		})
	}
}
