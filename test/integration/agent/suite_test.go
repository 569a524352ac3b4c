// Package agent tests the agent between two real API servers: a hub, where the specs act as the hub's controllers, and a managed cluster,
// where they act as the controllers of Kubernetes.
package agent

import (
	"context"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/agent"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

const (
	clusterName = "cluster1"
	packages    = "addon-packages"
	timeout     = time.Minute // on a busy machine
)

// Set once before the specs run: the API servers, administrator clients, and the agent's configs.
var (
	hubServer, managedServer *environment.Environment
	hub                      client.Client
	managed                  client.WithWatch
	agentOnHub, agentLocally *rest.Config
)

// TestMain makes the suite's program also the one that renders charts.
func TestMain(m *testing.M) {
	chart.ServeChild()
	os.Exit(m.Run())
}

func TestAgent(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Agent")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(timeout)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(2 * time.Second)
	ctrl.SetLogger(GinkgoLogr)

	hubServer, managedServer = start(), start()
	hub, managed = clientOf(hubServer.Config), clientOf(managedServer.Config)
	agentLocally = managedServer.Config

	// The permissions are those of the agent on a real hub.
	const group = "system:open-cluster-management:cluster:" + clusterName + ":addon:tandem"
	agentOnHub = rest.CopyConfig(hubServer.Config)
	agentOnHub.Impersonate = rest.ImpersonationConfig{
		UserName: group + ":agent:addon-agent",
		Groups:   []string{group, "system:open-cluster-management:addon:tandem"},
	}

	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	for _, folder := range []string{"hub", "cluster"} {
		Expect(hubServer.Apply(ctx, folder, manifests.ClusterParameters{Cluster: clusterName})).To(Succeed())
	}
	collectGarbage(ctx, managed)
})

func start() *environment.Environment {
	GinkgoHelper()
	server, err := environment.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	return server
}

func clientOf(config *rest.Config) client.WithWatch {
	GinkgoHelper()
	scheme, err := agent.Scheme()
	Expect(err).NotTo(HaveOccurred())
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// collectGarbage acts as the garbage collector for all kinds that the specs delete in the foreground.
func collectGarbage(ctx context.Context, managed client.WithWatch) {
	kinds := sets.New(
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("Service"),
		appsv1.SchemeGroupVersion.WithKind("DaemonSet"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
		appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		batchv1.SchemeGroupVersion.WithKind("CronJob"), batchv1.SchemeGroupVersion.WithKind("Job"),
		networkingv1.SchemeGroupVersion.WithKind("Ingress"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"),
		schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
		schema.GroupVersionKind{Group: "tandem.test", Version: "v1", Kind: "Gadget"},
		schema.GroupVersionKind{Group: "late.tandem.test", Version: "v1", Kind: "Latecomer"},
	)
	for kind := range removed {
		apiVersion, name, _ := strings.Cut(kind, " ")
		kinds.Insert(schema.FromAPIVersionAndKind(apiVersion, name))
	}
	environment.CollectGarbage(ctx, managed, "", kinds.UnsortedList()...)
}

// runAgent starts an agent and returns a function that stops it and waits for its last writes. It is stopped at the end of the spec at the
// latest.
func runAgent() func() { return runAgentWith(agentOnHub, agentLocally) }

func runAgentWith(onHub, locally *rest.Config, change ...func(*agent.Options)) func() {
	options := agent.Options{
		ClusterName:    clusterName,
		Hub:            func() (*rest.Config, error) { return onHub, nil },
		Local:          locally,
		MetricsAddress: "0",
		ProbeAddress:   "0",
		ReportInterval: 100 * time.Millisecond,
	}
	for _, c := range change {
		c(&options)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, options) }()
	stop := sync.OnceFunc(func() {
		cancel()
		err := <-ended
		if err != nil { // show what does not end
			Expect(pprof.Lookup("goroutine").WriteTo(GinkgoWriter, 1)).To(Succeed())
		}
		Expect(err).NotTo(HaveOccurred())
		hubServer.AwaitWrites()
		managedServer.AwaitWrites()
	})
	DeferCleanup(stop)
	return stop
}
