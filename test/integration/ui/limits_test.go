package ui

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tandem-addons/tandem/pkg/kube/endpoint"
	dashboard "github.com/tandem-addons/tandem/pkg/ui"
	fleet "github.com/tandem-addons/tandem/test/dashboard"
)

// proxyLimits are limits of a dashboard behind a proxy, which the spec plays.
func proxyLimits() dashboard.Limits {
	var limits dashboard.Limits
	Expect(limits.Proxies.Set("127.0.0.0/8")).To(Succeed())
	return limits
}

// serveWithLimits serves the dashboard as `addon-manager ui` does, with limits, and counts the tokens that the hub is asked about.
func serveWithLimits(ctx context.Context, limits dashboard.Limits) (site, *atomic.Int64) {
	GinkgoHelper()
	asked := &atomic.Int64{}
	config := rest.CopyConfig(env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return counting(func(request *http.Request) (*http.Response, error) {
			if strings.HasSuffix(request.URL.Path, "/tokenreviews") {
				asked.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	cached, err := dashboard.NewHub(ctx, config, nil)
	Expect(err).NotTo(HaveOccurred())
	return serve(cached, dashboard.Options{Gate: dashboard.NewTokens(cached, false, limits.Proxies), Limits: limits}), asked
}

type counting func(*http.Request) (*http.Response, error)

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) { return c(request) }

// from sends a request of a client behind the proxy. enter is a token to sign in with; the request is for page Fleet if it is empty.
func (s site) from(client, enter string) (answer, http.Header) {
	GinkgoHelper()
	request := s.request(context.Background(), http.MethodGet, "/", nil)
	if enter != "" {
		request = s.request(context.Background(), http.MethodPost, "/session/enter", strings.NewReader(url.Values{"bearer": {enter}}.Encode()))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	request.Header.Set("X-Forwarded-For", client)
	response, err := http.DefaultTransport.RoundTrip(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer{response.StatusCode, string(body), response.Cookies()}, response.Header
}

// open opens a live page until close is called.
func (s site) open(client string) (status int, header http.Header, body func() string, end func()) {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	request := s.request(ctx, http.MethodGet, "/", nil)
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("X-Forwarded-For", client)
	response, err := (&http.Client{}).Do(request)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, response.Header, func() string {
			content, err := io.ReadAll(response.Body)
			Expect(err).NotTo(HaveOccurred())
			return strings.TrimSpace(string(content))
		}, func() {
			stop()
			response.Body.Close()
		}
}

var _ = Describe("the dashboard under attack", func() {
	It("asks the hub about few of many random tokens, and locks no user out", func(ctx context.Context) {
		s, asked := serveWithLimits(ctx, proxyLimits())
		ann, bob := token(ctx, "ann", "", fleet.Reading), token(ctx, "bob", "", fleet.Reading)
		entered, _ := s.from("198.51.100.1", ann)
		Expect(entered.status).To(Equal(http.StatusSeeOther))
		session := site{address: s.address, cookies: entered.cookies}

		const senders, each = 20, 100
		before := asked.Load()
		var flood sync.WaitGroup
		for sender := range senders {
			flood.Go(func() {
				defer GinkgoRecover()
				for i := range each {
					random := fmt.Sprintf("random-%d-%d", sender, i)
					if i%2 == 0 {
						s.from("192.0.2.1", random)
						continue
					}
					site{address: s.address, cookies: []*http.Cookie{{Name: "tandem", Value: random}}}.from("192.0.2.1", "")
				}
			})
		}
		entered, _ = s.from("198.51.100.2", bob)
		Expect(entered.status).To(Equal(http.StatusSeeOther), "a sign-in during the flood")
		for range 20 {
			page, _ := session.from("198.51.100.1", "")
			Expect(page.status).To(Equal(http.StatusOK), "a session during the flood")
		}
		flood.Wait()
		Expect(asked.Load()-before).To(BeNumerically("<", senders*each/2), "of %d random tokens", senders*each)

		By("answering those who send them")
		for i := range 100 { // until nothing is left of the budget
			refused, header := s.from("192.0.2.1", fmt.Sprint("another-", i))
			if refused.status == http.StatusUnauthorized && i < 99 {
				continue
			}
			Expect(refused.status).To(Equal(http.StatusTooManyRequests))
			Expect(refused.body).To(ContainSubstring("Too many unknown tokens are sent."))
			Expect(header.Get("Retry-After")).To(Equal("5"))
			break
		}
	})

	It("limits live pages of a session, of a user, of a client and in total, and says so", func(ctx context.Context) {
		limits := proxyLimits()
		limits.MaxLivePages, limits.MaxUserLivePages, limits.MaxClientConnections = 30, 25, 22
		s, _ := serveWithLimits(ctx, limits)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ann"}}
		ann := s.as(token(ctx, "ann", "", fleet.Reading))
		second, err := fleet.Token(ctx, hub, account)
		Expect(err).NotTo(HaveOccurred())
		again := s.as(second)
		bob := s.as(token(ctx, "bob", "", fleet.Reading))

		const here, there = "198.51.100.1", "198.51.100.2"
		var ends []func()
		for _, step := range []struct {
			who    site
			from   string
			opened int
			text   string
		}{
			{ann, here, 20, "your session has the maximum of 20 live pages; close some"},
			{again, here, 2, "your address has the maximum of 22 live pages; close some"},
			{again, there, 3, "you have the maximum of 25 live pages; close some"},
			{bob, there, 5, "the dashboard has the maximum of 30 live pages"},
		} {
			for range step.opened {
				status, _, _, end := step.who.open(step.from)
				Expect(status).To(Equal(http.StatusOK), step.text)
				ends = append(ends, end)
			}
			status, header, body, _ := step.who.open(step.from)
			Expect(status).To(Equal(http.StatusTooManyRequests))
			Expect(body()).To(Equal(step.text))
			Expect(header.Get("Retry-After")).To(Equal("15"))
			page, _ := step.who.from(step.from, "")
			Expect(page.status).To(Equal(http.StatusOK), "a page that is not live")
		}

		By("serving a page again after another one is closed")
		ends[0]()
		Eventually(func() int {
			status, _, _, _ := bob.open(there)
			return status
		}).Should(Equal(http.StatusOK))
	})

	It("ends a form that is never sent completely", func(ctx context.Context) {
		limits := dashboard.Limits{Timeouts: endpoint.Timeouts{Request: 2e9}}
		s, _ := serveWithLimits(ctx, limits)
		host := strings.TrimPrefix(s.address, "http://")
		client, err := net.Dial("tcp", host)
		Expect(err).NotTo(HaveOccurred())
		defer client.Close()
		_, err = io.WriteString(client, "POST /session/enter HTTP/1.1\r\nHost: "+host+"\r\nContent-Length: 1000\r\n\r\nbearer=")
		Expect(err).NotTo(HaveOccurred())
		response := make(chan string, 1)
		go func() {
			content, _ := io.ReadAll(client)
			response <- string(content)
		}()
		Eventually(response).Should(Receive(And(HavePrefix("HTTP/1.1 408"), ContainSubstring("the request took too long; send it again"))))
	})
})
