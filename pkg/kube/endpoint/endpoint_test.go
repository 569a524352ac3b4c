package endpoint

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
)

func TestClientOfARequest(t *testing.T) {
	for sentence, test := range map[string]struct {
		proxies, peer string
		forwarded     []string
		want          string
	}{
		"a peer is a client":                       {"", "192.0.2.1:80", nil, "192.0.2.1/32"},
		"a header of a client is not believed":     {"", "192.0.2.1:80", []string{"198.51.100.7"}, "192.0.2.1/32"},
		"nor that of another network":              {"10.0.0.0/8", "192.0.2.1:80", []string{"198.51.100.7"}, "192.0.2.1/32"},
		"that of a proxy is":                       {"10.0.0.0/8", "10.1.2.3:80", []string{"198.51.100.7"}, "198.51.100.7/32"},
		"what the client adds itself is not":       {"10.0.0.0/8", "10.1.2.3:80", []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7/32"},
		"also not in a header of its own":          {"10.0.0.0/8", "10.1.2.3:80", []string{"203.0.113.9", "198.51.100.7"}, "198.51.100.7/32"},
		"two proxies":                              {"10.0.0.0/8,192.0.2.1", "10.1.2.3:80", []string{"198.51.100.7, 192.0.2.1"}, "198.51.100.7/32"},
		"a client that claims to be a proxy":       {"10.0.0.0/8", "10.1.2.3:80", []string{"10.9.9.9"}, "shared: 10.9.9.9/32"},
		"a proxy without a header":                 {"10.0.0.0/8", "10.1.2.3:80", nil, "shared: 10.1.2.3/32"},
		"a proxy with a header that is no address": {"10.0.0.0/8", "10.1.2.3:80", []string{"unknown"}, "shared: 10.1.2.3/32"},
		"an address with a port":                   {"10.0.0.0/8", "10.1.2.3:80", []string{"198.51.100.7:4711"}, "198.51.100.7/32"},
		"a network of IPv6 is one client":          {"", "[2001:db8::1:2:3:4]:80", nil, "2001:db8::/64"},
		"IPv6 in a header":                         {"2001:db8::/32", "[2001:db8::1]:80", []string{"[2001:dead::1]:80"}, "2001:dead::/64"},
		"IPv4 in IPv6 is IPv4":                     {"10.0.0.0/8", "[::ffff:10.1.2.3]:80", []string{"198.51.100.7"}, "198.51.100.7/32"},
		"kubectl port-forward":                     {"", "127.0.0.1:80", []string{"198.51.100.7"}, "shared: 127.0.0.1/32"},
		"a zone":                                   {"", "[fe80::1%eth0]:80", nil, "fe80::/64"},
		"no address":                               {"", "pipe", nil, "invalid Prefix"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var proxies Proxies
			if test.proxies != "" {
				if err := proxies.Set(test.proxies); err != nil {
					t.Fatal(err)
				}
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = test.peer
			r.Header["X-Forwarded-For"] = test.forwarded
			client, isOne := proxies.Client(r)
			if got, isShared := strings.CutPrefix(test.want, "shared: "); client.String() != got || isOne == isShared {
				t.Errorf("got %s, alone %t, want %s", client, isOne, test.want)
			}
		})
	}
}

func TestProxiesAreNetworks(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.2.3/8, 192.0.2.1": "10.0.0.0/8,192.0.2.1/32", "::1": "::1/128", "ingress": "error", "": "error", "10.0.0.0/8,": "error", "10.0.0.0/40": "error",
	} {
		var proxies Proxies
		err := proxies.Set(text)
		if want == "error" {
			if err == nil || !strings.Contains(err.Error(), "neither a CIDR") {
				t.Errorf("%q: got %v, %v", text, proxies, err)
			}
		} else if got := proxies.String(); err != nil || got != want {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestSeats(t *testing.T) {
	seats := NewSeats()
	all, ann, bob := Limit{"all", "", 3}, Limit{"user", "ann", 2}, Limit{"user", "bob", 2}
	var releases []func()
	for _, step := range []struct {
		sentence string
		limits   []Limit
		reached  string
	}{
		{"the first", []Limit{all, ann}, ""},
		{"the last of a user", []Limit{all, ann}, ""},
		{"one more of this user", []Limit{all, ann}, "user"},
		{"the last of all, because a refused one takes none", []Limit{all, bob}, ""},
		{"one more of another user", []Limit{all, bob}, "all"},
		{"any number without a limit", []Limit{{"all", "", 0}}, ""},
	} {
		release, reached := seats.Take(step.limits...)
		if reached != step.reached || (release == nil) != (reached != "") {
			t.Errorf("%s: reached is %q, want %q", step.sentence, reached, step.reached)
		}
		if release != nil {
			releases = append(releases, release)
		}
	}
	for _, release := range releases {
		release()
		release() // a second one has no effect
	}
	if len(seats.taken) > 0 {
		t.Errorf("after all are released, %v are taken", seats.taken)
	}
}

// clients sends credentials at a time that the test sets.
type clients struct {
	*Credentials
	at time.Time
}

func newClients() *clients {
	c := &clients{Credentials: NewCredentials(), at: time.Unix(1_000_000, 0)}
	c.now = func() time.Time { return c.at }
	return c
}

// send sends a number of different credentials, with the outcome that each one would have. It returns how many are checked.
func (c *clients) send(client, credential string, number int, outcome Outcome) (checked int) {
	for i := range number {
		if end, may := c.Begin(netip.MustParsePrefix(client+"/32"), fmt.Sprint(credential, i)); may {
			end(outcome)
			checked++
		}
	}
	return checked
}

func TestAFloodOfCredentialsIsNoFloodOfChecks(t *testing.T) {
	c := newClients()
	const seconds = 60
	checked := 0
	for second := range seconds {
		for client := range 10 {
			checked += c.send(fmt.Sprint("192.0.2.", client), fmt.Sprint("random", second, "-"), 100, Rejected)
		}
		c.at = c.at.Add(time.Second)
	}
	if limit := 2 * (maxChecks + int(seconds*time.Second/checkInterval)); checked == 0 || checked > limit {
		t.Errorf("%d of 60,000 credentials are checked in a minute, want at most %d", checked, limit)
	}
	if len(c.failures) > 100 || len(c.accepted) > 0 {
		t.Errorf("%d clients and %d credentials are remembered", len(c.failures), len(c.accepted))
	}
}

func TestAFloodLocksNoUserOut(t *testing.T) {
	c := newClients()
	if c.send("198.51.100.1", "session", 1, Accepted) != 1 {
		t.Fatal("the first sign-in is not checked")
	}
	for second := range 60 {
		c.send("192.0.2.1", fmt.Sprint("random", second, "-"), 10_000, Rejected)
		for sentence, test := range map[string]struct{ client, credential string }{
			"a session": {"198.51.100.1", "session"},
			"a session of a client in the same network": {"192.0.2.1", "session"},
			"a sign-in": {"198.51.100.2", fmt.Sprint("valid", second)},
		} {
			if c.send(test.client, test.credential, 1, Accepted) != 1 {
				t.Errorf("%s is not checked in second %d of a flood", sentence, second)
			}
		}
		if second%10 == 0 && c.send("198.51.100.3", fmt.Sprint("mistyped", second), 1, Rejected) != 1 {
			t.Errorf("one in ten seconds that is mistyped is not checked in second %d of a flood", second)
		}
		c.at = c.at.Add(time.Second)
	}
}

func TestRankReturns(t *testing.T) {
	c := newClients()
	if got := c.send("192.0.2.1", "a", 1000, Rejected); got != maxFailures+maxChecks {
		t.Errorf("%d of 1,000 credentials are checked, want %d", got, maxFailures+maxChecks)
	}
	c.at = c.at.Add(failureLifetime)
	c.send("192.0.2.2", "flood", 1000, Rejected) // nothing is left of the common budget
	if got := c.send("192.0.2.1", "b", 1000, Rejected); got != 1 {
		t.Errorf("after the lifetime of a failure, %d are checked, want 1", got)
	}
	c.at = c.at.Add(failureLifetime * maxFailures)
	if got := c.send("192.0.2.1", "c", 1000, Unknown); got != maxFailures+maxChecks {
		t.Errorf("after the lifetime of all failures, %d are checked, want %d", got, maxFailures+maxChecks)
	}
}

func TestACredentialThatIsRejectedIsForgotten(t *testing.T) {
	c := newClients()
	c.send("192.0.2.1", "token", 1, Accepted)
	c.send("192.0.2.1", "token", 1, Unknown) // the API server does not respond
	c.send("192.0.2.1", "flood", 1000, Rejected)
	if c.send("192.0.2.1", "token", 1, Rejected) != 1 {
		t.Error("an accepted one is not checked while the client has no budget")
	}
	if c.send("192.0.2.1", "token", 1, Rejected) != 0 {
		t.Error("one that was rejected last is checked beyond the budget")
	}
}

func TestAcceptedCredentialsAreBounded(t *testing.T) {
	c := newClients()
	for i := range maxAccepted + 10 {
		c.at = c.at.Add(time.Second)
		c.send("192.0.2.1", fmt.Sprint("token", i, "-"), 1, Accepted)
	}
	if len(c.accepted) != maxAccepted {
		t.Errorf("%d are remembered, want %d", len(c.accepted), maxAccepted)
	}
	c.at = c.at.Add(acceptedLifetime + time.Second)
	c.send("192.0.2.1", "another", 1, Accepted)
	if len(c.accepted) != 1 {
		t.Errorf("%d are remembered after their lifetime, want 1", len(c.accepted))
	}
}

// listen serves on a free port until the test ends.
func listen(t *testing.T, server *http.Server, limit Connections, secure *tls.Config) string {
	t.Helper()
	next, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limited := limit.Listen(next)
	if secure != nil {
		limited = tls.NewListener(limited, secure)
	}
	go func() { _ = server.Serve(limited) }()
	t.Cleanup(func() { server.Close() })
	return next.Addr().String()
}

func TestConnectionsAreLimited(t *testing.T) {
	for sentence, test := range map[string]struct {
		limit   Connections
		peer    string
		reached string
	}{
		"a client":                 {Connections{Max: 9, MaxPerClient: 2}, "192.0.2.1:80", LimitClientConnections},
		"all":                      {Connections{Max: 2, MaxPerClient: 9}, "192.0.2.1:80", LimitConnections},
		"a proxy":                  {Connections{Max: 2, MaxPerClient: 1, Proxies: Proxies{netip.MustParsePrefix("192.0.2.0/24")}}, "192.0.2.1:80", LimitConnections},
		"the loopback address":     {Connections{Max: 2, MaxPerClient: 1}, "127.0.0.1:80", LimitConnections},
		"the loopback address, v6": {Connections{Max: 2, MaxPerClient: 1}, "[::1]:80", LimitConnections},
	} {
		t.Run(sentence, func(t *testing.T) {
			open, refused := 0.0, ""
			test.limit.Changed, test.limit.Refused = func(by float64) { open += by }, func(limit string) { refused = limit }
			peer := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(test.peer))
			incoming := &queue{}
			l := test.limit.Listen(incoming)
			var held []net.Conn
			for range 2 {
				incoming.next = append(incoming.next, &peerConn{peer: peer})
				accepted, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, accepted)
			}
			third := &peerConn{peer: peer}
			incoming.next = append(incoming.next, third)
			if _, err := l.Accept(); !errors.Is(err, io.EOF) || !third.closed || refused != test.reached || open != 2 {
				t.Errorf("a third connection: %v, closed %t, refused by %q, %v are open; want refused by %q", err, third.closed, refused, open, test.reached)
			}
			held[0].Close()
			held[0].Close()
			incoming.next = append(incoming.next, &peerConn{peer: peer})
			if _, err := l.Accept(); err != nil || open != 2 {
				t.Errorf("after one is closed: %v, %v are open", err, open)
			}
		})
	}
}

// queue is a listener to which connections come in that the test makes.
type queue struct {
	net.Listener
	next []net.Conn
}

func (q *queue) Accept() (net.Conn, error) {
	if len(q.next) == 0 {
		return nil, io.EOF
	}
	first := q.next[0]
	q.next = q.next[1:]
	return first, nil
}

// peerConn is a connection from an address.
type peerConn struct {
	net.Conn
	peer   net.Addr
	closed bool
}

func (c *peerConn) RemoteAddr() net.Addr { return c.peer }

func (c *peerConn) Close() error {
	c.closed = true
	return nil
}

func TestSlowClientsAreDisconnected(t *testing.T) {
	const short = 50 * time.Millisecond
	large := strings.Repeat("x", 64<<20) // more than the buffers of a connection
	for sentence, test := range map[string]struct {
		timeouts Timeouts
		request  string
		want     string
	}{
		"a request that never begins":       {Timeouts{Request: short}, "", ""},
		"a header that never ends":          {Timeouts{Request: short}, "GET / HTTP/1.1\r\nHost: a\r\nX: ", ""},
		"a header that is large":            {Timeouts{}, "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", maxHeaderBytes+8<<10), "HTTP/1.1 431"},
		"a body that never ends":            {Timeouts{Request: short}, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx", "HTTP/1.1 408"},
		"a body of a GET":                   {Timeouts{Request: short}, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx", "HTTP/1.1 408"},
		"chunks that never end":             {Timeouts{Request: short}, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", "HTTP/1.1 408"},
		"a body that is too large":          {Timeouts{}, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\n" + strings.Repeat("x", 999), "HTTP/1.1 413"},
		"a response that is not read":       {Timeouts{Response: short}, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n", ""},
		"a body that is declared, not sent": {Timeouts{Request: short}, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n", "HTTP/1.1 100"},
	} {
		t.Run(sentence, func(t *testing.T) {
			ended := make(chan struct{}, 1)
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch err, tooLarge := ReadBody(w, r, 100), (*http.MaxBytesError)(nil); {
				case errors.As(err, &tooLarge):
					http.Error(w, "", http.StatusRequestEntityTooLarge)
				case errors.Is(err, os.ErrDeadlineExceeded):
					http.Error(w, "", http.StatusRequestTimeout)
				case err != nil:
					t.Errorf("the error of the body is %v", err)
				case r.URL.Path == "/large":
					_, _ = io.WriteString(w, large)
					ended <- struct{}{}
				}
			})
			address := listen(t, NewServer(handler, test.timeouts), noLimit(), nil)
			response := ""
			for range 20 { // on a busy machine, a header may take as long as a request may
				if response = exchange(t, address, test.request, ended); response != "" || test.want == "" {
					break
				}
			}
			if test.want == "" && response != "" || !strings.HasPrefix(response, test.want) {
				t.Errorf("got %q, want %q", response, test.want)
			}
		})
	}
}

// exchange sends a text to a server. It returns what the server sends until it closes the connection, or nothing once a handler has ended.
func exchange(t *testing.T, address, text string, ended <-chan struct{}) string {
	t.Helper()
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, _ = io.WriteString(client, text) // the server may have closed the connection already
	if strings.Contains(text, "/large") {
		<-ended
		return ""
	}
	response, _ := io.ReadAll(client)
	return string(response)
}

func noLimit() Connections {
	return Connections{Changed: func(float64) {}, Refused: func(string) {}}
}

func TestASlowHandshakeIsEnded(t *testing.T) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	defer certificate.Close()
	limit, changes := noLimit(), make(chan float64, 2)
	limit.Changed = func(by float64) { changes <- by }
	address := listen(t, NewServer(http.NotFoundHandler(), Timeouts{Request: 50 * time.Millisecond}), limit, certificate.TLS)
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := io.ReadAll(client); err != nil {
		t.Fatal(err)
	}
	if opened, closed := <-changes, <-changes; opened+closed != 0 {
		t.Errorf("after the connection is closed, %v are open", opened+closed)
	}
}

func TestPublicServersLimitUnknownClients(t *testing.T) {
	serve := func(t *testing.T) (request func(header string) string) {
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		p := &Public{
			Address:        "127.0.0.1:0",
			Handler:        http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }),
			MaxHeaderBytes: 8 << 10, MaxConnections: 2, MaxClientConnections: 2,
		}
		server, listener, err := p.Listen(ctx)
		if err != nil {
			t.Fatal(err)
		}
		go func() { served <- p.serve(ctx, server, listener) }()
		t.Cleanup(func() {
			stop()
			if err := <-served; err != nil {
				t.Errorf("after the end: %v", err)
			}
		})
		return func(header string) string {
			client, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n"+header) // the server may have closed the connection
			status, _ := bufio.NewReader(client).ReadString('\n')
			return strings.TrimSpace(status)
		}
	}
	t.Run("a large header, before it ends", func(t *testing.T) {
		if status := serve(t)(strings.Repeat("a:\r\n", 8<<10)); !strings.Contains(status, "431") {
			t.Errorf("got %q", status)
		}
	})
	t.Run("connections", func(t *testing.T) {
		request := serve(t)
		first, second, third := request("\r\n"), request("\r\n"), request("\r\n")
		if !strings.Contains(first, "418") || !strings.Contains(second, "418") || third != "" {
			t.Errorf("got %q, %q and %q", first, second, third)
		}
	})
}
