package change

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

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

// A kubeconfig of kind, minikube or k3d contains an address of the user's machine, where no pod reaches the hub.
func TestJoinWarnsOfAnAddressOfThisMachine(t *testing.T) {
	for server, warns := range map[string]bool{
		"https://127.0.0.1:34567": true, "https://localhost:6443": true, "https://[::1]:6443": true,
		"https://0.0.0.0:6550": true, "https://LOCALHOST.:6443": true,
		"https://10.0.0.1:6443": false, "https://hub.example.com": false, "%": false,
	} {
		if warning := serverWarning(server); (warning != "") != warns {
			t.Errorf("%s: got %q", server, warning)
		}
	}
}
