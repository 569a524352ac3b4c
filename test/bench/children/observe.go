package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/bench/stage"
)

// Who writes: addon-manager on the hub, addon-agent on both clusters, and the administrator by whom each scenario begins.
const (
	manager       = "system:serviceaccount:tandem-system:addon-manager"
	agentHere     = "system:serviceaccount:tandem-system:addon-agent"
	agentOnHub    = "system:open-cluster-management:cluster:" + stage.Managed + ":addon:tandem:agent:addon-agent"
	administrator = "admin"
)

// execution is one run of a plan of an Instance.
type execution struct {
	instance string
	uid      types.UID
}

// moments are when something was first answered by an API server, by the name of a child.
type moments map[string]time.Time

// note keeps the first moment of each of the children.
func (m moments) note(e *audit.Entry, children ...string) {
	for _, child := range children {
		if _, known := m[child]; !known {
			m[child] = e.Answered()
		}
	}
}

// writes are those of a program.
type writes struct {
	all, conflicts int
	// some are the first of all, failed those that failed for another reason than that somebody was faster, or that the object is gone.
	some, failed []string
}

func (w *writes) add(e *audit.Entry) {
	w.all++
	if len(w.some) < shownWrong {
		w.some = append(w.some, e.String())
	}
	switch {
	case e.Conflicts():
		w.conflicts++
	case !e.Succeeded() && e.ResponseStatus.Code != http.StatusNotFound:
		w.failed = append(w.failed, e.String())
	}
}

// observation is what the audit logs of both clusters tell since some moment.
type observation struct {
	// missing are the Instances of which the hub has not been told that a new execution is complete; known are those that are not new.
	missing map[string]bool
	known   map[execution]bool
	// began is when the administrator's first change was answered, ended when the last write of Tandem's programs was, events apart.
	began, ended time.Time

	// asked is when the managed cluster had recorded that the step of a child is in progress, reported when the hub had, created when the
	// hub had the child.
	asked, reported, created moments
	// executions are those that the managed cluster has recorded.
	executions map[execution]bool
	// broken says which plans have failed.
	broken []string

	manager, agent writes
}

// expect begins an observation in which each of those Instances is to complete an execution that is not known yet.
func expect(instances []string, known map[execution]bool) *observation {
	o := &observation{
		missing: map[string]bool{}, known: maps.Clone(known),
		asked: moments{}, reported: moments{}, created: moments{}, executions: map[execution]bool{},
	}
	for _, name := range instances {
		o.missing[name] = true
	}
	return o
}

func (o *observation) complete() bool { return len(o.missing) == 0 }

// add takes in what one of the clusters has logged. It reports whether some of it was written by Tandem's programs.
func (o *observation) add(entries []audit.Entry) (active bool, err error) {
	for i := range entries {
		e := &entries[i]
		switch e.User.Username {
		case administrator:
			if e.Succeeded() && o.began.IsZero() {
				o.began = e.Answered()
			}
			continue
		case manager:
			o.manager.add(e)
		default:
			o.agent.add(e)
		}
		active = true
		if !e.Is("events", "") && e.Answered().After(o.ended) {
			o.ended = e.Answered()
		}
		if err := o.learn(e); err != nil {
			return active, err
		}
	}
	return active, nil
}

// learn takes in what a write says of Instances.
func (o *observation) learn(e *audit.Entry) error {
	switch {
	case !e.Succeeded():
		return nil
	case e.User.Username == manager && e.Is("instances", "") && e.ResponseStatus.Code == http.StatusCreated:
		o.created.note(e, e.ObjectRef.Name)
		return nil
	case e.User.Username == manager || !e.Is("instances", "status"):
		return nil
	}
	var written kudo.Instance
	if err := json.Unmarshal(e.RequestObject, &written); err != nil {
		return fmt.Errorf("reading the status in %s: %w", e, err)
	}
	last := written.Status.Execution
	if last == nil {
		return nil
	}
	status, this := written.Status.PlanStatus[last.Plan], execution{e.ObjectRef.Name, last.UID}
	if e.User.Username == agentOnHub {
		o.reported.note(e, inProgress(e.ObjectRef.Name, status)...)
		o.settle(this, status)
		return nil
	}
	o.asked.note(e, inProgress(e.ObjectRef.Name, status)...)
	o.executions[this] = true
	return nil
}

// settle takes in a report of an execution.
func (o *observation) settle(this execution, status kudo.PlanStatus) {
	switch {
	case o.known[this]:
	case status.Status == kudo.Complete && o.missing[this.instance]:
		delete(o.missing, this.instance)
	case status.Status == kudo.FatalError:
		o.broken = append(o.broken, fmt.Sprintf("plan %q of Instance %q failed: %s", status.Name, this.instance, status.Message))
	}
}

// inProgress are the children whose steps are.
func inProgress(parent string, status kudo.PlanStatus) []string {
	var children []string
	for _, phase := range status.Phases {
		for _, step := range phase.Steps {
			if step.Status == kudo.InProgress && bringsChild(step.Name) {
				children = append(children, parent+"."+step.Name)
			}
		}
	}
	return children
}

// between are the times from one moment to another of every child that has both.
func between(from, to moments) []time.Duration {
	var times []time.Duration
	for child, at := range to {
		if began, known := from[child]; known {
			times = append(times, at.Sub(began))
		}
	}
	return times
}

// ran is how often each Instance has begun to run a plan.
func (o *observation) ran() map[string]int {
	times := map[string]int{}
	for e := range o.executions {
		if !o.known[e] {
			times[e.instance]++
		}
	}
	return times
}
