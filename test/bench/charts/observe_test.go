package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/audit"
)

// request returns a request that arrived at a second and took one.
func request(t *testing.T, second int, user, verb, resource, subresource string, body *kudo.Instance) audit.Entry {
	t.Helper()
	at := time.Date(2026, 11, 27, 0, 0, second, 0, time.UTC)
	e := audit.Entry{Verb: verb, RequestReceivedTimestamp: metav1.NewMicroTime(at), StageTimestamp: metav1.NewMicroTime(at.Add(time.Second))}
	e.User.Username, e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ResponseStatus.Code = user, resource, subresource, 200
	if body != nil {
		var err error
		if e.RequestObject, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// ran returns an Instance with a status of plan deploy.
func ran(name string, status kudo.ExecutionStatus) *kudo.Instance {
	i := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: name}}
	i.Status.PlanStatus = map[string]kudo.PlanStatus{kudo.DeployPlan: {Status: status}}
	return i
}

func TestADeploymentEndsWithTheLastCompletePlan(t *testing.T) {
	o := expect([]string{"a", "b"})
	err := o.add([]audit.Entry{
		request(t, 0, "other", "create", "configmaps", "", nil),
		request(t, 1, agentUser, "update", "leases", "", nil),
		request(t, 2, agentUser, "get", "", "", nil),
		request(t, 3, agentUser, "patch", "configmaps", "", nil),
		request(t, 4, agentUser, "update", "instances", "status", ran("a", kudo.Complete)),
		request(t, 5, agentUser, "update", "instances", "status", ran("b", kudo.InProgress)),
	})
	if err != nil || o.complete() {
		t.Fatalf("error %v, complete %v before all plans are", err, o.complete())
	}
	err = o.add([]audit.Entry{
		request(t, 6, agentUser, "update", "instances", "status", ran("b", kudo.Complete)),
		request(t, 9, agentUser, "patch", "configmaps", "", nil),
	})
	if err != nil || !o.complete() {
		t.Fatalf("error %v, complete %v", err, o.complete())
	}
	if took := o.ended.Sub(o.began); took != 5*time.Second {
		t.Errorf("it took %v, want from the discovery to the response of the last status", took)
	}
	if diff := cmp.Diff(map[string]int{"discovery": 1, "patch": 1, "update": 3}, o.requests); diff != "" || o.total() != 5 {
		t.Errorf("%d requests (-want +got):\n%s", o.total(), diff)
	}
}

func TestReleasesEndWithTheLastWriteOfHelm(t *testing.T) {
	o := &observation{user: helmUser, requests: map[string]int{}}
	err := o.add([]audit.Entry{
		request(t, 1, agentUser, "patch", "configmaps", "", nil),
		request(t, 2, helmUser, "get", "secrets", "", nil),
		request(t, 4, helmUser, "create", "secrets", "", nil),
		request(t, 8, helmUser, "get", "secrets", "", nil),
	})
	if err != nil || o.ended.Sub(o.began) != 3*time.Second || o.total() != 3 {
		t.Errorf("error %v, %v, %d requests", err, o.ended.Sub(o.began), o.total())
	}
}
