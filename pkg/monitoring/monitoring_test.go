package monitoring

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/cert"

	"github.com/tandem-addons/tandem/pkg/endpoint"
	"github.com/tandem-addons/tandem/test/scrape"
)

func TestMetricsAreServedWithoutAuthenticationOnLoopbackOnly(t *testing.T) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600), os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	for sentence, test := range map[string]struct {
		access  Access
		address string
		problem string
	}{
		"with authentication, on all addresses":            {Access{}, ":8443", ""},
		"without it, on a loopback address":                {Access{Insecure: true}, "127.0.0.1:8080", ""},
		"without it, on another one":                       {Access{Insecure: true}, "127.8.9.10:8080", ""},
		"without it, on the loopback address of IPv6":      {Access{Insecure: true}, "[::1]:8080", ""},
		"without it, on localhost":                         {Access{Insecure: true}, "localhost:8080", ""},
		"without it, not at all":                           {Access{Insecure: true}, "0", ""},
		"without it, on all addresses":                     {Access{Insecure: true}, ":8080", "requires a loopback address"},
		"without it, on all addresses of IPv4":             {Access{Insecure: true}, "0.0.0.0:8080", "requires a loopback address"},
		"without it, on all addresses of IPv6":             {Access{Insecure: true}, "[::]:8080", "requires a loopback address"},
		"without it, on an address of a pod":               {Access{Insecure: true}, "10.0.0.1:8080", "requires a loopback address"},
		"without it, on a name":                            {Access{Insecure: true}, "localhost.example.com:8080", "requires a loopback address"},
		"without it, on an address without a port":         {Access{Insecure: true}, "127.0.0.1", "requires a loopback address"},
		"with a certificate":                               {Access{CertificateFolder: folder}, ":8443", ""},
		"with a certificate that does not exist":           {Access{CertificateFolder: "/nowhere"}, ":8443", "reading --metrics-cert-dir: open /nowhere/tls.crt"},
		"with a certificate, without HTTPS":                {Access{Insecure: true, CertificateFolder: folder}, "127.0.0.1:8080", "set one of them"},
		"with a certificate that does not exist, disabled": {Access{CertificateFolder: "/nowhere"}, "0", ""},
	} {
		err := test.access.Check(test.address)
		if test.problem == "" && err != nil || test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
			t.Errorf("%s: the error is %v, want %q", sentence, err, test.problem)
		}
	}
}

func TestProfilesAreServedOnLoopbackOnly(t *testing.T) {
	for address, want := range map[string]bool{"0": true, "": true, "127.0.0.1:6060": true, ":6060": false, "0.0.0.0:6060": false} {
		if err := CheckProfiles(address); (err == nil) != want {
			t.Errorf("%q: the error is %v", address, err)
		}
	}
}

// TestCredentialsAreLimited covers which responses of the filter count as acceptance of a credential.
func TestCredentialsAreLimited(t *testing.T) {
	const requests = 10_000
	for status, isAccepted := range map[int]bool{
		http.StatusOK: true, http.StatusForbidden: true, http.StatusUnauthorized: false, http.StatusInternalServerError: false,
	} {
		passed := 0
		handler := checked(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			passed++
			w.WriteHeader(status)
		}), endpoint.NewCredentials())
		refused := 0
		for range requests {
			r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			r.Header.Set("Authorization", "Bearer token")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") != "" {
				refused++
			}
		}
		if passed+refused != requests || isAccepted && refused > 0 || !isAccepted && passed > requests/2 {
			t.Errorf("with status %d, %d requests are passed on and %d refused, of %d", status, passed, refused, requests)
		}
	}
}

func TestInsecureMetricsAreReadWithoutAToken(t *testing.T) {
	filter, err := Access{Insecure: true}.Options("127.0.0.1:0").FilterProvider(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") }))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	for method, want := range map[string]int{http.MethodGet: http.StatusOK, http.MethodPost: http.StatusMethodNotAllowed} {
		status, body, err := scrape.Do(t.Context(), method, server.URL, "")
		if err != nil || status != want {
			t.Errorf("%s: got status %d, %q, %v, want %d", method, status, body, err, want)
		}
	}
	if options := (Access{}).Options(":8443"); !options.SecureServing {
		t.Error("without the flag, metrics are served over HTTP")
	}
}
