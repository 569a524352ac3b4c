// Package agent checks the agent between two real API servers: a hub, on which the specs play the hub's controllers, and a
// managed cluster, on which they play the controllers of Kubernetes.
package agent

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/agent"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

const (
	clusterName = "cluster1"
	packages    = "addon-packages"
	patience    = time.Minute // on a busy machine
)

// Set once, before the specs run: the API servers, clients with all rights, and the configs that the agent gets.
var (
	hubServer, managedServer *environment.Environment
	hub, managed             client.Client
	agentOnHub, agentLocally *rest.Config
)

func TestAgent(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Agent")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(2 * time.Second)
	ctrl.SetLogger(GinkgoLogr)

	hubServer, managedServer = start(), start()
	hub, managed = clientOf(hubServer.Config), clientOf(managedServer.Config)
	agentLocally = managedServer.Config

	// With the rights that it has on a real hub, no more.
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
	go collectGarbage(ctx)
})

func start() *environment.Environment {
	GinkgoHelper()
	server, err := environment.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	return server
}

func clientOf(config *rest.Config) client.Client {
	GinkgoHelper()
	scheme, err := agent.Scheme()
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// collectGarbage plays Kubernetes' garbage collector for what the specs delete in the foreground, which have no dependants.
func collectGarbage(ctx context.Context) {
	kinds := []client.ObjectList{&corev1.ConfigMapList{}, &corev1.PersistentVolumeClaimList{}, &appsv1.DeploymentList{}, &rbacv1.ClusterRoleList{},
		&appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}, &appsv1.ReplicaSetList{}, &batchv1.JobList{}, &batchv1.CronJobList{},
		&corev1.PodList{}, &corev1.ServiceList{}, &corev1.SecretList{}, &rbacv1.RoleBindingList{}, &schedulingv1.PriorityClassList{},
		&metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "tandem.test/v1", Kind: "GadgetList"}},
		&metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinitionList"}},
	}
	for kind := range removed {
		list := &metav1.PartialObjectMetadataList{}
		apiVersion, name, _ := strings.Cut(kind, " ")
		list.APIVersion, list.Kind = apiVersion, name+"List"
		kinds = append(kinds, list)
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, list := range kinds {
			if managed.List(ctx, list) != nil {
				continue
			}
			_ = eachItem(list, func(o client.Object) {
				before := o.DeepCopyObject().(client.Object)
				finalized := controllerutil.RemoveFinalizer(o, metav1.FinalizerDeleteDependents)
				finalized = controllerutil.RemoveFinalizer(o, "kubernetes.io/pvc-protection") || finalized
				if o.GetDeletionTimestamp() != nil && finalized {
					_ = managed.Patch(ctx, o, client.MergeFrom(before))
				}
			})
		}
	}, 50*time.Millisecond)
}

// runAgent starts an agent and returns what stops it and waits for its end, and that of its writes, at the latest that of the spec.
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
		Expect(<-ended).To(Succeed())
		hubServer.Landed()
		managedServer.Landed()
	})
	DeferCleanup(stop)
	return stop
}
