// Package proxy is a proxy between a program and an API server that records the program's writes and injects faults: a write is refused,
// delayed, or forwarded without its answer; watches are held, and lists answered with an older state; the link is cut. It touches the
// cluster only with the requests of the program.
package proxy

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Proxy is a link from a program to an API server. It authenticates itself there in place of the program, whose own credentials do not pass
// a proxy that terminates TLS; the program's impersonation headers are forwarded.
type Proxy struct {
	server    *httptest.Server
	target    *url.URL
	transport http.RoundTripper
	forward   *httputil.ReverseProxy
	decide    func(*Write) Fault

	// flight counts the writes that the API server has not answered.
	flight sync.WaitGroup

	mutex   sync.Mutex
	cut     bool
	view    view
	journal []*Write
	watches int
	started int
	// pending counts the requests that are not answered, without watches, and active is the last time at which the program sent a request,
	// or received an answer or an event. Neither counts periodic writes.
	pending int
	active  time.Time
}

// Fault is what happens to a write. The zero value forwards it.
type Fault struct {
	// Delay is how long the write is held before anything else.
	Delay time.Duration
	// Before is called instead of forwarding the write, which is not answered. After is called when the API server has answered, and the
	// answer is dropped. Both usually stop the program.
	Before, After func()
	// Refuse is the status code to answer instead of forwarding, and Replace the code to answer instead of the API server's answer.
	Refuse, Replace int
	// Meanwhile is called before the write is forwarded.
	Meanwhile func()
}

// Start starts a proxy to the API server of upstream, with its identity. decide is called for every write before anything happens to it, by
// several goroutines.
func Start(upstream *rest.Config, decide func(*Write) Fault) (*Proxy, error) {
	transport, err := rest.TransportFor(upstream)
	if err != nil {
		return nil, fmt.Errorf("connecting the proxy: %w", err)
	}
	target, _, err := rest.DefaultServerUrlFor(upstream)
	if err != nil {
		return nil, fmt.Errorf("connecting the proxy: %w", err)
	}
	p := &Proxy{target: target, transport: transport, decide: decide, view: view{thawed: closedChannel()}}
	p.forward = &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, target.Host
			r.Out.Header.Del("Authorization")
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.StartTLS()
	return p, nil
}

// Stop stops the proxy and closes its connections.
func (p *Proxy) Stop() {
	p.Thaw(false)
	p.Cut()
	p.server.Close()
}

// Kubeconfig returns a kubeconfig of the API server by way of the proxy.
func (p *Proxy) Kubeconfig() ([]byte, error) {
	const name = "proxy"
	config := clientcmdapi.NewConfig()
	config.CurrentContext = name
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   p.server.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw}),
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: name}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	return clientcmd.Write(*config)
}

// Cut closes all connections and refuses requests until Mend.
func (p *Proxy) Cut() {
	p.mutex.Lock()
	p.cut = true
	p.mutex.Unlock()
	p.server.CloseClientConnections()
}

// Mend ends Cut.
func (p *Proxy) Mend() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.cut = false
}

// AwaitWrites waits until the API server has answered all forwarded writes.
func (p *Proxy) AwaitWrites() { p.flight.Wait() }

// Journal returns the writes that arrived since the last call, in their order.
func (p *Proxy) Journal() []*Write {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	journal := p.journal
	p.journal = nil
	return journal
}

// Idle reports whether the program watches, waits for no answer, and has neither sent a request nor received an answer or an event for a while.
func (p *Proxy) Idle(while time.Duration) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.watches > 0 && p.pending == 0 && time.Since(p.active) >= while
}

// Watches returns the number of watches of the program.
func (p *Proxy) Watches() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.watches
}

// StartedWatches returns how many watches the program has started.
func (p *Proxy) StartedWatches() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.started
}

// countWatch counts a watch that begins, or ends if by is negative.
func (p *Proxy) countWatch(by int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.watches += by
	p.started += max(by, 0)
	p.active = time.Now()
}

// countRequest counts a request that begins, or ends if by is negative.
func (p *Proxy) countRequest(by int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.pending += by
	p.active = time.Now()
}

// ServeHTTP answers a request of the program.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.isCut() {
		panic(http.ErrAbortHandler)
	}
	plainJSON(r.Header)
	switch query := r.URL.Query(); {
	case r.Method != http.MethodGet:
		p.write(w, r)
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		p.countWatch(1)
		defer p.countWatch(-1)
		p.watch(w, r)
	default:
		p.countRequest(1)
		defer p.countRequest(-1)
		p.rewind(r)
		p.forward.ServeHTTP(w, r)
	}
}

func (p *Proxy) isCut() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.cut
}

// write forwards a write, unless its fault is another. A write that is forwarded is completed even if the program has been stopped.
func (p *Proxy) write(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	written := parse(r, body)
	p.mutex.Lock()
	p.journal = append(p.journal, written)
	p.mutex.Unlock()
	if !written.Periodic() {
		p.countRequest(1)
		defer p.countRequest(-1)
	}
	fault := p.decide(written)
	if fault.Delay > 0 {
		time.Sleep(fault.Delay)
	}
	switch {
	case fault.Before != nil:
		fault.Before()
		panic(http.ErrAbortHandler)
	case fault.Refuse != 0:
		refuse(w, fault.Refuse)
		return
	case fault.Meanwhile != nil:
		fault.Meanwhile()
	}
	answer := p.land(r, body)
	p.mutex.Lock()
	written.recordAnswer(answer)
	p.mutex.Unlock()
	switch {
	case fault.After != nil:
		fault.After()
		panic(http.ErrAbortHandler)
	case fault.Replace != 0:
		refuse(w, fault.Replace)
	default:
		replay(w, answer)
	}
}

// land forwards a write and returns the answer.
func (p *Proxy) land(r *http.Request, body []byte) *httptest.ResponseRecorder {
	p.flight.Add(1)
	defer p.flight.Done()
	forwarded := r.Clone(context.WithoutCancel(r.Context()))
	forwarded.Body, forwarded.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer := httptest.NewRecorder()
	p.forward.ServeHTTP(answer, forwarded)
	return answer
}

// replay sends a recorded answer.
func replay(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the program may have been stopped
}

// plainJSON makes the API server answer in JSON without compression, which the proxy can read.
func plainJSON(header http.Header) {
	header.Del("Accept-Encoding")
	var kept []string
	for accepted := range strings.SplitSeq(header.Get("Accept"), ",") {
		if kind := strings.TrimSpace(accepted); strings.HasPrefix(kind, "application/json") {
			kept = append(kept, kind)
		}
	}
	if len(kept) == 0 {
		kept = []string{"application/json"}
	}
	if header.Get("Accept") != "" {
		header.Set("Accept", strings.Join(kept, ","))
	}
}
