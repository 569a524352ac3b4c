package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

func TestKubeconfigsOfSeveralClustersMerge(t *testing.T) {
	pair := keyPair{Certificate: []byte("certificate"), Key: []byte("key")}
	hub, err := kubeconfig("hub", "https://127.0.0.1:20001", "admin", []byte("ca of hub"), pair)
	if err != nil {
		t.Fatal(err)
	}
	managed, err := kubeconfig("cluster1", "https://127.0.0.1:20002", "admin", []byte("ca of cluster1"), pair)
	if err != nil {
		t.Fatal(err)
	}
	folder := clusterFolder(t.TempDir())
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: []string{folder.path("hub"), folder.path("cluster1")}}
	for i, data := range [][]byte{hub, managed} {
		if err := writePrivate(rules.Precedence[i], data); err != nil {
			t.Fatal(err)
		}
	}
	merged, err := rules.Load()
	if err != nil {
		t.Fatal(err)
	}
	if merged.CurrentContext != "hub" {
		t.Errorf("the current context is %q, want the first file's", merged.CurrentContext)
	}
	got := map[string]string{}
	for name, context := range merged.Contexts {
		got[name] = merged.Clusters[context.Cluster].Server + " as " + context.AuthInfo
	}
	want := map[string]string{
		"hub":      "https://127.0.0.1:20001 as hub-admin",
		"cluster1": "https://127.0.0.1:20002 as cluster1-admin",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("contexts (-want +got):\n%s", diff)
	}
}
