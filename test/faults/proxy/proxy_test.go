package proxy

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// upstream is an API server that records requests, and sends the events of a watch.
type upstream struct {
	mutex    sync.Mutex
	requests []string
	events   chan string
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mutex.Lock()
	u.requests = append(u.requests, r.Method+" "+r.URL.String())
	u.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"metadata":{"name":"made-up","resourceVersion":"7"}}`)
		return
	}
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case event := <-u.events:
			fmt.Fprintln(w, event)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (u *upstream) forwarded() []string {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.requests
}

// start returns a proxy to a new upstream, and a client that trusts it.
func start(t *testing.T, decide func(*Write) Fault) (*upstream, *Proxy, *http.Client) {
	t.Helper()
	up := &upstream{events: make(chan string)}
	server := httptest.NewServer(up)
	p, err := Start(&rest.Config{Host: server.URL}, decide)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(); server.CloseClientConnections(); server.Close() })
	data, err := p.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	return up, p, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
}

const object = "/apis/kudo.dev/v1beta1/namespaces/ns/instances/one/status?fieldManager=me"

func send(t *testing.T, c *http.Client, p *Proxy, method, path, body string) (int, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(request)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.Body.Close()
}

func TestWrites(t *testing.T) {
	stopped := false
	stop := func() { stopped = true }
	for name, tc := range map[string]struct {
		fault     Fault
		forwarded bool
		code      int // 0 if there is no answer
		stopped   bool
	}{
		"without a fault":                            {Fault{}, true, http.StatusCreated, false},
		"stopped before it is forwarded":             {Fault{Before: stop}, false, 0, true},
		"stopped after it was forwarded":             {Fault{After: stop}, true, 0, true},
		"refused":                                    {Fault{Refuse: http.StatusConflict}, false, http.StatusConflict, false},
		"overloaded":                                 {Fault{Refuse: http.StatusTooManyRequests}, false, http.StatusTooManyRequests, false},
		"forwarded and then refused, like a timeout": {Fault{Replace: http.StatusGatewayTimeout}, true, http.StatusGatewayTimeout, false},
	} {
		t.Run(name, func(t *testing.T) {
			stopped = false
			up, p, c := start(t, func(*Write) Fault { return tc.fault })
			code, err := send(t, c, p, http.MethodPut, object, `{"metadata":{"name":"one"}}`)
			if code != tc.code || (err != nil) != (tc.code == 0) || stopped != tc.stopped {
				t.Errorf("answered %d, %v and stopped: %t", code, err, stopped)
			}
			if forwarded := len(up.forwarded()) == 1; forwarded != tc.forwarded {
				t.Errorf("forwarded: %v", up.forwarded())
			}
			journal := p.Journal()
			if len(journal) != 1 || journal[0].IsSuccess() != tc.forwarded {
				t.Fatalf("recorded %v", journal)
			}
			w := journal[0]
			if got, want := []string{w.Verb, w.Group, w.Kind(), w.Namespace, w.Name, w.Manager},
				[]string{"update", "kudo.dev", "instances/status", "ns", "one", "me"}; !cmp.Equal(got, want) {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
}

func TestLocate(t *testing.T) {
	for path, want := range map[string][5]string{
		"/api/v1/namespaces/ns":                                    {"", "", "namespaces", "ns", ""},
		"/api/v1/namespaces/ns/status":                             {"", "", "namespaces", "ns", "status"},
		"/api/v1/namespaces/ns/configmaps":                         {"", "ns", "configmaps", "", ""},
		"/api/v1/namespaces/ns/configmaps/c":                       {"", "ns", "configmaps", "c", ""},
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/r":        {"rbac.authorization.k8s.io", "", "clusterroles", "r", ""},
		"/apis/kudo.dev/v1beta1/namespaces/ns/instances/i/status":  {"kudo.dev", "ns", "instances", "i", "status"},
		"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":   {"authorization.k8s.io", "", "selfsubjectaccessreviews", "", ""},
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/": {"apiextensions.k8s.io", "", "customresourcedefinitions", "", ""},
	} {
		var got [5]string
		got[0], got[1], got[2], got[3], got[4] = locate(path)
		if got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// startWatch starts a watch and returns its lines.
func startWatch(t *testing.T, c *http.Client, p *Proxy, query string) *bufio.Reader {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.server.URL+"/api/v1/configmaps?watch=true"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return bufio.NewReader(answer.Body)
}

func next(t *testing.T, lines *bufio.Reader) string {
	t.Helper()
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func TestEventsThatAreHeldArriveLater(t *testing.T) {
	up, p, c := start(t, nil)
	lines := startWatch(t, c, p, "")
	up.events <- "one"
	if got := next(t, lines); got != "one" {
		t.Fatalf("got %q", got)
	}
	p.Freeze("")
	up.events <- "two"
	arrived := make(chan string, 1)
	go func() { line, _ := lines.ReadString('\n'); arrived <- strings.TrimSpace(line) }()
	select {
	case line := <-arrived:
		t.Fatalf("%q arrived while the view was frozen", line)
	default:
	}
	p.Thaw(false)
	if got := <-arrived; got != "two" {
		t.Errorf("got %q", got)
	}
}

func TestAWatchThatLostEventsExpires(t *testing.T) {
	up, p, c := start(t, nil)
	lines := startWatch(t, c, p, "")
	p.Freeze("")
	up.events <- "lost"
	p.Thaw(true)
	if got := next(t, lines); !strings.Contains(got, `"ERROR"`) || !strings.Contains(got, "410") {
		t.Errorf("got %q", got)
	}
}

func TestStaleView(t *testing.T) {
	up, p, c := start(t, nil)
	p.Freeze("5")
	for _, path := range []string{
		"/api/v1/configmaps?resourceVersion=0", "/api/v1/configmaps", "/api/v1/namespaces/ns/configmaps/c?resourceVersion=0",
		"/api/v1/configmaps?limit=500", "/api/v1/configmaps?continue=next&limit=500", "/api/v1/configmaps?limit=1",
	} {
		if _, err := send(t, c, p, http.MethodGet, path, ""); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"GET /api/v1/configmaps?resourceVersion=5&resourceVersionMatch=Exact", "GET /api/v1/configmaps",
		"GET /api/v1/namespaces/ns/configmaps/c?resourceVersion=0",
		"GET /api/v1/configmaps?limit=500&resourceVersion=5&resourceVersionMatch=Exact", "GET /api/v1/configmaps?continue=next&limit=500",
		"GET /api/v1/configmaps?limit=1",
	}
	if got := up.forwarded(); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if code, err := send(t, c, p, http.MethodGet, "/api/v1/configmaps?watch=true&sendInitialEvents=true", ""); code != http.StatusUnprocessableEntity {
		t.Errorf("a watch with current initial events is answered %d, %v", code, err)
	}
	lines := startWatch(t, c, p, "&resourceVersion=5")
	p.Thaw(false)
	up.events <- "current"
	if got := next(t, lines); got != "current" {
		t.Errorf("got %q", got)
	}
}

func TestACutLink(t *testing.T) {
	up, p, c := start(t, func(*Write) Fault { return Fault{} })
	lines := startWatch(t, c, p, "")
	p.Cut()
	if _, err := lines.ReadString('\n'); err == nil {
		t.Error("the watch survived")
	}
	if _, err := send(t, c, p, http.MethodPut, object, "{}"); err == nil {
		t.Error("a write was answered")
	}
	p.Mend()
	if code, err := send(t, c, p, http.MethodPut, object, "{}"); code != http.StatusCreated {
		t.Errorf("answered %d, %v", code, err)
	}
	if got := len(up.forwarded()); got != 2 {
		t.Errorf("%d requests were forwarded: %v", got, up.forwarded())
	}
}
