package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"k8s.io/client-go/rest"

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

func TestTrustAddsAnAuthorityToThoseOfTheHub(t *testing.T) {
	file := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	proxy := file("proxy", "PROXY")
	t.Setenv("SSL_CERT_FILE", file("system", "SYSTEM"))
	for name, test := range map[string]struct {
		flag    string
		hub     rest.TLSClientConfig
		want    string
		problem bool
	}{
		"no authority is named":                  {hub: rest.TLSClientConfig{CAData: []byte("HUB")}, want: "HUB"},
		"the kubeconfig holds the hub's":         {flag: proxy, hub: rest.TLSClientConfig{CAData: []byte("HUB")}, want: "HUB\nPROXY"},
		"the kubeconfig names a file":            {flag: proxy, hub: rest.TLSClientConfig{CAFile: file("hub", "FILE")}, want: "FILE\nPROXY"},
		"the hub is known by public authorities": {flag: proxy, want: "SYSTEM\nPROXY"},
		"the file is missing":                    {flag: proxy + "-missing", hub: rest.TLSClientConfig{CAData: []byte("HUB")}, want: "HUB", problem: true},
	} {
		t.Run(name, func(t *testing.T) {
			config := &rest.Config{TLSClientConfig: test.hub}
			err := (&settings{hubAuthority: test.flag}).trust(config)
			if (err != nil) != test.problem {
				t.Fatalf("the error is %v", err)
			}
			if got := string(config.CAData); got != test.want {
				t.Errorf("trusted are %q, want %q", got, test.want)
			}
		})
	}
}
