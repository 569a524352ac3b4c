package audit

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Step is one of an execution. Names of steps are taken to be unique in their plan.
type Step struct {
	Execution types.UID
	Name      string
}

// Steps is what the log of a managed cluster tells of the steps that were carried out there. Its policy must ask for the bodies of
// what addon-agent writes.
type Steps struct {
	// Complete is when each step was first recorded as complete.
	Complete map[Step]time.Time
	// Writes are those of its objects that succeeded.
	Writes map[Step][]*Entry
}

// Owner says, by the name of an object, which Instance and which of its steps it belongs to; the name is empty where it is none.
type Owner func(object types.NamespacedName) (instance types.NamespacedName, step string)

// StepsIn reads them from a whole log. An object that is applied names its execution. One that is deleted does not: it is a write of
// the execution that is recorded as running before it and after it, and of no step where these are not the same.
func StepsIn(entries []Entry, owner Owner) (*Steps, error) {
	recorded := map[types.NamespacedName][]record{}
	s := &Steps{Complete: map[Step]time.Time{}, Writes: map[Step][]*Entry{}}
	for i := range entries {
		if e := &entries[i]; e.Is("instances", "status") && e.Succeeded() {
			r, err := s.record(e)
			if err != nil {
				return nil, err
			}
			recorded[e.Object()] = append(recorded[e.Object()], r)
		}
	}
	for i := range entries {
		e := &entries[i]
		if !e.Succeeded() || e.ObjectRef.Subresource != "" {
			continue
		}
		step, err := stepOf(e, owner, recorded)
		if err != nil {
			return nil, err
		}
		if step.Execution != "" && step.Name != "" {
			s.Writes[step] = append(s.Writes[step], e)
		}
	}
	return s, nil
}

// Late are the writes that arrived after their step was recorded as complete.
func (s *Steps) Late() []string {
	var late []string
	for step, writes := range s.Writes {
		complete, recorded := s.Complete[step]
		for _, e := range writes {
			if recorded && e.Received().After(complete) {
				late = append(late, fmt.Sprintf("%s, %s after step %q of execution %s was recorded as complete",
					e, e.Received().Sub(complete), step.Name, step.Execution))
			}
		}
	}
	return late
}

// record is what a status says of the execution.
type record struct {
	at        time.Time
	execution types.UID
	running   bool
}

// record takes in a status that was written.
func (s *Steps) record(e *Entry) (record, error) {
	var written kudo.Instance
	if err := json.Unmarshal(e.RequestObject, &written); err != nil {
		return record{}, fmt.Errorf("reading the status in %s: %w", e, err)
	}
	x := written.Status.Execution
	if x == nil {
		return record{at: e.Received()}, nil
	}
	status := written.Status.PlanStatus[x.Plan]
	for _, phase := range status.Phases {
		for _, step := range phase.Steps {
			key := Step{Execution: x.UID, Name: step.Name}
			if _, known := s.Complete[key]; !known && step.Status == kudo.Complete {
				s.Complete[key] = e.Received()
			}
		}
	}
	return record{at: e.Received(), execution: x.UID, running: status.Status.Running()}, nil
}

// stepOf is the step that a write belongs to; without an execution if it is none's.
func stepOf(e *Entry, owner Owner, recorded map[types.NamespacedName][]record) (Step, error) {
	if e.Verb == "delete" {
		instance, step := owner(e.Object())
		return Step{Execution: running(recorded[instance], e.Received()), Name: step}, nil
	}
	var sent metav1.PartialObjectMetadata
	if err := json.Unmarshal(e.RequestObject, &sent); err != nil {
		return Step{}, fmt.Errorf("reading the object in %s: %w", e, err)
	}
	return Step{
		Execution: types.UID(sent.Annotations[kudo.AnnotationExecution]), Name: sent.Annotations[kudo.AnnotationStep],
	}, nil
}

// running is the execution that runs at that time; empty if that is not certain. An API server that is killed may not have logged
// what it did last.
func running(records []record, at time.Time) types.UID {
	var before record
	for _, r := range records {
		if r.at.After(at) {
			if before.running && r.running && r.execution == before.execution {
				return r.execution
			}
			return ""
		}
		before = r
	}
	return ""
}
