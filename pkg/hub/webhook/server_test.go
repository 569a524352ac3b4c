package webhook

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tandem-addons/tandem/pkg/kube/endpoint"
)

func TestWebhookAddress(t *testing.T) {
	for name, test := range map[string]struct{ address, problem string }{
		"all interfaces":  {":9443", ""},
		"IPv4":            {"127.0.0.1:9443", ""},
		"IPv6":            {"[::1]:9443", ""},
		"no port":         {"127.0.0.1", "HOST:PORT"},
		"port 0":          {"127.0.0.1:0", "1 to 65535"},
		"port 65536":      {"127.0.0.1:65536", "1 to 65535"},
		"a port's name":   {"127.0.0.1:https", "1 to 65535"},
		"bare IPv6":       {"::1", "HOST:PORT"},
		"a negative port": {"127.0.0.1:-1", "1 to 65535"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&server{address: test.address}).listener()
			if test.problem == "" && err != nil || test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("the error is %v, want %q", err, test.problem)
			}
		})
	}
}

func TestTheWebhookServerLimitsUnknownClients(t *testing.T) {
	made, err := (&server{address: "127.0.0.1:9443"}).listener()
	if err != nil {
		t.Fatal(err)
	}
	public := made.(*publicServer).public
	if public.MaxHeaderBytes != maxHeaderBytes || public.MaxConnections != maxConnections || public.MaxClientConnections != maxPeerConnections {
		t.Errorf("got %+v", public)
	}
	answer := httptest.NewRecorder()
	made.Register("/here", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	public.Handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/here", nil))
	if answer.Code != http.StatusTeapot {
		t.Errorf("a registered path answers %d", answer.Code)
	}
}

func TestWebhooksAreServedWhereThereIsAnAddress(t *testing.T) {
	for address, want := range map[string]bool{"": false, "0": false, ":9443": true} {
		if got := (Options{Address: address}).serves(); got != want {
			t.Errorf("with address %q webhooks are served: %t, want %t", address, got, want)
		}
	}
}

func TestWebhookRequestsAreLimited(t *testing.T) {
	const length = 1000
	whole := strings.Repeat("x", length)
	for name, test := range map[string]struct {
		sent     string
		stalls   bool // the request is incomplete
		duration time.Duration
		read     bool
	}{
		"as long as it may be": {whole, false, time.Minute, true},
		"longer":               {whole + "x", false, time.Minute, false},
		"one that never ends":  {"x", true, time.Millisecond, false},
	} {
		for protocol, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
			t.Run(name+", "+protocol, func(t *testing.T) {
				read := make(chan error, 1)
				server := httptest.NewUnstartedServer(limitRequests(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					_, err := io.Copy(io.Discard, r.Body)
					read <- err
				}), length, test.duration))
				server.EnableHTTP2 = http2
				server.StartTLS()
				defer server.Close()
				body, more := io.Pipe()
				go func() {
					_, _ = io.WriteString(more, test.sent)
					if !test.stalls {
						more.Close()
					}
				}()
				go func() {
					if response, err := server.Client().Post(server.URL, "application/json", body); err == nil {
						response.Body.Close()
					}
				}()
				if err := <-read; (err == nil) != test.read {
					t.Errorf("the request is read with error %v", err)
				}
				more.Close()
			})
		}
	}
}

// TestSlowWebhookRequestsDoNotKeepOutOthers has more clients that do not send their request completely than requests are served at a time.
func TestSlowWebhookRequestsDoNotKeepOutOthers(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	server := httptest.NewServer(newQueue(conversionCost, maxConversionCost, 10*time.Millisecond).through(handler))
	defer server.Close()
	for range 2 * maxServed {
		slow, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		if _, err := io.WriteString(slow, "POST /convert HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(slow).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
			t.Fatalf("the body is not read: %q, %v", line, err)
		}
	}
	const review = `{"kind":"ConversionReview"}`
	response, err := http.Post(server.URL, "application/json", strings.NewReader(review))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK || string(body) != review {
		t.Errorf("got status %d, %q, %v", response.StatusCode, body, err)
	}
}

func TestWebhookRequestsBeyondTheMemoryAreRepeated(t *testing.T) {
	q := newQueue(conversionCost, maxConversionCost, time.Second)
	q.bodies = endpoint.NewIntake(10)
	server := httptest.NewServer(q.through(http.NotFoundHandler()))
	defer server.Close()
	response, err := http.Post(server.URL, "application/json", strings.NewReader("longer than ten bytes"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "1" {
		t.Errorf("got status %d, Retry-After %q", response.StatusCode, response.Header.Get("Retry-After"))
	}
}
