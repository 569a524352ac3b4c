package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/audit"
)

func TestATraceListsRequestsByTheirArrival(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	entry := func(at, took time.Duration, verb, group, resource, subresource, name string) audit.Entry {
		e := audit.Entry{Verb: verb, RequestURI: "/api"}
		e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ObjectRef.Name = group, resource, subresource, name
		e.RequestReceivedTimestamp, e.StageTimestamp = metav1.NewMicroTime(noon.Add(at)), metav1.NewMicroTime(noon.Add(at+took))
		return e
	}
	got := trace([]audit.Entry{ // in the order of their responses
		entry(2*time.Millisecond, 1500*time.Microsecond, "patch", "", "configmaps", "", "a"),
		entry(0, 4*time.Millisecond, "create", kudo.GroupVersion.Group, "instances", "", "kafka"),
		entry(5*time.Millisecond, time.Millisecond, "update", kudo.GroupVersion.Group, "instances", "status", "kafka"),
		entry(7*time.Millisecond, time.Millisecond, "get", "", "", "", ""),
	})
	want := []traced{
		{AtMS: 0, TookMS: 4, Kind: mirror, Verb: "create", Object: "instances/kafka"},
		{AtMS: 2, TookMS: 1.5, Kind: objectWrites, Verb: "patch", Object: "configmaps/a"},
		{AtMS: 5, TookMS: 1, Kind: statusWrites, Verb: "update", Object: "instances/status/kafka"},
		{AtMS: 7, TookMS: 1, Kind: discoveries, Verb: "get", Object: "/api"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
