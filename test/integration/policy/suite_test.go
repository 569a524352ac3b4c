// Package policy tests Tandem's admission policies on real API servers: with writes of agents, which may be hostile, of OCM's controllers,
// which ignore dependencies, and of administrators; and that uninstalling removes them.
package policy

import (
	"cmp"
	"context"
	"crypto/tls"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tandem-addons/tandem/manifests"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// The clusters of the hub, with permissions for their agents.
const cluster, otherCluster = "cluster1", "cluster2"

// Set once before the specs run.
var (
	tandem *site            // the server of addon-manager
	server client.WithWatch // an administrator's client of it
)

// TestMain makes the suite's program also the one that processes charts, which the agents in it require.
func TestMain(m *testing.M) {
	chart.ServeChild()
	os.Exit(m.Run())
}

func TestPolicy(t *testing.T) {
	RegisterFailHandler(Fail)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Policy")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	tandem = startSite()
	server = tandem.as("")
	tandem.furnish(ctx, "hub", "admission")
	DeferCleanup(func() { stopHub() })
	tandem.runHub(withWebhooks(tandem))
	tandem.untilEnforced(ctx)
})

// reported has the violations of earlier specs, which leave their add-ons behind: only the first spec with a violation fails.
var reported []string

// Instances are checked only by the specs that have some: the API server takes 100 ms to list objects that were not written recently.
var _ = AfterEach(func(ctx SpecContext) {
	found, err := invariants.OfAddOns(ctx, server)
	Expect(err).NotTo(HaveOccurred())
	found = slices.DeleteFunc(found, func(violation string) bool { return slices.Contains(reported, violation) })
	reported = append(reported, found...)
	Expect(found).To(BeEmpty(), "who wrote what")
})

// site is an API server with its clients.
type site struct {
	*environment.Environment

	// clients caches the clients of as by user and groups, because creating one requires API discovery.
	clients map[string]client.WithWatch

	// hubConfig replaces the config of the hub's controllers, unless it is nil.
	hubConfig *rest.Config
}

func startSite(change ...func(*envtest.Environment)) *site {
	GinkgoHelper()
	started, err := environment.Start(change...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(started.Stop)
	started.WebhookTimeout = 30 * time.Second
	return &site{Environment: started, clients: map[string]client.WithWatch{}}
}

// furnish sets up a hub of two clusters, with permissions for OCM's writers.
func (s *site) furnish(ctx context.Context, folders ...string) {
	GinkgoHelper()
	for _, folder := range folders {
		Expect(s.Apply(ctx, folder, manifests.ClusterParameters{})).To(Succeed())
	}
	admin := s.as("")
	for _, name := range []string{cluster, otherCluster} {
		Expect(s.Apply(ctx, "cluster", manifests.ClusterParameters{Cluster: name})).To(Succeed())
		registered := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hubAcceptsClient": true}}}
		registered.SetAPIVersion("cluster.open-cluster-management.io/v1")
		registered.SetKind("ManagedCluster")
		registered.SetName(name)
		Expect(admin.Create(ctx, registered)).To(Succeed())
	}
	Expect(admin.Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: ocm},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{addOnGroup},
			Resources: []string{"managedclusteraddons", "managedclusteraddons/status"},
			Verbs:     []string{"get", "list", "watch", "update", "patch"},
		}},
	})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ocm},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ocm},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: ocm}},
	})).To(Succeed())
}

// as returns a client of that user, or of an administrator if it is empty.
func (s *site) as(user string, groups ...string) client.WithWatch {
	GinkgoHelper()
	who := strings.Join(append([]string{user}, groups...), " ")
	if known, ok := s.clients[who]; ok {
		return known
	}
	config := rest.CopyConfig(s.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	scheme, err := hub.Scheme()
	Expect(err).NotTo(HaveOccurred())
	made, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	s.clients[who] = made
	return made
}

// asAgent returns a client of a cluster's agent.
func (s *site) asAgent(cluster string) client.WithWatch {
	GinkgoHelper()
	group := "system:open-cluster-management:cluster:" + cluster + ":addon:tandem"
	return s.as(group+":agent:addon-agent", group, "system:open-cluster-management:addon:tandem")
}

// asOCM returns a client of an OCM writer, which may write the status of add-ons and ignores dependencies.
func (s *site) asOCM() client.WithWatch {
	GinkgoHelper()
	return s.as("system:serviceaccount:open-cluster-management:"+ocm, ocm)
}

// ocm is the group of OCM's writers.
const ocm = "ocm-writers"

// addonManager is the user of the hub's controllers.
const addonManager = "system:serviceaccount:tandem-system:addon-manager"

// options returns the options of the hub's controllers.
func (s *site) options() hub.Options {
	return hub.Options{
		PackagesNamespace: kudo.DefaultPackagesNamespace, Namespace: "tandem-system",
		MetricsBindAddress: "0", HealthProbeBindAddress: "0", Concurrency: 4, Logger: GinkgoLogr,
	}
}

// withWebhooks makes the hub serve the webhooks at the address that the API server calls.
func withWebhooks(s *site) func(*hub.Options) {
	return func(options *hub.Options) {
		options.WebhookBindAddress, options.WebhookHosts = s.WebhookAddress, []string{"127.0.0.1"}
	}
}

// stopHub stops the running hub.
var stopHub = func() {}

// runHub runs the hub's controllers on this site until stopHub is called. A process runs one hub at a time: the previous one is stopped.
func (s *site) runHub(change ...func(*hub.Options)) {
	GinkgoHelper()
	stopHub()
	config, options := rest.CopyConfig(cmp.Or(s.hubConfig, s.Config)), s.options()
	config.Impersonate.UserName = addonManager // with the permissions of addon-manager on a real hub
	for _, c := range change {
		c(&options)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx, config, options) }()
	stopHub = func() {
		GinkgoHelper()
		cancel()
		Eventually(ended).Should(Receive(Succeed()), "the hub ends without an error")
		s.AwaitWrites()
		stopHub = func() {}
	}
}

// elsewhere lets the specs of a container run hubs on other sites. Those after them find a hub that converts objects.
func elsewhere() {
	AfterAll(func(ctx SpecContext) {
		tandem.runHub(withWebhooks(tandem))
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
		Eventually(func() error {
			connection, err := dialer.DialContext(ctx, "tcp", tandem.WebhookAddress)
			if err == nil {
				err = connection.Close()
			}
			return err
		}).WithContext(ctx).Should(Succeed())
	})
}
