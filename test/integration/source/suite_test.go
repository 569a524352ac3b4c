// Package source tests package-controller against a real API server, and registries in the process of the suite.
package source

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/source"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// timeout limits a spec.
const timeout = 3 * time.Minute

// packages is the namespace of packages, in which package-controller has permissions.
const packages = kudo.DefaultPackagesNamespace

// Set once before the specs run.
var (
	config *rest.Config
	server client.Client
)

// TestMain makes the suite's program also the one that renders charts.
func TestMain(m *testing.M) {
	chart.ServeChild()
	os.Exit(m.Run())
}

func TestSource(t *testing.T) {
	RegisterFailHandler(Fail)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	RunSpecs(t, "Source")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	env, err := environment.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	config = env.Config
	scheme, err := controller.Scheme()
	Expect(err).NotTo(HaveOccurred())
	server, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(env.Apply(ctx, "hub", manifests.ClusterParameters{})).To(Succeed())
	rights, err := manifests.Objects(os.DirFS("../../../deploy"), "packagesources/rights.yaml", nil)
	Expect(err).NotTo(HaveOccurred())
	policies, err := manifests.Objects(manifests.FS, "admission/validating-policies.yaml", nil)
	Expect(err).NotTo(HaveOccurred())
	for _, object := range append(rights, policies...) {
		Expect(server.Create(ctx, object)).To(Succeed())
	}
})

var _ = AfterEach(func(ctx SpecContext) {
	var sources kudo.PackageSourceList
	Expect(server.List(ctx, &sources)).To(Succeed())
	for i := range sources.Items {
		violations, err := invariants.Of("PackageSource", &sources.Items[i])
		Expect(err).NotTo(HaveOccurred())
		Expect(violations).To(BeEmpty(), "who wrote what")
		Expect(client.IgnoreNotFound(server.Delete(ctx, &sources.Items[i]))).To(Succeed())
	}
})

// run runs package-controller with the permissions that deploy/packagesources grants, until stop is called or the spec ends, and records its writes. It
// may reach the hosts, although they are on this machine.
func run(hosts ...string) (writes *environment.Writes, stop func()) {
	GinkgoHelper()
	recorded, writes := environment.RecordWrites(config)
	recorded.Impersonate.UserName = "system:serviceaccount:tandem-system:package-controller"
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- source.Run(ctx, recorded, source.Options{
			Namespaces: []string{packages}, Network: source.Network{AllowHosts: hosts}, MetricsBindAddress: "0", HealthProbeBindAddress: "0",
			Concurrency: 2, Logger: GinkgoLogr,
		})
	}()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
	}
	DeferCleanup(stop)
	return writes, stop
}

// read returns the current source.
func read(ctx context.Context, name string) *kudo.PackageSource {
	GinkgoHelper()
	found := &kudo.PackageSource{}
	Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: name}, found)).To(Succeed())
	return found
}

// becomes waits until condition Ready of a source has a reason for its current generation, and a message with a text. It returns the source.
func becomes(ctx context.Context, name, reason, message string) *kudo.PackageSource {
	GinkgoHelper()
	var found *kudo.PackageSource
	Eventually(ctx, func(g Gomega) {
		found = &kudo.PackageSource{}
		g.Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: name}, found)).To(Succeed())
		ready := meta.FindStatusCondition(found.Status.Conditions, kudo.ConditionReady)
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.Reason).To(Equal(reason), ready.Message)
		g.Expect(ready.Message).To(ContainSubstring(message))
		g.Expect(found.Status.ObservedGeneration).To(Equal(found.Generation))
	}).Should(Succeed())
	return found
}

// request asks for an attempt, and waits until it has ended.
func request(ctx context.Context, name string) *kudo.PackageSource {
	GinkgoHelper()
	value := time.Now().Format(time.RFC3339Nano)
	Expect(environment.Edit(ctx, server, read(ctx, name), func(s *kudo.PackageSource) {
		s.Annotations = map[string]string{kudo.AnnotationReconcileAt: value}
	})).To(Succeed())
	Eventually(ctx, func() string { return read(ctx, name).Status.LastHandledReconcileAt }).Should(Equal(value))
	return read(ctx, name)
}

// versions returns the names of an operator's OperatorVersions on the hub.
func versions(ctx context.Context, operator string) []string {
	GinkgoHelper()
	var list kudo.OperatorVersionList
	Expect(server.List(ctx, &list, client.InNamespace(packages))).To(Succeed())
	var names []string
	for _, version := range list.Items {
		if version.OperatorName() == operator {
			names = append(names, version.Name)
		}
	}
	return names
}
