// Package cluster runs the hub and the agent of one managed cluster together, each with its real permissions, between two real API servers;
// the specs act as the users and as an add-on that renews a lease.
package cluster

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/agent"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/pkg/kube/identity"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

const (
	clusterName = "cluster1"
	packages    = "addon-packages"
	addOns      = "addons" // the install namespace
	leasePeriod = time.Second
)

// Set once before the specs run: the hub, administrator clients, and the programs' configs for both clusters.
var (
	hubServer       *environment.Environment
	server, managed client.WithWatch
	hubOnHub, here  *rest.Config
)

// TestMain makes the suite's program also the one that renders charts.
func TestMain(m *testing.M) {
	chart.ServeChild()
	os.Exit(m.Run())
}

func TestCluster(t *testing.T) {
	RegisterFailHandler(Fail)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	RunSpecs(t, "Cluster")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	onHub, local := start(), start()
	hubServer, server, managed = onHub, clientOf(onHub.Config), clientOf(local.Config)
	for _, folder := range []string{"hub", "cluster", "admission"} {
		Expect(onHub.Apply(ctx, folder, manifests.ClusterParameters{Cluster: clusterName})).To(Succeed())
	}
	Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: addOns}})).To(Succeed())

	here = local.Config
	hubOnHub = as(onHub.Config, "system:serviceaccount:tandem-system:addon-manager")
})

var _ = AfterEach(func(ctx SpecContext) {
	violations, err := invariants.Violations(ctx, server)
	Expect(err).NotTo(HaveOccurred())
	Expect(violations).To(BeEmpty(), "who wrote what")
})

// servers lists all started API servers.
var servers []*environment.Environment

func start() *environment.Environment {
	GinkgoHelper()
	started, err := environment.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(started.Stop)
	servers = append(servers, started)
	return started
}

func clientOf(config *rest.Config) client.WithWatch {
	GinkgoHelper()
	scheme, err := hub.Scheme()
	Expect(err).NotTo(HaveOccurred())
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// systemClient returns a client of one of Kubernetes' controllers on the hub.
func systemClient(controller string) client.Client {
	GinkgoHelper()
	return clientOf(as(hubServer.Config, "system:serviceaccount:kube-system:"+controller, "system:masters"))
}

// as returns config for another identity.
func as(config *rest.Config, user string, groups ...string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// runHub runs the hub's controllers until stop is called or the spec ends.
func runHub() (stop func()) {
	return runUntilStopped(func(ctx context.Context) error {
		return hub.Run(ctx, hubOnHub, hub.Options{
			PackagesNamespace: packages, MetricsBindAddress: "0", HealthProbeBindAddress: "0", Concurrency: 4, Logger: GinkgoLogr,
		})
	})
}

// runAgent runs the agent until stop is called or the spec ends.
func runAgent() (stop func()) { return runAgentOf(clusterName) }

// runAgentOf runs the agent of the named cluster.
func runAgentOf(cluster string, change ...func(*agent.Options)) (stop func()) {
	onHub := as(hubServer.Config, identity.User(cluster), identity.Groups(cluster)...)
	options := agent.Options{
		ClusterName: cluster, Hub: func() (*rest.Config, error) { return onHub, nil }, Local: here,
		MetricsAddress: "0", ProbeAddress: "0", Standalone: true, LeasePeriod: leasePeriod,
	}
	for _, c := range change {
		c(&options)
	}
	return runUntilStopped(func(ctx context.Context) error { return agent.Run(ctx, options) })
}

func runUntilStopped(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = func() {
		GinkgoHelper()
		if ctx.Err() == nil {
			cancel()
			Eventually(ended).Should(Receive(Succeed()))
			for _, s := range servers {
				s.AwaitWrites()
			}
		}
	}
	DeferCleanup(stop)
	return stop
}
