// Package policy checks what Tandem's policies make of writes, on real API servers: those of the agents, which may be hostile,
// of OCM's controllers, which know nothing of dependencies, and of administrators; and that uninstalling takes it all back.
package policy

import (
	"context"
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
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// The clusters that the hub manages, and whose agents it has given rights to.
const cluster, otherCluster = "cluster1", "cluster2"

// Set once, before the specs run.
var (
	tandem *site            // where addon-manager runs
	server client.WithWatch // it, with all rights
)

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
	tandem.runHub(serving(tandem))
	tandem.untilEnforced(ctx)
})

// Instances are looked at by the specs that have some: the API server takes 100 ms to list what nobody has written lately.
var _ = AfterEach(func(ctx SpecContext) {
	Expect(invariants.OfAddOns(ctx, server)).To(BeEmpty(), "who wrote what")
})

// site is an API server of its own.
type site struct {
	*environment.Environment

	// clients are those that as has made, by user and groups: making one asks the API server for all that it serves.
	clients map[string]client.WithWatch
}

func startSite(change ...func(*envtest.Environment)) *site {
	GinkgoHelper()
	started, err := environment.Start(change...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(started.Stop)
	return &site{Environment: started, clients: map[string]client.WithWatch{}}
}

// furnish makes it a hub of two clusters, on which OCM's writers have their rights.
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

// as is a client of that user, of an administrator if it is empty.
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

// asAgent is a client of a cluster's agent.
func (s *site) asAgent(cluster string) client.WithWatch {
	GinkgoHelper()
	group := "system:open-cluster-management:cluster:" + cluster + ":addon:tandem"
	return s.as(group+":agent:addon-agent", group, "system:open-cluster-management:addon:tandem")
}

// asOCM is a client of one of OCM's writers, which may write the status of add-ons and knows nothing of their dependencies.
func (s *site) asOCM() client.WithWatch {
	GinkgoHelper()
	return s.as("system:serviceaccount:open-cluster-management:"+ocm, ocm)
}

// ocm is the group of OCM's writers.
const ocm = "ocm-writers"

// addonManager is whom the hub's controllers run as.
const addonManager = "system:serviceaccount:tandem-system:addon-manager"

// options are those of the hub's controllers.
func (s *site) options() hub.Options {
	return hub.Options{
		PackagesNamespace: kudo.DefaultPackagesNamespace, Namespace: "tandem-system",
		MetricsBindAddress: "0", HealthProbeBindAddress: "0", Concurrency: 4, Logger: GinkgoLogr,
	}
}

// serving makes the hub serve the webhooks where the API server looks for them.
func serving(s *site) func(*hub.Options) {
	return func(options *hub.Options) {
		options.WebhookBindAddress, options.WebhookHosts = s.WebhookAddress, []string{"127.0.0.1"}
	}
}

// stopHub stops the hub that runs.
var stopHub = func() {}

// runHub runs the hub's controllers on this site, until stopHub is called. A process has one hub at a time: the one that ran before is
// stopped.
func (s *site) runHub(change ...func(*hub.Options)) {
	GinkgoHelper()
	stopHub()
	config, options := rest.CopyConfig(s.Config), s.options()
	config.Impersonate.UserName = addonManager // with the rights that it has on a real hub, no more
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
		s.Landed()
		stopHub = func() {}
	}
}

// elsewhere makes the specs of a container run hubs on other sites.
func elsewhere() {
	AfterAll(func() { tandem.runHub(serving(tandem)) })
}
