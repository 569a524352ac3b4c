package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestJoinRefusesWhatCannotBe(t *testing.T) {
	for sentence, test := range map[string]struct {
		args []string
		want string
		code int
	}{
		"no cluster":                 {nil, "want CLUSTER, got 0 arguments", ExitUsage},
		"a name that is none":        {[]string{"Cluster_1", "--cluster-context", "c"}, `"Cluster_1" cannot be a cluster's name`, ExitUsage},
		"no way to the cluster":      {[]string{"cluster1"}, "name the managed cluster's --cluster-context or --cluster-kubeconfig", ExitUsage},
		"a certificate for a moment": {[]string{"cluster1", "--cluster-context", "c", "--valid", "1s"}, "--valid 1s: want 10m0s at least", ExitUsage},
		"a hub that is nowhere": {[]string{"cluster1", "--cluster-context", "c", "--kubeconfig", "testdata/nowhere"},
			"reading the kubeconfig of the hub: ", ExitFailure},
	} {
		t.Run(sentence, func(t *testing.T) {
			output, code := run(append([]string{"join"}, test.args...)...)
			if code != test.code || !strings.Contains(output, test.want) {
				t.Errorf("got %d, %s", code, output)
			}
		})
	}
}

func TestAgentReachesTheHubByFilesThatMayChange(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, []byte("authority"), 0o600); err != nil {
		t.Fatal(err)
	}
	j := joining{name: "cluster1", server: &rest.Config{
		Host: "https://hub:6443", BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{CAFile: ca, ServerName: "kubernetes"},
	}}
	written, err := j.kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, content := range map[string][]byte{"kubeconfig": written, "tls.crt": nil, "tls.key": nil} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	want := &rest.Config{Host: "https://hub:6443", TLSClientConfig: rest.TLSClientConfig{
		CAData: []byte("authority"), ServerName: "kubernetes",
		CertFile: filepath.Join(folder, "tls.crt"), KeyFile: filepath.Join(folder, "tls.key"),
	}}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.TLSClientConfig, got.TLSClientConfig); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
