package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/tandem-addons/tandem/pkg/text"
)

// requestTimeout limits a request, with the body of the response.
const requestTimeout = 2 * time.Minute

// transportFor returns the transport for a repository. Other servers that it refers to must have a certificate that its authority has signed, but get no
// client certificate, and are verified.
func (c *Client) transportFor(of repository, own bool) (http.RoundTripper, error) {
	shared, isPlain := c.transport.(*http.Transport)
	if !isPlain || of.CAFile == "" && (!own || of.CertFile == "" && !of.InsecureSkipTLSVerify) {
		return c.transport, nil
	}
	transport := shared.Clone()
	transport.DisableKeepAlives = true
	authorities, err := of.authorities()
	if err != nil {
		return nil, err
	}
	transport.TLSClientConfig.RootCAs = authorities
	if own && of.CertFile != "" {
		certificate, err := tls.LoadX509KeyPair(of.CertFile, of.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate for repository %s: %w", text.Quote(of.Name), err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{certificate}
	}
	transport.TLSClientConfig.InsecureSkipVerify = own && of.InsecureSkipTLSVerify
	return transport, nil
}

// authorities returns the CA of a repository; nil if it is one of the system.
func (r repository) authorities() (*x509.CertPool, error) {
	if r.CAFile == "" {
		return nil, nil
	}
	certificates, err := os.ReadFile(r.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of repository %s: %w", text.Quote(r.Name), err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(certificates) {
		return nil, fmt.Errorf("%s, the CA of repository %s, contains no certificate", r.CAFile, text.Quote(r.Name))
	}
	return pool, nil
}

// explain returns an error of a connection with its way out.
func explain(host string, err error) error {
	var invalid *tls.CertificateVerificationError
	switch {
	case errors.As(err, &invalid):
		return fmt.Errorf("the certificate of %s is not trusted (%w): name its CA with 'helm repo add --ca-file', or for a registry with SSL_CERT_FILE", host, invalid.Err)
	case errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &tls.RecordHeaderError{}):
		return fmt.Errorf("%s does not use TLS: only a registry on this machine may use http", host)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s did not answer in time", host)
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // without the URL, which may contain credentials
	}
	return fmt.Errorf("connecting to %s: %w", host, err)
}
