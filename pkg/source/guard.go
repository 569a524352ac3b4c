package source

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tandem-addons/tandem/pkg/core/sourcing"
	"github.com/tandem-addons/tandem/pkg/oci"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Network is how all sources reach registries and repositories.
type Network struct {
	// AllowHosts are the hosts, as HOST:PORT, that may have any address, such as one of this machine.
	AllowHosts []string
	// PlainHTTP are the hosts, with their ports, that use http.
	PlainHTTP []string
	// CAFile is a file with certificate authorities, in addition to those of the system; empty for none.
	CAFile string
}

// Check returns an error if the file of authorities is invalid.
func (n Network) Check() error {
	if n.CAFile == "" {
		return nil
	}
	_, err := oci.ReadAuthorities(n.CAFile)
	return err
}

// guard sends the requests of one attempt. It refuses hosts that the source may not reach before it connects, also after a redirect, and remembers why
// requests failed: a package reports what failed below it as its own problem.
type guard struct {
	hosts     sourcing.Hosts
	network   Network
	transport *http.Transport

	mu sync.Mutex
	// realms are the URLs of tokens that registries have named.
	realms map[string]bool
	// denied is the first error of a host or an address, failed the first one of a server.
	denied, failed error
}

// newGuard returns the transport of an attempt, with further authorities in the Secret of the source; nil for none.
func newGuard(network Network, hosts sourcing.Hosts, authorities []byte) (*guard, error) {
	g := &guard{hosts: hosts, network: network, transport: oci.NewTransport(), realms: map[string]bool{}}
	g.transport.DialContext = network.dial
	var err error
	if g.transport.TLSClientConfig.RootCAs, err = network.authorities(authorities); err != nil {
		return nil, err
	}
	return g, nil
}

// authorities returns the authorities of the system, of the file, and of a Secret; nil for those of the system only.
func (n Network) authorities(more []byte) (*x509.CertPool, error) {
	var texts [][]byte
	if n.CAFile != "" {
		content, err := oci.ReadCAFile(n.CAFile)
		if err != nil {
			return nil, err
		}
		texts = append(texts, content)
	}
	if len(more) > 0 {
		texts = append(texts, more)
	}
	if len(texts) == 0 {
		return nil, nil
	}
	return oci.Authorities("key ca.crt of the Secret, or --ca-file,", texts...)
}

// dial connects to HOST:PORT unless its address is refused. The address is checked when it is connected to, so that a name cannot have another one meanwhile.
func (n Network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	if host, _, err := net.SplitHostPort(address); err != nil || !n.isAllowed(address) {
		dialer.Control = func(_, resolved string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return fmt.Errorf("the address of %s is invalid: %w", host, err)
			}
			return sourcing.CheckAddress(host, at.Addr())
		}
	}
	return dialer.DialContext(ctx, network, address)
}

// isAllowed reports whether HOST:PORT may have any address.
func (n Network) isAllowed(address string) bool {
	return slices.Contains(n.AllowHosts, strings.ToLower(address))
}

// RoundTrip sends a request of a registry's client, which may be for a token.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	return g.send(request, true)
}

// withoutRealms returns a transport that does not reach the URLs of tokens: what is downloaded from a URL has no business there.
func (g *guard) withoutRealms() http.RoundTripper { return downloads{g} }

// downloads is the transport of downloads from URLs and repositories.
type downloads struct{ *guard }

// RoundTrip sends a request.
func (d downloads) RoundTrip(request *http.Request) (*http.Response, error) {
	return d.send(request, false)
}

// send sends a request, to the URL of a token only if that is asked for.
func (g *guard) send(request *http.Request, tokens bool) (*http.Response, error) {
	if err := g.check(request.URL, tokens); err != nil {
		g.note(&g.denied, err)
		return nil, err
	}
	response, err := g.transport.RoundTrip(request)
	var address *sourcing.AddressError
	switch {
	case errors.As(err, &address):
		g.note(&g.denied, address)
	case err != nil:
		g.note(&g.failed, fmt.Errorf("connecting to %s: %w", request.URL.Host, err))
	case response.StatusCode == http.StatusUnauthorized:
		g.learnRealm(response)
	case response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests:
		g.note(&g.failed, fmt.Errorf("%s returned %s", request.URL.Host, text.Escape(text.Truncate(response.Status, maxStatus))))
	}
	return response, err
}

const maxStatus = 100

// check returns an error unless a URL may be requested.
func (g *guard) check(at *url.URL, tokens bool) error {
	g.mu.Lock()
	isRealm := tokens && g.realms[endpointOf(at)]
	g.mu.Unlock()
	if !isRealm {
		if err := g.hosts.Check(at.Host); err != nil {
			return err
		}
	}
	if at.Scheme != "https" && !g.isPlain(at) {
		return fmt.Errorf("%s is not https: an administrator may allow it with --plain-http %s of package-controller", at.Redacted(), at.Host)
	}
	return nil
}

// isPlain reports whether a host may use http: one that the administrator names, or one of this machine that the administrator allows.
func (g *guard) isPlain(at *url.URL) bool {
	return slices.Contains(g.network.PlainHTTP, strings.ToLower(at.Host)) || oci.IsLoopback(at.Host) && g.network.isAllowed(at.Host)
}

// learnRealm allows the URL at which a registry issues tokens, which may be on another host, as for docker.
func (g *guard) learnRealm(response *http.Response) {
	for _, challenge := range response.Header.Values("WWW-Authenticate") {
		scheme, parameters, _ := strings.Cut(challenge, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			continue
		}
		_, rest, found := strings.Cut(parameters, `realm="`)
		realm, _, closed := strings.Cut(rest, `"`)
		at, err := url.Parse(realm)
		if !found || !closed || err != nil || at.Host == "" {
			continue
		}
		g.mu.Lock()
		if len(g.realms) < maxRealms {
			g.realms[endpointOf(at)] = true
		}
		g.mu.Unlock()
	}
}

// maxRealms limits the URLs of tokens in an attempt.
const maxRealms = 16

// endpointOf returns a URL without its query.
func endpointOf(at *url.URL) string {
	return at.Scheme + "://" + strings.ToLower(at.Host) + at.EscapedPath()
}

// note stores the first error of a kind.
func (g *guard) note(into *error, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if *into == nil {
		*into = err
	}
}

// cause returns the error that made a request of the attempt fail: one of a host that is not allowed, else one of a server; nil if none did.
func (g *guard) cause() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.denied != nil {
		return g.denied
	}
	return g.failed
}

// close closes the connections.
func (g *guard) close() { g.transport.CloseIdleConnections() }
