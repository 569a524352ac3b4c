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

// The measured users: addon-manager on the hub, addon-agent on both clusters, and the administrator, with whose change each scenario
// starts.
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

// moments holds the times of the first response of an API server, by the name of a child.
type moments map[string]time.Time

// note records the first time for each of the children.
func (m moments) note(e *audit.Entry, children ...string) {
	for _, child := range children {
		if _, known := m[child]; !known {
			m[child] = e.ResponseTime()
		}
	}
}

// writes counts the writes of a program.
type writes struct {
	all, conflicts int
	// some lists the first writes; failed lists writes that failed for another reason than a conflict or a deleted object.
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
	case !e.IsSuccess() && e.ResponseStatus.Code != http.StatusNotFound:
		w.failed = append(w.failed, e.String())
	}
}

// observation holds the data from the audit logs of both clusters since a point in time.
type observation struct {
	// missing lists the Instances without a report of a new complete execution on the hub; known holds the executions that are not new.
	missing map[string]bool
	known   map[execution]bool
	// began is the response to the administrator's first change; ended is the response to the last write of Tandem's programs, except
	// events.
	began, ended time.Time

	// asked is when the managed cluster recorded that the step of a child is in progress, reported when the hub recorded it, created when
	// the hub had the child.
	asked, reported, created moments
	// executions lists the executions recorded by the managed cluster.
	executions map[execution]bool
	// broken lists the failed plans.
	broken []string

	manager, agent writes
}

// expect starts an observation in which each of the Instances is to complete a new execution.
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

// add processes the new entries of a cluster's log. It reports whether some are writes of Tandem's programs.
func (o *observation) add(entries []audit.Entry) (active bool, err error) {
	for i := range entries {
		e := &entries[i]
		switch e.User.Username {
		case administrator:
			if e.IsSuccess() && o.began.IsZero() {
				o.began = e.ResponseTime()
			}
			continue
		case manager:
			o.manager.add(e)
		default:
			o.agent.add(e)
		}
		active = true
		if !e.Is("events", "") && e.ResponseTime().After(o.ended) {
			o.ended = e.ResponseTime()
		}
		if err := o.learn(e); err != nil {
			return active, err
		}
	}
	return active, nil
}

// learn processes a write of an Instance.
func (o *observation) learn(e *audit.Entry) error {
	switch {
	case !e.IsSuccess():
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

// settle processes a report of an execution.
func (o *observation) settle(this execution, status kudo.PlanStatus) {
	switch {
	case o.known[this]:
	case status.Status == kudo.Complete && o.missing[this.instance]:
		delete(o.missing, this.instance)
	case status.Status == kudo.FatalError:
		o.broken = append(o.broken, fmt.Sprintf("plan %q of Instance %q failed: %s", status.Name, this.instance, status.Message))
	}
}

// inProgress returns the children whose steps are in progress.
func inProgress(parent string, status kudo.PlanStatus) []string {
	var children []string
	for _, phase := range status.Phases {
		for _, step := range phase.Steps {
			if step.Status == kudo.InProgress && createsChild(step.Name) {
				children = append(children, parent+"."+step.Name)
			}
		}
	}
	return children
}

// between returns the time between two moments for every child that has both.
func between(from, to moments) []time.Duration {
	var times []time.Duration
	for child, at := range to {
		if began, known := from[child]; known {
			times = append(times, at.Sub(began))
		}
	}
	return times
}

// ran returns the number of started plans of each Instance.
func (o *observation) ran() map[string]int {
	times := map[string]int{}
	for e := range o.executions {
		if !o.known[e] {
			times[e.instance]++
		}
	}
	return times
}
