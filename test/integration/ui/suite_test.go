// Package ui tests the dashboard against a real API server.
package ui

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dashboard "github.com/tandem-addons/tandem/pkg/ui"
	fleet "github.com/tandem-addons/tandem/test/dashboard"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// Set once before the specs run.
var (
	hub client.Client
	env *environment.Environment
)

func TestUI(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "UI")
}

var _ = BeforeSuite(func(ctx context.Context) {
	ctrl.SetLogger(GinkgoLogr)
	var err error
	env, err = environment.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	scheme, err := fleet.Scheme()
	Expect(err).NotTo(HaveOccurred())
	hub, err = client.New(env.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(fleet.Fill(ctx, hub, 10)).To(Succeed())
})

// site is a served dashboard and the cookies of a user.
type site struct {
	address string
	cookies []*http.Cookie
}

// serve serves a dashboard until the spec ends, and waits until it has read the hub.
func serve(cached *dashboard.Hub, options dashboard.Options) site {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	options.Hub, options.Hosts = cached, []string{"127.0.0.1"}
	server, err := dashboard.New(options)
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended).Should(Receive(BeNil()))
	})
	s := site{address: "http://" + listener.Addr().String()}
	Eventually(func() int { return s.get("/healthz").status }).Should(Equal(http.StatusOK))
	return s
}

// local serves the dashboard as `kubectl addon ui` does, to the administrator, and opens its URL.
func local(ctx context.Context, clusters []string) site {
	GinkgoHelper()
	return localTo(ctx, env.Config, clusters)
}

// localTo is local with a connection to the hub.
func localTo(ctx context.Context, config *rest.Config, clusters []string) site {
	GinkgoHelper()
	cached, err := dashboard.NewHub(ctx, config, clusters)
	Expect(err).NotTo(HaveOccurred())
	gate := dashboard.NewLocal("tandem-test")
	s := serve(cached, dashboard.Options{Gate: gate})
	opened := s.get(gate.Path())
	Expect(opened.status).To(Equal(http.StatusOK))
	s.cookies = opened.cookies
	return s
}

// answer is a response of the dashboard.
type answer struct {
	status  int
	body    string
	cookies []*http.Cookie
}

func (s site) request(ctx context.Context, method, path string, body io.Reader) *http.Request {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, method, s.address+path, body)
	Expect(err).NotTo(HaveOccurred())
	for _, cookie := range s.cookies {
		request.AddCookie(cookie)
	}
	return request
}

func (s site) send(request *http.Request) answer {
	GinkgoHelper()
	response, err := http.DefaultTransport.RoundTrip(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer{response.StatusCode, string(body), response.Cookies()}
}

func (s site) get(path string) answer {
	GinkgoHelper()
	return s.send(s.request(context.Background(), http.MethodGet, path, nil))
}

// event is an event of a stream.
type event struct{ Name, Data string }

// stream opens the stream of a page; its events end with the spec.
func (s site) stream(path string) <-chan event {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	request := s.request(ctx, http.MethodGet, path, nil)
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultTransport.RoundTrip(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.StatusCode).To(Equal(http.StatusOK))
	events := make(chan event, 1000)
	DeferCleanup(func() {
		stop()
		Expect(response.Body.Close()).To(Succeed())
	})
	go func() {
		defer close(events)
		next := event{}
		for lines := bufio.NewReader(response.Body); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			switch line = strings.TrimSuffix(line, "\n"); {
			case line == "" && next.Name != "":
				events <- next
				next = event{}
			case strings.HasPrefix(line, "event: "):
				next.Name = strings.TrimPrefix(line, "event: ")
			case strings.HasPrefix(line, "data: "):
				next.Data += strings.TrimPrefix(line, "data: ") + "\n"
			}
		}
	}()
	return events
}
