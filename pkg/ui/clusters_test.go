package ui

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tandem-addons/tandem/pkg/console/fleet"
)

// regions returns a small fleet in two regions. The labels of one cluster are unknown.
func regions() (fleet.Glance, map[string]fleet.Managed) {
	all := fleet.Glance{"cluster4": nil}
	all.Add("cluster1", fleet.Subject{Name: "kafka"}, fleet.Glimpse{State: fleet.NotAvailable, Reason: "PlanFailed"})
	all.Add("cluster1", fleet.Subject{Name: "shop"}, fleet.Glimpse{State: fleet.Available, Reason: "Healthy"})
	all.Add("cluster2", fleet.Subject{Name: "kafka"}, fleet.Glimpse{State: fleet.Blocked, Reason: "ParametersInvalid"})
	all.Add("cluster3", fleet.Subject{Name: "kafka"}, fleet.Glimpse{State: fleet.Waiting, Reason: "WaitingForConfiguration"})
	return all, map[string]fleet.Managed{
		"cluster1": {Labels: map[string]string{"region": "eu"}, Kubernetes: "v1.32.1", Available: metav1.ConditionTrue},
		"cluster2": {Labels: map[string]string{"region": "us"}, Kubernetes: "v1.31.4", Available: metav1.ConditionFalse},
		"cluster4": {},
	}
}

func clustersFrame(all fleet.Glance, managed map[string]fleet.Managed, query string) frame {
	values, _ := url.ParseQuery(query)
	f := filterOf("/clusters", values)
	return frame{Title: "Clusters", Template: "clusters", View: clustersOf(f.of(all), f, managed)}
}

func TestClustersPage(t *testing.T) {
	all, managed := regions()
	golden(t, "clusters", clustersFrame(all, managed, "l=region&cluster=cluster"))
	golden(t, "clusters-grouped", clustersFrame(all, managed, "l=a!%3Db&group=region"))
	golden(t, "clusters-unread", clustersFrame(all, nil, "group=region"))
	golden(t, "clusters-refused", clustersFrame(nil, managed, "l=a%3D(&group="+url.QueryEscape(`<b>`)))
	page := fleetFrame(all, "group=region&addon=kafka")
	view := page.View.(fleetView)
	view.Labels = labelTableOf(view.Filter.of(all), view.Filter, managed)
	page.View = view
	golden(t, "fleet-grouped", page)
}

// TestClustersPageIsBounded checks the page of the largest fleet that is promised, with a label that differs on each cluster.
func TestClustersPageIsBounded(t *testing.T) {
	all, managed := fleet.Glance{}, map[string]fleet.Managed{}
	for i := range 1000 {
		name := fmt.Sprintf("cluster-%04d", i)
		managed[name] = fleet.Managed{Labels: map[string]string{"id": fmt.Sprint(i), fmt.Sprintf("label-%d", i): "x"}, Kubernetes: "v1.32.1"}
		for k := range 20 {
			all.Add(name, fleet.Subject{Name: fmt.Sprintf("addon-%02d", k)}, fleet.Glimpse{State: fleet.States[(i+k)%7]})
		}
	}
	for query, want := range map[string]string{"": "?page=10", "group=id": "group=id&amp;page=10"} {
		content := renderPage(t, clustersFrame(all, managed, query))
		if len(content) > 60_000 || !strings.Contains(content, want) {
			t.Errorf("%q: the page has %d bytes, or not %q", query, len(content), want)
		}
	}
	long := renderPage(t, clustersFrame(nil, managed, "group=a&l="+strings.Repeat("(", 10_000)))
	if strings.Count(long, "(") > 10_000+maxProblem {
		t.Error("the problem quotes all of the filter")
	}
}
