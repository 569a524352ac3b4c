package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
)

func TestSearchPage(t *testing.T) {
	view := cluster(metav1.Time{})
	all := searched{glance: fleet.Glance{}, definitions: view.Definitions, instances: []kudo.Instance{*view.Instances["kafka"]}}
	all.glance.Add("kafka-cluster", fleet.Subject{Name: "kafka"}, fleet.GlimpseOf(view.AddOns["kafka"]))
	all.glance.Add("kafka-cluster", fleet.Subject{Instance: true, Name: "kafka-tools"}, fleet.Glimpse{State: fleet.Available})
	all.glance["kafka-empty"] = nil
	version := kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "addon-packages", Name: "strimzi-1.0.0"}}
	version.Spec.Operator.Name, version.Spec.Version, version.Spec.AppVersion = "kafka", "1.0.0", "3.9.0"
	all.versions = []kudo.OperatorVersion{version}
	golden(t, "search", frame{Title: "Search", Template: "search", View: all.search("kafka")})
	golden(t, "search-none", frame{Title: "Search", Template: "search", View: all.search(`"><script>alert(1)</script>`)})
	golden(t, "search-empty", frame{Title: "Search", Template: "search", View: searchView{}})
}

// TestSearchIsBounded searches for what all objects of a large fleet have in their names.
func TestSearchIsBounded(t *testing.T) {
	all := searched{glance: wide(1000)}
	for i := range 20_000 {
		name := fmt.Sprintf("addon-%02d", i%20)
		all.instances = append(all.instances, kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("cluster-%04d", i/20), Name: name}})
	}
	view := all.search("e")
	if len(view.Clusters.Shown) != maxFound || view.Clusters.More != 950 {
		t.Errorf("got %d clusters and %d more", len(view.Clusters.Shown), view.Clusters.More)
	}
	view = all.search("addon")
	if len(view.Instances.Shown) != maxFound || view.Instances.More != 19_950 || len(view.AddOns.Shown) != 20 || view.AddOns.More != 0 {
		t.Errorf("got %d Instances and %d more, %d add-ons and %d more", len(view.Instances.Shown), view.Instances.More, len(view.AddOns.Shown), view.AddOns.More)
	}
	if size := len(renderPage(t, frame{Title: "Search", Template: "search", View: view})); size > 60_000 {
		t.Errorf("the page has %d bytes", size)
	}
}

func TestSearchRefusesLongQueries(t *testing.T) {
	long := strings.Repeat("ä", maxQuery)
	request := httptest.NewRequest(http.MethodGet, "/search?q="+url.QueryEscape(long), nil)
	page, err := searchPage(t.Context(), visit{Request: request})
	if err != nil || page.Status != http.StatusBadRequest {
		t.Fatalf("got status %d, error %v", page.Status, err)
	}
	content := renderPage(t, page)
	if !strings.Contains(content, "The query has 506 bytes; names have at most 253.") || strings.Contains(content, "ää") {
		t.Errorf("the page is %s", content)
	}
}
