package main

import (
	"encoding/json"
	"time"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/audit"
)

// The users of addon-agent and of Helm.
const (
	agentUser = "system:serviceaccount:tandem-system:addon-agent"
	helmUser  = "system:serviceaccount:default:bench-helm"
)

// observation is the part of the audit log with the requests of one user.
type observation struct {
	user string
	// missing lists the Instances without a plan that is recorded as complete. Once there is none, requests are no longer counted.
	missing map[string]bool
	// began is the arrival of the first request, ended the response to the last write.
	began, ended time.Time
	// requests counts the requests by verb.
	requests map[string]int
}

// expect starts the observation of a deployment by addon-agent.
func expect(instances []string) *observation {
	o := &observation{user: agentUser, missing: map[string]bool{}, requests: map[string]int{}}
	for _, name := range instances {
		o.missing[name] = true
	}
	return o
}

func (o *observation) complete() bool { return len(o.missing) == 0 }

// add processes entries, up to the request that completes a deployment.
func (o *observation) add(entries []audit.Entry) error {
	deploys := !o.complete()
	for i := range entries {
		e := &entries[i]
		if e.User.Username != o.user || e.Is("leases", "") {
			continue
		}
		o.requests[verbOf(e)]++
		if o.began.IsZero() || e.RequestTime().Before(o.began) {
			o.began = e.RequestTime()
		}
		if isWrite(e) && e.ResponseTime().After(o.ended) {
			o.ended = e.ResponseTime()
		}
		if err := o.record(e); err != nil {
			return err
		}
		if deploys && o.complete() {
			return nil
		}
	}
	return nil
}

// record processes a written status.
func (o *observation) record(e *audit.Entry) error {
	if !e.Is("instances", "status") || !e.IsSuccess() || e.RequestObject == nil {
		return nil
	}
	var written kudo.Instance
	if err := json.Unmarshal(e.RequestObject, &written); err != nil {
		return err
	}
	if written.Status.PlanStatus[kudo.DeployPlan].Status == kudo.Complete {
		delete(o.missing, written.Name)
	}
	return nil
}

// total returns the number of requests.
func (o *observation) total() int {
	sum := 0
	for _, count := range o.requests {
		sum += count
	}
	return sum
}

func isWrite(e *audit.Entry) bool {
	return e.Verb == "create" || e.Verb == "update" || e.Verb == "patch" || e.Verb == "delete"
}

// verbOf returns the verb of a request; requests that are for no object discover what the API server serves.
func verbOf(e *audit.Entry) string {
	if e.ObjectRef.Resource == "" {
		return "discovery"
	}
	return e.Verb
}
