package sandbox

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestFilesOfContainersAreThoseOfOneFolder(t *testing.T) {
	cluster := &Cluster{plan: clusterPlan{Name: "cluster1", Home: home(t.TempDir())}}
	if err := os.MkdirAll(filepath.Join(cluster.Files(), "out"), 0o700); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "id_rsa")
	for file, content := range map[string]string{outside: "private", filepath.Join(cluster.Files(), "out", "tls.key"): "key"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(cluster.Files(), "out", "link")); err != nil {
		t.Fatal(err)
	}
	for sentence, test := range map[string]struct{ name, want string }{
		"one that was put there":      {"/pipe/out/tls.key", "key"},
		"one that was not put there":  {"/pipe/out/tls.crt", simulated},
		"in a volume that is unknown": {"/pipe/other/a", simulated},
		"one of this machine":         {outside, ""},
		"one by a way up":             {"/pipe/../../../../etc/passwd", ""},
		"one by a way up from there":  {"/pipe/out/../../pipe/out/tls.key", "key"},
		"one by a link":               {"/pipe/out/link", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			file, err := cluster.openFile(test.name)
			if test.want == "" {
				if err == nil {
					t.Error("it is opened")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if got, err := io.ReadAll(file); err != nil || string(got) != test.want {
				t.Errorf("it holds %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestKubeletsAnswerTheAPIServerOnly(t *testing.T) {
	handler := onlyFor(apiServerAtKubelet(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	as := func(name string) *tls.ConnectionState {
		return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: name}}}}
	}
	for sentence, test := range map[string]struct {
		connection *tls.ConnectionState
		want       int
	}{
		"the API server":              {as("kube-apiserver-kubelet-client"), http.StatusTeapot},
		"an administrator":            {as("admin"), http.StatusForbidden},
		"a client without a name":     {&tls.ConnectionState{}, http.StatusForbidden},
		"a client without encryption": {nil, http.StatusForbidden},
	} {
		t.Run(sentence, func(t *testing.T) {
			request, answer := httptest.NewRequest(http.MethodGet, "/exec/ns/pod/container", nil), httptest.NewRecorder()
			request.TLS = test.connection
			handler.ServeHTTP(answer, request)
			if answer.Code != test.want {
				t.Errorf("the answer is %d, want %d", answer.Code, test.want)
			}
		})
	}
}
