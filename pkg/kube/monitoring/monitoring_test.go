package monitoring

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tandem-addons/tandem/pkg/kube/endpoint"
	"github.com/tandem-addons/tandem/pkg/sandbox/port"
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
		handler := limitCredentials(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
	public, _, err := Access{Insecure: true}.server("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(public.Handler)
	defer server.Close()
	for method, want := range map[string]int{http.MethodGet: http.StatusOK, http.MethodPost: http.StatusMethodNotAllowed} {
		status, body, err := scrape.Do(t.Context(), method, server.URL+"/metrics", "")
		if err != nil || status != want {
			t.Errorf("%s: got status %d, %q, %v, want %d", method, status, body, err, want)
		}
	}
	if public, _, err := (Access{}).server(":8443", &rest.Config{}); err != nil || public.TLS == nil {
		t.Errorf("without the flag, metrics are served over HTTP, %v", err)
	}
}

func TestMetricsAndProbesLimitUnknownClients(t *testing.T) {
	metrics, _, err := Access{}.server("127.0.0.1:0", &rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	metrics.TLS = nil // the limits are the same
	for name, public := range map[string]*endpoint.Public{"metrics": metrics, "probes": Probes("127.0.0.1:0", http.NotFoundHandler())} {
		t.Run(name, func(t *testing.T) {
			server, listener, err := public.Listen(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = server.Serve(listener) }() // it ends with the test
			defer server.Close()
			dial := func() net.Conn {
				connection, err := net.Dial("tcp", listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				return connection
			}

			large := dial()
			_, _ = io.WriteString(large, "GET / HTTP/1.1\r\nHost: a\r\n"+strings.Repeat("a:\r\n", 16<<10)) // the server may have closed the connection
			if status, _ := bufio.NewReader(large).ReadString('\n'); !strings.Contains(status, "431") {
				t.Errorf("a header of 64 KiB that has not ended: got %q", status)
			}
			if err := large.Close(); err != nil {
				t.Error(err)
			}
			for range public.MaxConnections + 1 {
				defer dial().Close()
			}
			if public.MaxConnections > 500 || public.MaxClientConnections > 50 {
				t.Errorf("got %d connections, %d of one client", public.MaxConnections, public.MaxClientConnections)
			}
			if n, err := dial().Read(make([]byte, 1)); n > 0 || err == nil {
				t.Errorf("a connection beyond the limit is open")
			}
		})
	}
}

func TestProbesAreServedAsControllerRuntimeServesThem(t *testing.T) {
	at, err := port.Find()
	if err != nil {
		t.Fatal(err)
	}
	defer at.Release()
	mgr, err := manager.New(&rest.Config{Host: "127.0.0.1:1"}, manager.Options{
		MapperProvider:         func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.MultiRESTMapper{}, nil },
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
	if err != nil {
		t.Fatal(err)
	}
	if mgr, err = WithProbes(mgr, at.Address()); err != nil {
		t.Fatal(err)
	}
	failing := func(*http.Request) error { return errors.New("not yet") }
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("later", failing)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	for path, want := range map[string]int{
		"/healthz": 200, "/healthz/": 200, "/healthz/ping": 200, "/healthz/later": 404, "/readyz": 500, "/readyz/ping": 200, "/readyz/later": 500,
		"/readyz?exclude=later": 200, "/readyz?verbose": 500, "/": 404, "/metrics": 404,
	} {
		status, body, err := scrape.Do(t.Context(), http.MethodGet, "http://"+at.Address()+path, "")
		if err != nil || status != want {
			t.Errorf("%s: got status %d, %q, %v, want %d", path, status, body, err, want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
