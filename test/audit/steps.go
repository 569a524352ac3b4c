package audit

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Step is a step of an execution. Names of steps are assumed to be unique in their plan.
type Step struct {
	Execution types.UID
	Name      string
}

// Steps holds the executed steps in the log of a managed cluster. The policy must log the bodies of addon-agent's writes.
type Steps struct {
	// Complete is when each step was first recorded as complete.
	Complete map[Step]time.Time
	// Writes lists the successful writes of the step's objects.
	Writes map[Step][]*Entry
}

// Owner returns the Instance and the step that an object belongs to, by its name; the step is empty if there is none.
type Owner func(object types.NamespacedName) (instance types.NamespacedName, step string)

// StepsIn reads the steps from a complete log. An applied object names its execution. A deleted object does not: its write belongs to the
// execution that is recorded as running both before and after it, and to no step if these differ.
func StepsIn(entries []Entry, owner Owner) (*Steps, error) {
	recorded := map[types.NamespacedName][]record{}
	s := &Steps{Complete: map[Step]time.Time{}, Writes: map[Step][]*Entry{}}
	for i := range entries {
		if e := &entries[i]; e.Is("instances", "status") && e.IsSuccess() {
			r, err := s.record(e)
			if err != nil {
				return nil, err
			}
			recorded[e.Object()] = append(recorded[e.Object()], r)
		}
	}
	for i := range entries {
		e := &entries[i]
		if !e.IsSuccess() || e.ObjectRef.Subresource != "" {
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

// Late returns the writes that arrived after their step was recorded as complete.
func (s *Steps) Late() []string {
	var late []string
	for step, writes := range s.Writes {
		complete, recorded := s.Complete[step]
		for _, e := range writes {
			if recorded && e.RequestTime().After(complete) {
				late = append(late, fmt.Sprintf("%s, %s after step %q of execution %s was recorded as complete",
					e, e.RequestTime().Sub(complete), step.Name, step.Execution))
			}
		}
	}
	return late
}

// record is an execution in a written status.
type record struct {
	at        time.Time
	execution types.UID
	running   bool
}

// record processes a written status.
func (s *Steps) record(e *Entry) (record, error) {
	var written kudo.Instance
	if err := json.Unmarshal(e.RequestObject, &written); err != nil {
		return record{}, fmt.Errorf("reading the status in %s: %w", e, err)
	}
	x := written.Status.Execution
	if x == nil {
		return record{at: e.RequestTime()}, nil
	}
	status := written.Status.PlanStatus[x.Plan]
	for _, phase := range status.Phases {
		for _, step := range phase.Steps {
			key := Step{Execution: x.UID, Name: step.Name}
			if _, known := s.Complete[key]; !known && step.Status == kudo.Complete {
				s.Complete[key] = e.RequestTime()
			}
		}
	}
	return record{at: e.RequestTime(), execution: x.UID, running: status.Status.IsRunning()}, nil
}

// stepOf returns the step that a write belongs to; without an execution if there is none.
func stepOf(e *Entry, owner Owner, recorded map[types.NamespacedName][]record) (Step, error) {
	if e.Verb == "delete" {
		instance, step := owner(e.Object())
		return Step{Execution: executionAt(recorded[instance], e.RequestTime()), Name: step}, nil
	}
	var sent metav1.PartialObjectMetadata
	if err := json.Unmarshal(e.RequestObject, &sent); err != nil {
		return Step{}, fmt.Errorf("reading the object in %s: %w", e, err)
	}
	return Step{
		Execution: types.UID(sent.Annotations[kudo.AnnotationExecution]), Name: sent.Annotations[kudo.AnnotationStep],
	}, nil
}

// executionAt returns the execution that runs at that time; empty if that is uncertain. A killed API server may not have logged its last
// writes.
func executionAt(records []record, at time.Time) types.UID {
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
