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

// request returns a request of addon-agent that arrived that many seconds after the first one, with a response one second later.
func request(t *testing.T, second int, verb, resource string, body any) audit.Entry {
	t.Helper()
	var e audit.Entry
	e.Verb, e.ResponseStatus.Code = verb, 200
	e.ObjectRef.APIVersion, e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name = "v1", resource, "bench", "x"
	at := time.Date(2026, 11, 21, 12, 0, second, 0, time.UTC)
	e.RequestReceivedTimestamp, e.StageTimestamp = metav1.NewMicroTime(at), metav1.NewMicroTime(at.Add(time.Second))
	var err error
	if e.RequestObject, err = json.Marshal(body); err != nil {
		t.Fatal(err)
	}
	return e
}

// objectWrite returns the write of an object of Instance a.
func objectWrite(t *testing.T, second int, color string) audit.Entry {
	return request(t, second, "patch", "configmaps", map[string]any{"metadata": map[string]any{
		"labels":      map[string]any{kudo.LabelInstance: "a", "color": color},
		"annotations": map[string]any{kudo.AnnotationPhase: "base", kudo.AnnotationStep: "settings"},
	}})
}

// statusWrite returns the write of the state of an Instance's plan.
func statusWrite(t *testing.T, second int, name string, status kudo.ExecutionStatus) audit.Entry {
	var i kudo.Instance
	i.Name, i.Status.PlanStatus = name, map[string]kudo.PlanStatus{kudo.DeployPlan: {Status: status}}
	e := request(t, second, "update", "instances", i)
	e.ObjectRef.APIGroup, e.ObjectRef.Subresource = kudo.GroupVersion.Group, "status"
	return e
}

func TestDeploymentEndsWhenTheLastPlanIsRecordedAsComplete(t *testing.T) {
	mirrored := request(t, 1, "create", "instances", nil)
	mirrored.ObjectRef.APIGroup = kudo.GroupVersion.Group
	d := expect([]string{"a", "b"})
	err := d.add([]audit.Entry{
		mirrored, statusWrite(t, 2, "a", kudo.InProgress), request(t, 3, "get", "configmaps", nil), objectWrite(t, 4, "red"),
		statusWrite(t, 5, "a", kudo.Complete), objectWrite(t, 6, "blue"), statusWrite(t, 7, "a", kudo.Complete),
	})
	if err != nil || d.complete() {
		t.Fatalf("complete %t, error %v", d.complete(), err)
	}
	if err := d.add([]audit.Entry{statusWrite(t, 8, "b", kudo.Complete), request(t, 9, "get", "configmaps", nil)}); err != nil {
		t.Fatal(err)
	}
	if took := d.ended.Sub(d.began); !d.complete() || took != 8*time.Second {
		t.Errorf("complete %t after %s, want true after 8s", d.complete(), took)
	}
	want := map[string]int{mirror: 1, statusWrites: 4, objectReads: 1, objectWrites: 2}
	if diff := cmp.Diff(want, d.requests); diff != "" || d.total() != 8 {
		t.Errorf("%d requests (-want +got):\n%s", d.total(), diff)
	}
	objects := d.objects()
	if len(objects) != 1 || objects[0].place != (place{"base", "settings"}) || string(objects[0].body) != string(objectWrite(t, 0, "blue").RequestObject) {
		t.Errorf("applied %+v, want one object as it was applied last", objects)
	}
}

func TestReplayTakesFromItsFirstRequestToTheLastApplication(t *testing.T) {
	by := func(agent string, e audit.Entry) audit.Entry {
		e.UserAgent = agent
		return e
	}
	failed := by(bareAgent, request(t, 9, "patch", "configmaps", nil))
	failed.ResponseStatus.Code = 409
	r := replay{missing: 2}
	r.add([]audit.Entry{
		by("addon-agent", request(t, 1, "patch", "configmaps", nil)),
		by(bareAgent, request(t, 3, "patch", "services", nil)), by(bareAgent, request(t, 2, "watch", "deployments", nil)), failed,
	})
	if r.missing != 1 {
		t.Errorf("%d objects are missing, want 1", r.missing)
	}
	r.add([]audit.Entry{by(bareAgent, request(t, 5, "patch", "configmaps", nil))})
	if took := r.ended.Sub(r.began); r.missing != 0 || took != 4*time.Second || r.requests != 4 {
		t.Errorf("%d objects are missing after %s and %d requests, want none after 4s and 4", r.missing, took, r.requests)
	}
}

func TestKindOf(t *testing.T) {
	for name, tc := range map[string]struct {
		verb, group, resource, subresource string
		want                               string
	}{
		"what the API server can do":          {"get", "", "", "", discoveries},
		"an Event":                            {"create", "events.k8s.io", "events", "", events},
		"a status":                            {"update", kudo.GroupVersion.Group, "instances", "status", statusWrites},
		"a cache of objects begins":           {"list", "", "configmaps", "", caches},
		"a cache follows":                     {"watch", kudo.GroupVersion.Group, "instances", "", caches},
		"the Instance of a pass":              {"get", kudo.GroupVersion.Group, "instances", "", instanceReads},
		"the mirror of an Instance is sought": {"list", kudo.GroupVersion.Group, "instances", "", mirror},
		"an Instance is mirrored":             {"create", kudo.GroupVersion.Group, "instances", "", mirror},
		"a namespace for it":                  {"get", "", "namespaces", "", mirror},
		"an object is read":                   {"get", "apps", "deployments", "", objectReads},
		"an object is applied":                {"patch", "apps", "deployments", "", objectWrites},
	} {
		t.Run(name, func(t *testing.T) {
			var e audit.Entry
			e.Verb, e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Subresource = tc.verb, tc.group, tc.resource, tc.subresource
			if got := kindOf(&e); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
