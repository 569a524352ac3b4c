package policy

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/agent"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/pkg/sandbox/port"
	"github.com/tandem-addons/tandem/test/scrape"
)

// tokenOf returns a token of a ServiceAccount.
func (s *site) tokenOf(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	clients, err := kubernetes.NewForConfig(s.Config)
	Expect(err).NotTo(HaveOccurred())
	granted, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return granted.Status.Token
}

// newAccount creates a ServiceAccount with that ClusterRole, or without any permission.
func (s *site) newAccount(ctx context.Context, name, role string) {
	GinkgoHelper()
	server := s.as("")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	Expect(server.Create(ctx, account)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(server.Delete(ctx, account)).To(Succeed()) })
	if role == "" {
		return
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: name}},
	}
	Expect(server.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(server.Delete(ctx, binding)).To(Succeed()) })
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

// countTokenReviews returns a config that counts the tokens that the API server is asked about.
func (s *site) countTokenReviews(asked *atomic.Int64) *rest.Config {
	config := rest.CopyConfig(s.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			if strings.HasSuffix(request.URL.Path, "/tokenreviews") {
				asked.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	return config
}

// metricsOf has the specs of a program's metrics. run runs the program, which serves them at the address, and returns the site of its API server.
func metricsOf(program string, run func(ctx SpecContext, address string, asked *atomic.Int64) *site) {
	var url string
	var asked atomic.Int64
	var at *site
	BeforeAll(func(ctx SpecContext) {
		reserved, err := port.Find()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(reserved.Release)
		url = "https://" + reserved.Address() + "/metrics"
		at = run(ctx, reserved.Address(), &asked)
		Eventually(func() (int, error) {
			status, _, err := scrape.Do(ctx, http.MethodGet, url, "")
			return status, err
		}).WithContext(ctx).Should(Equal(http.StatusUnauthorized))
		at.newAccount(ctx, "no-reader", "")
		at.newAccount(ctx, "prometheus", "tandem:"+program+"-metrics-reader")
	})
	reader := func(ctx context.Context) string { return at.tokenOf(ctx, "default", "prometheus") }
	const metric = "process_resident_memory_bytes"

	DescribeTable("are served", func(ctx SpecContext, account, method string, status int, text string) {
		token := account
		if namespace, name, found := strings.Cut(account, "/"); found {
			token = at.tokenOf(ctx, namespace, name)
		}
		got, body, err := scrape.Do(ctx, method, url, token)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(status), body)
		Expect(body).To(ContainSubstring(text))
	},
		Entry("not without a token", "", http.MethodGet, http.StatusUnauthorized, "send a bearer token"),
		Entry("not with a token that the API server refuses", "random", http.MethodGet, http.StatusInternalServerError, "Authentication failed"),
		Entry("not without the permission", "default/no-reader", http.MethodGet, http.StatusForbidden, "Authorization denied"),
		Entry("not with a header of 64 KiB", strings.Repeat("a", 64<<10), http.MethodGet, http.StatusRequestHeaderFieldsTooLarge, "Too Large"),
		Entry("not with another method", "default/prometheus", http.MethodPost, http.StatusMethodNotAllowed, "read with GET"),
		Entry("with the ClusterRole", "default/prometheus", http.MethodGet, http.StatusOK, metric),
		Entry("to the ServiceAccount of the manifests", "tandem-system/"+program+"-metrics-reader", http.MethodGet, http.StatusOK, metric),
	)

	It("are served over HTTPS only", func(ctx SpecContext) {
		status, body, err := scrape.Do(ctx, http.MethodGet, strings.Replace(url, "https", "http", 1), reader(ctx))
		if err == nil { // the connection may also be reset
			Expect(status).To(Equal(http.StatusBadRequest), body)
		}
	})

	It("cause few questions to the API server about many random tokens, and remain readable", func(ctx SpecContext) {
		known := reader(ctx)
		status, _, err := scrape.Do(ctx, http.MethodGet, url, known)
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusOK))
		const senders, each = 20, 50
		before := asked.Load()
		var refused atomic.Int64
		var flood sync.WaitGroup
		for sender := range senders {
			flood.Go(func() {
				defer GinkgoRecover()
				for i := range each {
					status, _, err := scrape.Do(ctx, http.MethodGet, url, fmt.Sprintf("random-%d-%d", sender, i))
					Expect(err).NotTo(HaveOccurred())
					if status == http.StatusTooManyRequests {
						refused.Add(1)
					}
				}
			})
		}
		flood.Wait()
		Expect(asked.Load()-before).To(BeNumerically("<", senders*each/2), "of %d random tokens", senders*each)
		Expect(refused.Load()).To(BeNumerically(">", senders*each/2))
		status, _, err = scrape.Do(ctx, http.MethodGet, url, known)
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusOK))
	})
}

var _ = Describe("The metrics of addon-manager", Ordered, func() {
	metricsOf("addon-manager", func(_ SpecContext, address string, asked *atomic.Int64) *site {
		own := &site{Environment: tandem.Environment, clients: tandem.clients, hubConfig: tandem.countTokenReviews(asked)}
		own.runHub(withWebhooks(tandem), func(o *hub.Options) { o.MetricsBindAddress = address })
		return own
	})
	elsewhere()
})

var _ = Describe("The metrics of addon-agent", Ordered, func() {
	metricsOf("addon-agent", func(ctx SpecContext, address string, asked *atomic.Int64) *site {
		managed := startSite()
		Expect(managed.Apply(ctx, "agent", manifests.ClusterParameters{})).To(Succeed())
		// A cluster of its own, because the agent writes Available of the add-ons of its cluster, which the other specs leave behind.
		const cluster = "scraped"
		Expect(tandem.Apply(ctx, "cluster", manifests.ClusterParameters{Cluster: cluster})).To(Succeed())
		local := managed.countTokenReviews(asked)
		local.Impersonate.UserName = "system:serviceaccount:tandem-system:addon-agent"
		running, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- agent.Run(running, agent.Options{
				ClusterName: cluster, Hub: func() (*rest.Config, error) { return tandem.Config, nil }, Local: local,
				MetricsAddress: address, ProbeAddress: "0",
			})
		}()
		DeferCleanup(func() {
			stop()
			Eventually(ended).Should(Receive(Succeed()))
			managed.AwaitWrites()
			tandem.AwaitWrites()
		})
		return managed
	})
})
