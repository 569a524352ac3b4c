// Package delivery runs the hub's controllers on a hub with OCM's resource definitions, against a real API server. The specs act as OCM's
// own controllers, klusterlets and addon-agent.
package delivery

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

const (
	packages = kudo.DefaultPackagesNamespace
	image    = "registry.example/addon-agent:1"
)

// Set once before the specs run.
var (
	started *environment.Environment
	server  client.Client
)

func TestDelivery(t *testing.T) {
	RegisterFailHandler(Fail)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	RunSpecs(t, "Delivery")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	var err error
	started, err = environment.Start(func(e *envtest.Environment) {
		e.CRDInstallOptions.Paths = []string{filepath.Join(moduleOfOCM(), "work/v1/0000_00_work.open-cluster-management.io_manifestworks.crd.yaml")}
		e.CRDInstallOptions.ErrorIfPathMissing = true
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(started.Stop)
	started.WebhookTimeout = 30 * time.Second
	server = newClient(started.Config)
	for _, folder := range []string{"hub", "ocm", "admission"} {
		Expect(started.Apply(ctx, folder, manifests.ClusterParameters{})).To(Succeed())
	}
})

// moduleOfOCM returns the folder of OCM's API module, which has its resource definitions.
func moduleOfOCM() string {
	GinkgoHelper()
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "open-cluster-management.io/api").Output()
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(folder))
}

func newClient(config *rest.Config) client.Client {
	GinkgoHelper()
	scheme, err := hub.Scheme()
	Expect(err).NotTo(HaveOccurred())
	Expect(workv1.Install(scheme)).To(Succeed())
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// writes records the writes of the hub that runs in every spec, stopHub stops it.
var (
	writes  *environment.Writes
	stopHub func()
)

var _ = BeforeEach(func() { writes, stopHub = runHub(started) })

var _ = AfterEach(func(ctx SpecContext) {
	violations, err := invariants.Violations(ctx, server)
	Expect(err).NotTo(HaveOccurred())
	Expect(violations).To(BeEmpty(), "who wrote what")
})

// runHub runs the hub's controllers on an API server until stop is called or the spec ends.
func runHub(on *environment.Environment, change ...func(*rest.Config, *hub.Options)) (writes *environment.Writes, stop func()) {
	GinkgoHelper()
	config, writes := environment.RecordWrites(on.Config)
	// The permissions are those of addon-manager on a real hub.
	config.Impersonate.UserName = "system:serviceaccount:tandem-system:addon-manager"
	options := hub.Options{
		PackagesNamespace: packages, Namespace: "tandem-system", MetricsBindAddress: "0", HealthProbeBindAddress: "0", Concurrency: 4,
		WebhookBindAddress: on.WebhookAddress, WebhookHosts: []string{"127.0.0.1"},
		DeliverAgents: true, Logger: GinkgoLogr,
	}
	for _, c := range change {
		c(config, &options)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx, config, options) }()
	stop = func() {
		GinkgoHelper()
		if ctx.Err() == nil {
			cancel()
			Eventually(ended).Should(Receive(Succeed()), "the hub ends without an error")
			on.AwaitWrites()
		}
	}
	DeferCleanup(stop)
	return writes, stop
}

// runStaleHub runs the hub with a view of some resources as of a resource version until current is called or the spec ends.
func runStaleHub(version string, resources ...string) (current func()) {
	GinkgoHelper()
	until := make(chan struct{})
	var watched []<-chan struct{}
	runHub(started, func(config *rest.Config, _ *hub.Options) {
		for _, resource := range resources {
			watched = append(watched, environment.MakeStale(config, resource, version, until))
		}
	})
	for _, start := range watched {
		Eventually(start).Should(Receive())
	}
	return func() { close(until) }
}

// in lists the writes in a cluster's namespace.
func in(cluster string, writes *environment.Writes) func() []string {
	return func() []string {
		return slices.DeleteFunc(writes.Requests(), func(request string) bool {
			return !strings.Contains(request, "/namespaces/"+cluster+"/")
		})
	}
}

// awaitNoWrites waits until the hub writes nothing more in a cluster's namespace.
func awaitNoWrites(ctx context.Context, cluster string) {
	GinkgoHelper()
	last := -1
	Eventually(func() bool {
		before := last
		last = len(in(cluster, writes)())
		return last == before
	}).WithContext(ctx).WithPolling(500 * time.Millisecond).Should(BeTrue())
	Consistently(func() int { return len(in(cluster, writes)()) }).Should(Equal(last))
}

// register creates a managed cluster in the state after its acceptance by OCM.
func register(ctx context.Context) (cluster string) {
	GinkgoHelper()
	cluster = "cluster-" + rand.String(6)
	Expect(server.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})).To(Succeed())
	Expect(server.Create(ctx, managedCluster(cluster))).To(Succeed())
	return cluster
}

func managedCluster(name string) *unstructured.Unstructured {
	cluster := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hubAcceptsClient": true}}}
	cluster.SetAPIVersion("cluster.open-cluster-management.io/v1")
	cluster.SetKind("ManagedCluster")
	cluster.SetName(name)
	return cluster
}

// enable creates a ManagedClusterAddOn with the owner reference to its ClusterManagementAddOn that OCM sets.
func enable(ctx context.Context, cluster, name string, change ...func(*addonv1alpha1.ManagedClusterAddOn)) *addonv1alpha1.ManagedClusterAddOn {
	GinkgoHelper()
	definition := get(ctx, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}})
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster, Name: name, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(definition, addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn")),
		},
	}}
	for _, c := range change {
		c(addOn)
	}
	Expect(server.Create(ctx, addOn)).To(Succeed())
	return addOn
}

// deploymentConfig stores an AddOnDeploymentConfig for the cluster.
func deploymentConfig(ctx context.Context, cluster string, change func(*upstream.AddOnDeploymentConfigSpec)) *addonv1alpha1.AddOnDeploymentConfig {
	GinkgoHelper()
	config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "config"}}
	change(&config.Spec)
	Expect(server.Create(ctx, config)).To(Succeed())
	return config
}

var (
	deploymentConfigs = upstream.ConfigGroupResource{
		Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs,
	}
	operatorVersions = upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions}
	configMaps       = upstream.ConfigGroupResource{Resource: addonv1alpha1.ResourceConfigMaps}
)

func referent(object client.Object) upstream.ConfigReferent {
	return upstream.ConfigReferent{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// place adds a placement with configs to a definition, and acts as OCM's addon-manager, which lists them in the status without hashes; the
// runner of the add-on sets the hashes.
func place(ctx context.Context, definition string, configs ...client.Object) {
	GinkgoHelper()
	strategy := upstream.PlacementStrategy{PlacementRef: upstream.PlacementRef{Namespace: "default", Name: "all"}}
	progression := upstream.InstallProgression{PlacementRef: strategy.PlacementRef}
	for _, config := range configs {
		strategy.Configs = append(strategy.Configs, upstream.AddOnConfig{
			ConfigGroupResource: resourceOf(config), ConfigReferent: referent(config),
		})
		progression.ConfigReferences = append(progression.ConfigReferences, upstream.InstallConfigReference{
			ConfigGroupResource: resourceOf(config), DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: referent(config)},
		})
	}
	named := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: definition}}
	edit(ctx, named, func(d *addonv1alpha1.ClusterManagementAddOn) {
		d.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyPlacements
		d.Spec.InstallStrategy.Placements = []upstream.PlacementStrategy{strategy}
	})
	editStatus(ctx, named, func(d *addonv1alpha1.ClusterManagementAddOn) {
		d.Status.InstallProgressions = []upstream.InstallProgression{progression}
	})
}

// edit and editStatus change an object, which the hub may write concurrently.
func edit[T any, O environment.Object[T]](ctx context.Context, object O, change func(O)) {
	GinkgoHelper()
	Expect(environment.Edit(ctx, server, object, change)).To(Succeed())
}

func editStatus[T any, O environment.Object[T]](ctx context.Context, object O, change func(O)) {
	GinkgoHelper()
	Expect(environment.EditStatus(ctx, server, object, change)).To(Succeed())
}

// say changes the value of a config's first variable.
func say(ctx context.Context, config *addonv1alpha1.AddOnDeploymentConfig, value string) {
	GinkgoHelper()
	edit(ctx, config, func(c *addonv1alpha1.AddOnDeploymentConfig) { c.Spec.CustomizedVariables[0].Value = value })
}

func resourceOf(config client.Object) upstream.ConfigGroupResource {
	if _, ok := config.(*kudo.OperatorVersion); ok {
		return operatorVersions
	}
	return deploymentConfigs
}

// progressionHashes returns the hashes in a definition's status, in the order of its configs, for Eventually.
func progressionHashes(definition string) func(Gomega, context.Context) []string {
	return func(g Gomega, ctx context.Context) []string {
		current := &addonv1alpha1.ClusterManagementAddOn{}
		g.Expect(server.Get(ctx, client.ObjectKey{Name: definition}, current)).To(Succeed())
		var hashes []string
		for _, progression := range current.Status.InstallProgressions {
			for _, reference := range progression.ConfigReferences {
				hashes = append(hashes, reference.DesiredConfig.SpecHash)
			}
		}
		return hashes
	}
}

// rollOut acts as OCM's addon-manager on an add-on: it rolls out the current configuration of the definition to this cluster.
func rollOut(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) {
	GinkgoHelper()
	Eventually(progressionHashes(addOn.Name)).WithContext(ctx).ShouldNot(Or(BeEmpty(), ContainElement("")))
	definition := get(ctx, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: addOn.Name}})
	configure(ctx, addOn, definition.Status.InstallProgressions[0].ConfigReferences...)
}

// configure lists the configs of an add-on in its status, and marks it as configured.
func configure(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, references ...upstream.InstallConfigReference) {
	GinkgoHelper()
	editStatus(ctx, addOn, func(a *addonv1alpha1.ManagedClusterAddOn) {
		a.Status.ConfigReferences = nil
		for _, r := range references {
			a.Status.ConfigReferences = append(a.Status.ConfigReferences, upstream.ConfigReference{
				ConfigGroupResource: r.ConfigGroupResource, ConfigReferent: r.DesiredConfig.ConfigReferent, DesiredConfig: r.DesiredConfig,
			})
		}
		meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
			Type: addonv1alpha1.ConditionConfigured, Status: metav1.ConditionTrue, Reason: "ConfigurationsConfigured",
		})
	})
}

// get reads the current state of an object.
func get[O client.Object](ctx context.Context, object O) O {
	GinkgoHelper()
	current := object.DeepCopyObject().(O)
	Expect(server.Get(ctx, client.ObjectKeyFromObject(object), current)).To(Succeed())
	return current
}

// exists reports whether an object exists, for Eventually.
func exists(object client.Object) func(Gomega, context.Context) bool {
	return func(g Gomega, ctx context.Context) bool {
		err := server.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		return err == nil
	}
}

// seen is the expected state of a condition.
type seen struct{ Status, Reason string }

// conditionOf returns a condition of a ManagedClusterAddOn, for Eventually.
func conditionOf(addOn *addonv1alpha1.ManagedClusterAddOn, conditionType string) func(Gomega, context.Context) seen {
	return func(g Gomega, ctx context.Context) seen {
		current := &addonv1alpha1.ManagedClusterAddOn{}
		g.Expect(server.Get(ctx, client.ObjectKeyFromObject(addOn), current)).To(Succeed())
		condition := meta.FindStatusCondition(current.Status.Conditions, conditionType)
		if condition == nil {
			return seen{}
		}
		return seen{string(condition.Status), condition.Reason}
	}
}

// finalizersOf returns the finalizers of a ManagedClusterAddOn, for Eventually.
func finalizersOf(addOn *addonv1alpha1.ManagedClusterAddOn) func(Gomega, context.Context) []string {
	return func(g Gomega, ctx context.Context) []string {
		current := &addonv1alpha1.ManagedClusterAddOn{}
		g.Expect(server.Get(ctx, client.ObjectKeyFromObject(addOn), current)).To(Succeed())
		return current.Finalizers
	}
}

// workNamed returns a ManifestWork of the cluster, by name.
func workNamed(cluster, name string) *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
}

// reportApplied acts as OCM's work agent: it reports a ManifestWork as applied.
func reportApplied(ctx context.Context, w *workv1.ManifestWork) {
	GinkgoHelper()
	editStatus(ctx, w, func(w *workv1.ManifestWork) {
		for _, t := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
			meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
				Type: t, Status: metav1.ConditionTrue, Reason: "Done", ObservedGeneration: w.Generation,
			})
		}
	})
}

// reports acts as addon-agent: it reports the result of the last plan for the Instance's current generation.
func reports(ctx context.Context, instance *kudo.Instance, status metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	current := get(ctx, instance)
	_, err := apply.Condition(ctx, server, current, current.Status.Conditions, "addon-agent-report", metav1.Condition{
		Type: kudo.ConditionReady, Status: status, Reason: reason, ObservedGeneration: current.Generation,
	}, time.Now())
	Expect(err).NotTo(HaveOccurred())
}
