package fleet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

func TestManagedOf(t *testing.T) {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"region": "eu"}}}
	if diff := cmp.Diff(Managed{Labels: cluster.Labels}, ManagedOf(cluster)); diff != "" {
		t.Error("a cluster that has reported nothing:", diff)
	}
	cluster.Status.Version.Kubernetes = strings.Repeat("v", 1000)
	cluster.Status.Conditions = []metav1.Condition{
		{Type: "Joined", Status: metav1.ConditionTrue}, {Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionUnknown},
	}
	if got := ManagedOf(cluster); got.Available != metav1.ConditionUnknown || len(got.Kubernetes) > maxVersion {
		t.Errorf("got %+v", got)
	}
}

func TestGroupByLabel(t *testing.T) {
	glance := Glance{"empty": nil, "bare": nil}
	glance.Add("one", Subject{Name: "kafka"}, Glimpse{State: Available})
	glance.Add("one", Subject{Name: "shop"}, Glimpse{State: Blocked})
	glance.Add("two", Subject{Name: "kafka"}, Glimpse{State: Available})
	glance.Add("us", Subject{Instance: true, Name: "kafka"}, Glimpse{State: Waiting})
	glance.Add("unread", Subject{Name: "kafka"}, Glimpse{State: NotAvailable})
	regions := map[string]Managed{
		"one": {Labels: map[string]string{"region": "eu"}}, "two": {Labels: map[string]string{"region": "eu"}}, "us": {Labels: map[string]string{"region": "us"}},
		"empty": {Labels: map[string]string{"region": ""}}, "bare": {}, "not selected": {Labels: map[string]string{"region": "mars"}},
	}
	want := []LabelGroup{
		{Selector: "region=", Labeled: true, StateSum: StateSum{Clusters: 1, States: map[State]int{}}},
		{Selector: "region=eu", Value: "eu", Labeled: true, StateSum: StateSum{Clusters: 2, States: map[State]int{Available: 2, Blocked: 1}}},
		{Selector: "region=us", Value: "us", Labeled: true, StateSum: StateSum{Clusters: 1, States: map[State]int{Waiting: 1}}},
		{Selector: "!region", StateSum: StateSum{Clusters: 1, States: map[State]int{}}},
	}
	if diff := cmp.Diff(want, glance.GroupByLabel("region", regions)); diff != "" {
		t.Error(diff)
	}
}
