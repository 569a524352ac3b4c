// Package monitoring serves the metrics of a program to clients that its API server authenticates and authorizes, and the probes of its kubelet.
package monitoring

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/kube/endpoint"
)

// Access is how metrics are served: by default over HTTPS with a self-signed certificate, to clients that may get /metrics.
type Access struct {
	// Insecure serves metrics over HTTP to every client.
	Insecure bool
	// CertificateFolder is the folder with tls.crt and tls.key, which are read again when they change. If empty, the certificate is self-signed.
	CertificateFolder string
}

// Bind adds the flags.
func (a *Access) Bind(flags *flag.FlagSet) {
	flags.BoolVar(&a.Insecure, "metrics-insecure", false,
		"Serve metrics over HTTP, without authentication. The host of --metrics-bind-address must be a loopback address.")
	flags.StringVar(&a.CertificateFolder, "metrics-cert-dir", "",
		"Folder with the certificate of the metrics endpoint, tls.crt and tls.key. They are read again when they change. If empty, the certificate\n"+
			"is self-signed.")
}

// Check rejects flags that would serve metrics to everyone, or with another certificate than the one that is named.
func (a Access) Check(address string) error {
	switch {
	case address == "0":
		return nil
	case a.Insecure && !isLoopback(address):
		return fmt.Errorf("--metrics-insecure requires a loopback address in --metrics-bind-address, such as 127.0.0.1:8080, got %q", address)
	case a.Insecure && a.CertificateFolder != "":
		return errors.New("--metrics-cert-dir has no effect with --metrics-insecure: set one of them")
	case a.CertificateFolder != "":
		if _, err := tls.LoadX509KeyPair(a.CertificateFolder+"/tls.crt", a.CertificateFolder+"/tls.key"); err != nil {
			return fmt.Errorf("reading --metrics-cert-dir: %w", err)
		}
	}
	return nil
}

// isLoopback reports whether HOST:PORT is reachable only from this machine.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// CheckProfiles rejects an address of profiles that other machines reach, because profiles are served without authentication.
func CheckProfiles(address string) error {
	if address != "" && address != "0" && !isLoopback(address) {
		return fmt.Errorf("--pprof-bind-address must be a loopback address, such as 127.0.0.1:6060, got %q: use kubectl port-forward", address)
	}
	return nil
}

// authenticated serves metrics to clients that the API server authenticates and authorizes, over a separate connection.
func authenticated(config *rest.Config, next http.Handler) (http.Handler, error) {
	own := controller.WithoutLimits(config)
	client, err := rest.HTTPClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server for the authentication of metrics: %w", err)
	}
	filter, err := filters.WithAuthenticationAndAuthorization(own, client)
	if err != nil {
		return nil, fmt.Errorf("preparing the authentication of metrics: %w", err)
	}
	filtered, err := filter(ctrl.Log.WithName("metrics"), next)
	if err != nil {
		return nil, fmt.Errorf("preparing the authentication of metrics: %w", err)
	}
	return limitCredentials(filtered, endpoint.NewCredentials()), nil
}

// requestTimeout is how long a client may take to send a request and receive the metrics.
const requestTimeout = 30 * time.Second

// prompt ends requests that are slow, and those with another method than the one that clients are authorized for.
func prompt(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, end := http.NewResponseController(w), time.Now().Add(requestTimeout)
		if err := errors.Join(connection.SetReadDeadline(end), connection.SetWriteDeadline(end)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if r.Method != http.MethodGet {
			http.Error(w, "metrics are read with GET", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// limitCredentials limits the credentials that the API server is asked about.
func limitCredentials(next http.Handler, credentials *endpoint.Credentials) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		credential := r.Header.Get("Authorization")
		if credential == "" {
			http.Error(w, "Unauthorized: send a bearer token", http.StatusUnauthorized)
			return
		}
		client, _ := endpoint.Proxies{}.Client(r)
		end, may := credentials.Begin(client, credential)
		if !may {
			w.Header().Set("Retry-After", strconv.Itoa(int(endpoint.RetryAfter/time.Second)))
			http.Error(w, "too many unknown tokens, try again", http.StatusTooManyRequests)
			return
		}
		written := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(written, r)
		end(written.outcome())
	})
}

// statusWriter remembers the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader writes the status.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the writer of the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// outcome returns whether the credential was accepted. The filter responds with the same error to a wrong token and if the API server fails.
func (w *statusWriter) outcome() endpoint.Outcome {
	if w.status == http.StatusOK || w.status == http.StatusForbidden {
		return endpoint.Accepted
	}
	return endpoint.Rejected
}
