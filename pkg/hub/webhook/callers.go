package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
)

// Callers are the clients that may call the admission webhooks, as their certificates show. API servers present one there if their
// AdmissionConfiguration names a kubeconfig file for webhooks, and none to conversion webhooks.
type Callers struct {
	// CAFile is a file with the certificate authorities of the clients, PEM; empty: every client may call the webhooks.
	CAFile string
	// Names are the accepted common names; empty: all names.
	Names []string
}

// Check returns why the callers cannot be authenticated.
func (c Callers) Check() error {
	if c.CAFile == "" {
		if len(c.Names) > 0 {
			return fmt.Errorf("--webhook-client-names requires --webhook-client-ca-file")
		}
		return nil
	}
	_, err := c.authorities()
	return err
}

// authorities reads the file, which may be replaced at any time.
func (c Callers) authorities() (*x509.CertPool, error) {
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authorities of webhook clients (--webhook-client-ca-file): %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("reading the certificate authorities of webhook clients (--webhook-client-ca-file): %s has no certificate", c.CAFile)
	}
	return pool, nil
}

// ask makes the server request certificates. Handshakes without one succeed, because conversion webhooks need none.
func (c Callers) ask(config *tls.Config) {
	if c.CAFile == "" {
		return
	}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		authorities, err := c.authorities()
		if err != nil {
			return nil, err
		}
		asking := config.Clone()
		asking.GetConfigForClient = nil
		asking.ClientAuth, asking.ClientCAs = tls.VerifyClientCertIfGiven, authorities
		return asking, nil
	}
}

// authenticate returns a handler that refuses other callers before their requests are read.
func (c Callers) authenticate(next http.Handler) http.Handler {
	if c.CAFile == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.TLS == nil || len(r.TLS.VerifiedChains) == 0:
			w.Header().Set("Connection", "close")
			http.Error(w, "a client certificate of an authority in --webhook-client-ca-file is required", http.StatusUnauthorized)
		case len(c.Names) > 0 && !slices.Contains(c.Names, r.TLS.PeerCertificates[0].Subject.CommonName):
			w.Header().Set("Connection", "close")
			http.Error(w, "the common name of the client certificate is not in --webhook-client-names", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
