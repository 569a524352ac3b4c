// Package hub tests the hub's controllers against a real API server; the specs act as the users, OCM and the agents.
package hub

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// Set once before the specs run.
var (
	started        *environment.Environment
	config         *rest.Config
	server         client.Client
	webhookAddress string
)

func TestHub(t *testing.T) {
	RegisterFailHandler(Fail)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	RunSpecs(t, "Hub")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	var err error
	started, err = environment.Start(presentCertificate, permitLongRequests)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(started.Stop)
	config, webhookAddress, started.WebhookTimeout = started.Config, started.WebhookAddress, 30*time.Second

	scheme, err := hub.Scheme()
	Expect(err).NotTo(HaveOccurred())
	server, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	for _, folder := range []string{"hub", "admission"} {
		Expect(started.Apply(ctx, folder, manifests.ClusterParameters{})).To(Succeed())
	}
	// The first hub writes the CA bundles of the resource definitions, after which the API server reloads them.
	_, stop := runHub(withWebhooks)
	bundlesAreCurrent(ctx)
	converts(ctx)
	stop()
})

// withTransport makes do send the hub's requests.
func withTransport(do func(request *http.Request, next http.RoundTripper) (*http.Response, error)) func(*rest.Config, *hub.Options) {
	return func(config *rest.Config, _ *hub.Options) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) { return do(request, next) })
		})
	}
}

// before calls a function before each request of the hub.
func before(do func(*http.Request)) func(*rest.Config, *hub.Options) {
	return withTransport(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		do(request)
		return next.RoundTrip(request)
	})
}

// withElection makes the hub work only while it holds its lease, as on a real hub.
func withElection(_ *rest.Config, options *hub.Options) {
	options.LeaderElection, options.LeaderElectionNamespace = true, "tandem-system"
}

// withWebhooks makes the hub serve webhooks at the address that the API server calls; only one hub at a time can.
func withWebhooks(_ *rest.Config, options *hub.Options) {
	options.WebhookBindAddress, options.WebhookHosts = webhookAddress, []string{"127.0.0.1"}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// stopHub stops the hub that runs in every spec.
var stopHub func()

var _ = BeforeEach(func() { _, stopHub = runHub(withWebhooks) })

var _ = AfterEach(func(ctx SpecContext) {
	violations, err := invariants.Violations(ctx, server)
	Expect(err).NotTo(HaveOccurred())
	Expect(violations).To(BeEmpty(), "who wrote what")
})

// runHub runs the hub's controllers, as modified by change, until stop is called or the spec ends, and records their writes.
func runHub(change ...func(*rest.Config, *hub.Options)) (writes *environment.Writes, stop func()) {
	GinkgoHelper()
	recorded, writes := environment.RecordWrites(config)
	// The permissions are those of addon-manager on a real hub.
	recorded.Impersonate.UserName = "system:serviceaccount:tandem-system:addon-manager"
	options := hub.Options{
		PackagesNamespace:      packages,
		Namespace:              "tandem-system",
		MetricsBindAddress:     "0",
		HealthProbeBindAddress: "0",
		Concurrency:            4,
		Logger:                 GinkgoLogr,
	}
	for _, c := range change {
		c(recorded, &options)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx, recorded, options) }()
	var stopped bool
	stop = func() {
		GinkgoHelper()
		if stopped {
			return
		}
		stopped = true
		cancel()
		Eventually(ended).Should(Receive(Succeed()), "the hub ends without an error")
		started.AwaitWrites()
		Expect(writes.Requests()).NotTo(ContainElement(HavePrefix(http.MethodPut)), "the cache lacks fields, which an update would remove")
	}
	DeferCleanup(stop)
	return writes, stop
}
