package ui

import (
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/test/sample"
)

// TestGraph shows dependencies with versions, alternatives, and clusters on which they do not exist.
func TestGraph(t *testing.T) {
	view := sample.NewCluster("shop: kafka|redpanda search gpu@gpu? vault", "kafka:", "redpanda:", "search:", "gpu:", "vault:").With("shop", sample.Works).With("redpanda", sample.Works).With("vault", sample.Works).With("search", sample.Works).
		WithVersion("vault", "3.1.0").WithVersion("search", "1.9.0").Labelled().Cluster
	for i, need := range view.Definitions["shop"].Needs {
		view.Definitions["shop"].Needs[i].Version = map[string]string{"vault": ">=3 <4", "search": ">=2", "gpu": ">=1"}[need.Name]
	}
	golden(t, "cluster-graph", frame{Title: "Cluster cluster1", Template: "cluster", View: clusterOf(view)})
	golden(t, "addon-graph", frame{Title: "Add-on shop", Template: "addon", View: addOnOf("shop", fleet.Glance{}, view.Definitions)})
}

// TestGraphEscapes checks that texts from the hub are text in the drawing.
func TestGraphEscapes(t *testing.T) {
	view := sample.NewCluster("shop: vault", "vault:").WithConstraint("shop", "vault", ">=1").With("shop", sample.Works).With("vault", sample.Works).
		WithVersion("vault", "<script>1</script>")
	page := renderPage(t, frame{Title: "Cluster cluster1", Template: "cluster", View: clusterOf(view.Cluster)})
	if strings.Contains(page, "<script>1") || !strings.Contains(page, "&lt;script&gt;") {
		t.Errorf("the version is not escaped: %s", page)
	}
}
