package main

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/tandem-addons/tandem/pkg/chart"
)

// TestMain makes the test's program the one whose main function a renderer of charts starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "render-chart" {
		main()
		os.Exit(1)
	}
	chart.ServeChild() // which a renderer requires of the program that starts children
	os.Exit(m.Run())
}

func TestTheProgramRendersCharts(t *testing.T) {
	renderer, err := chart.NewRenderer()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := chart.Pack(fstest.MapFS{
		"Chart.yaml":       {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
		"templates/a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := renderer.Render(t.Context(), chart.Input{
		Archive: archive, Release: chart.Release{Name: "shop"}, Capabilities: chart.Capabilities{KubeVersion: "v1.37.0"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Objects) != 1 || out.Objects[0].Object.GetName() != "shop" {
		t.Errorf("got %v", out.Objects)
	}
}
