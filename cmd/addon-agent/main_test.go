package main

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

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
