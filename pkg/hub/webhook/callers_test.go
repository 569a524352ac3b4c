package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCallersAreChecked(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		callers Callers
		problem string
	}{
		"all":                     {Callers{}, ""},
		"names alone":             {Callers{Names: []string{"a"}}, "--webhook-client-names requires --webhook-client-ca-file"},
		"a file that is missing":  {Callers{CAFile: filepath.Join(t.TempDir(), "ca.crt")}, "no such file"},
		"a file without contents": {Callers{CAFile: empty}, "has no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.callers.Check()
			if test.problem == "" && err != nil || test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("got %v, want %q", err, test.problem)
			}
		})
	}
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

func TestOtherCallersAreRefusedBeforeTheyAreRead(t *testing.T) {
	named := func(name string) *tls.ConnectionState {
		certificate := &x509.Certificate{}
		certificate.Subject.CommonName = name
		return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}, VerifiedChains: [][]*x509.Certificate{{certificate}}}
	}
	for name, test := range map[string]struct {
		callers Callers
		state   *tls.ConnectionState
		want    int
	}{
		"nobody is asked for a certificate":     {Callers{}, &tls.ConnectionState{}, http.StatusOK},
		"a client without a certificate":        {Callers{CAFile: "ca.crt"}, &tls.ConnectionState{}, http.StatusUnauthorized},
		"a client without encryption":           {Callers{CAFile: "ca.crt"}, nil, http.StatusUnauthorized},
		"any client of the authorities":         {Callers{CAFile: "ca.crt"}, named("a"), http.StatusOK},
		"a client with one of the names":        {Callers{CAFile: "ca.crt", Names: []string{"b", "a"}}, named("a"), http.StatusOK},
		"a client with another name":            {Callers{CAFile: "ca.crt", Names: []string{"b"}}, named("a"), http.StatusForbidden},
		"a client without a name, among others": {Callers{CAFile: "ca.crt", Names: []string{"b"}}, named(""), http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodPost, "/", unread{t})
			request.TLS = test.state
			answer := httptest.NewRecorder()
			test.callers.authenticate(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(answer, request)
			if answer.Code != test.want {
				t.Errorf("got %d, want %d", answer.Code, test.want)
			}
		})
	}
}
