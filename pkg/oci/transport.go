package oci

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// maxRedirects limits the redirects of a request.
const maxRedirects = 10

// NewTransport returns a transport that uses the proxies of the environment, and limits the time until a server answers. A response is never unpacked, so
// that its size is the one that was sent.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 30 * time.Second, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 1 << 20,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
}

// CheckRedirect follows no redirect from https to http, and sends no credentials to another server, nor to any after it.
func CheckRedirect(next *http.Request, before []*http.Request) error {
	last := before[len(before)-1].URL
	switch {
	case len(before) >= maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case last.Scheme == "https" && next.URL.Scheme != "https":
		return fmt.Errorf("redirected from https to %s", next.URL.Redacted())
	}
	first := before[0].URL.String()
	isElsewhere := func(r *http.Request) bool { return !IsSameOrigin(first, r.URL.String()) }
	if isElsewhere(next) && next.Header.Get("Content-Type") == "application/x-www-form-urlencoded" { // a request for a token, with credentials in its body
		return fmt.Errorf("a request for a token was redirected to another server, %s", next.URL.Redacted())
	}
	if isElsewhere(next) || slices.ContainsFunc(before, isElsewhere) { // each request gets the headers of the first one again
		next.Header.Del("Authorization")
	}
	return nil
}

// checkRedirect is CheckRedirect, and follows no redirect over http to another server: only one on this machine, or one that the user allows, may use it.
func checkRedirect(next *http.Request, before []*http.Request) error {
	if last := before[len(before)-1].URL; next.URL.Scheme != "https" && !IsSameOrigin(last.String(), next.URL.String()) {
		return fmt.Errorf("redirected to %s, which is not https", next.URL.Redacted())
	}
	return CheckRedirect(next, before)
}

// IsSameOrigin reports whether two URLs have the same scheme, host and port.
func IsSameOrigin(one, other string) bool {
	a, err := url.Parse(one)
	b, err2 := url.Parse(other)
	return err == nil && err2 == nil && a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}

// IsLoopback reports whether a registry is on this machine: as for docker, it may use plain http.
func IsLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// maxCABytes limits a file of authorities.
const maxCABytes = 1 << 20

// ReadAuthorities returns the certificate authorities in a file, in addition to those of the system.
func ReadAuthorities(name string) (*x509.CertPool, error) {
	certificates, err := ReadCAFile(name)
	if err != nil {
		return nil, err
	}
	return Authorities(name, certificates)
}

// ReadCAFile returns the text of a file of certificate authorities.
func ReadCAFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	if info.Size() > maxCABytes {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxCABytes)
	}
	certificates, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	return certificates, nil
}

// Authorities returns the certificate authorities in texts, in addition to those of the system. The name is for errors.
func Authorities(name string, texts ...[]byte) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for _, certificates := range texts {
		if !pool.AppendCertsFromPEM(certificates) {
			return nil, fmt.Errorf("%s contains no certificate", name)
		}
	}
	return pool, nil
}
