package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

const (
	// accounts and proxy are add-ons of OCM's community; inspector is a plan-based add-on.
	accounts  = "managed-serviceaccount"
	proxy     = "cluster-proxy"
	inspector = "inspector"

	// The programs of their agents, by Deployment and container.
	accountsAgent = "managed-serviceaccount-addon-agent.addon-agent"
	proxyAgent    = "cluster-proxy-proxy-agent.addon-agent"

	// addOnNamespace is their namespace on the hub.
	addOnNamespace = "open-cluster-management-addon"
	// addOnTimeout is the timeout of their installation, which requests two certificates and checks leases every thirty seconds.
	addOnTimeout = 3 * time.Minute
)

var _ = Describe("Add-ons of OCM's community beside a plan-based one", Label("ocm"), onSandbox("agents run as processes"), Ordered, func() {
	var (
		home    string
		box     *sandbox.Sandbox
		hub     client.Client
		managed client.Client
	)
	BeforeAll(func(ctx SpecContext) {
		programsOfOCM, err := sandbox.FindOCM(os.Getenv)
		Expect(err).NotTo(HaveOccurred())
		addons := os.Getenv("TANDEM_ADDON_ASSETS")
		Expect(addons).NotTo(BeEmpty(), "TANDEM_ADDON_ASSETS names the folder that `make addons` prints")
		box = startSandbox(ctx, 1, func(o *sandbox.Options) {
			o.OCM, o.DeliverAgents, o.Images = programsOfOCM, true, filepath.Join(addons, "images")
			home = o.Home
		})
		hub, err = client.New(box.Hub().Config(), client.Options{Scheme: ocmScheme()})
		Expect(err).NotTo(HaveOccurred())
		Expect(kudo.AddToScheme(hub.Scheme())).To(Succeed())
		managed, err = client.New(box.Cluster("cluster1").Config(), client.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: addOnNamespace}})).To(Succeed())
		install(ctx, hub, addons, accounts)
		install(ctx, hub, addons, proxy)
	})

	// becomes waits until a condition of an add-on has the status and reason; an empty reason means no condition.
	becomes := func(ctx context.Context, name, condition string, status metav1.ConditionStatus, reason string) {
		GinkgoHelper()
		Eventually(conditionOf).WithContext(ctx).WithArguments(hub, name, condition).WithTimeout(addOnTimeout).WithPolling(interval).
			Should(And(HaveField("Status", status), HaveField("Reason", reason)), "%s of %s", condition, name)
	}
	dragsDown := func(ctx context.Context, names ...string) {
		GinkgoHelper()
		for _, name := range names {
			becomes(ctx, name, addonv1alpha1.ConditionDegraded, metav1.ConditionTrue, addonv1alpha1.ReasonRequiredDependencyNotSatisfied)
			becomes(ctx, name, addonv1alpha1.ConditionAvailable, metav1.ConditionFalse, addonv1alpha1.ReasonRequiredDependencyNotSatisfied)
		}
	}
	works := func(ctx context.Context) {
		GinkgoHelper()
		for _, name := range []string{accounts, proxy} {
			becomes(ctx, name, addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonLeaseUpdated)
			becomes(ctx, name, addonv1alpha1.ConditionDegraded, "", "")
		}
	}
	stop := func(ctx context.Context, program string) {
		GinkgoHelper()
		Expect(sandbox.StopProgram(ctx, home, "cluster1", program)).To(Succeed())
	}
	start := func(ctx context.Context, program string) {
		GinkgoHelper()
		Expect(sandbox.StartProgram(ctx, home, "cluster1", program)).To(Succeed())
	}
	// writes returns the requests that have changed an add-on's status since the log had that many entries, by users with that prefix.
	writes := func(since int, by, name string) func() []string {
		return func() []string {
			var found []string
			for _, e := range entriesOf(box.Hub().AuditLog())[since:] {
				if e.Is("managedclusteraddons", "status") && e.ObjectRef.Name == name && e.IsSuccess() && strings.HasPrefix(e.User.Username, by) {
					found = append(found, e.String())
				}
			}
			return found
		}
	}
	const (
		manager    = "system:serviceaccount:tandem-system:addon-manager"
		agent      = "system:open-cluster-management:cluster:cluster1:addon:tandem:"
		klusterlet = "system:open-cluster-management:cluster1:"
	)
	var judged int

	It("are installed by their own charts, managers and agents, and OCM finds them available by their leases", func(ctx SpecContext) {
		works(ctx)
		for program, cluster := range map[string]string{
			"managed-serviceaccount-addon-manager.manager": "hub", accountsAgent: "cluster1",
			"cluster-proxy-addon-manager.manager": "hub", proxyAgent: "cluster1",
		} {
			// Some programs exit and are restarted, because a certificate is not in their Secret yet.
			Eventually(func() int { return find(box, cluster, program).PID }).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).
				ShouldNot(BeZero(), program)
		}

		By("an agent doing its work: a token of the managed cluster on the hub")
		account := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"rotation": map[string]any{}}}}
		account.SetAPIVersion("authentication.open-cluster-management.io/v1beta1")
		account.SetKind("ManagedServiceAccount")
		account.SetNamespace("cluster1")
		account.SetName("inspector")
		Expect(hub.Create(ctx, account)).To(Succeed())
		Eventually(func(g Gomega) {
			var token corev1.Secret
			g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(account), &token)).To(Succeed())
			g.Expect(token.Data).To(HaveKeyWithValue("token", Not(BeEmpty())))
		}).WithContext(ctx).WithTimeout(ocmTimeout).WithPolling(interval).Should(Succeed())
	})

	It("let one install that requires them, by the annotation that declares it", func(ctx SpecContext) {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: proxy}}
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(definition), definition)).To(Succeed())
		before := definition.DeepCopy()
		metav1.SetMetaDataAnnotation(&definition.ObjectMeta, addonv1alpha1.AnnotationDependencies, dependsOn(accounts))
		Expect(hub.Patch(ctx, definition, client.MergeFrom(before))).To(Succeed())

		Expect(hub.Create(ctx, linkPackage())).To(Succeed())
		own := linkDefinition(0)
		own.Name, own.Spec.Dependencies = inspector, nil
		own.Annotations = map[string]string{addonv1alpha1.AnnotationDependencies: dependsOn(proxy)}
		Expect(hub.Create(ctx, own)).To(Succeed())
		Expect(hub.Create(ctx, newAddOn(inspector))).To(Succeed())
		becomes(ctx, inspector, addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete)
		becomes(ctx, inspector, addonv1alpha1.ConditionManifestApplied, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete)
		works(ctx)
	})

	It("degrade all that require one whose agent has ended, once its lease has run out", func(ctx SpecContext) {
		judged = len(entriesOf(box.Hub().AuditLog()))
		stop(ctx, accountsAgent)
		runOut(ctx, managed, leaseOf(ctx, hub, accounts))
		becomes(ctx, accounts, addonv1alpha1.ConditionAvailable, metav1.ConditionFalse, addonv1alpha1.ReasonLeaseStopped)
		dragsDown(ctx, proxy, inspector)
	})

	It("are not contested: OCM continues to apply the state of its lease, and nothing changes", func(ctx SpecContext) {
		versions := func() (versions []string) {
			for _, name := range []string{accounts, proxy, inspector} {
				subject := newAddOn(name)
				Expect(hub.Get(ctx, client.ObjectKeyFromObject(subject), subject)).To(Succeed())
				versions = append(versions, subject.ResourceVersion)
			}
			return versions
		}
		before, mark := versions(), len(entriesOf(box.Hub().AuditLog()))
		Eventually(func() int { return len(writes(mark, klusterlet, proxy)()) }).WithContext(ctx).WithTimeout(addOnTimeout).
			WithPolling(time.Second).Should(BeNumerically(">=", 3), "its lease is fresh")
		Expect(versions()).To(Equal(before))
		for _, name := range []string{accounts, proxy, inspector} {
			for _, who := range []string{manager, agent} {
				Expect(writes(mark, who, name)()).To(BeEmpty())
			}
		}
	})

	It("are released once it runs again, with one write for each verdict", func(ctx SpecContext) {
		start(ctx, accountsAgent)
		works(ctx)
		becomes(ctx, inspector, addonv1alpha1.ConditionDegraded, "", "")
		becomes(ctx, inspector, addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete)
		for name, times := range map[string]int{accounts: 0, proxy: 2, inspector: 2} {
			Expect(writes(judged, manager, name)()).To(HaveLen(times))
		}
		AddReportEntry("writes of cluster-proxy's status meanwhile, by addon-manager, addon-agent and the klusterlet", fmt.Sprint(
			len(writes(judged, manager, proxy)()), len(writes(judged, agent, proxy)()), len(writes(judged, klusterlet, proxy)())))
	})

	It("degrade what requires one that OCM knows nothing of, and release it", func(ctx SpecContext) {
		stop(ctx, proxyAgent)
		Expect(managed.Delete(ctx, leaseOf(ctx, hub, proxy))).To(Succeed())
		becomes(ctx, proxy, addonv1alpha1.ConditionAvailable, metav1.ConditionUnknown, addonv1alpha1.ReasonLeaseNotFound)
		dragsDown(ctx, inspector)
		Expect(conditionOf(ctx, hub, proxy, addonv1alpha1.ConditionDegraded)).To(Equal(metav1.Condition{}), "what it requires works")

		start(ctx, proxyAgent)
		works(ctx)
		becomes(ctx, inspector, addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete)
	})
})

// install creates the objects of an add-on's chart for the hub. Its manager serves neither metrics nor probes: all pods share the ports of
// this machine, and its agent needs the same port.
func install(ctx context.Context, hub client.Client, addons, name string) {
	GinkgoHelper()
	objects, err := manifests.Objects(os.DirFS(addons), "manifests/"+name+".yaml", nil)
	Expect(err).NotTo(HaveOccurred())
	Expect(objects).NotTo(BeEmpty())
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			Expect(err).NotTo(HaveOccurred())
			for _, container := range containers {
				args, _, err := unstructured.NestedStringSlice(container.(map[string]any), "args")
				Expect(err).NotTo(HaveOccurred())
				args = append(args, "--metrics-bind-address=0", "--health-probe-bind-address=0")
				Expect(unstructured.SetNestedStringSlice(container.(map[string]any), args, "args")).To(Succeed())
			}
			Expect(unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers")).To(Succeed())
		}
		// A resource definition of the chart is served with a delay, and both charts contain the same binding.
		Eventually(func() error { return client.IgnoreAlreadyExists(hub.Create(ctx, object)) }).
			WithTimeout(timeout).WithPolling(interval).Should(Succeed(), "%s %s", object.GetKind(), object.GetName())
	}
}

// leaseOf returns the lease by which a klusterlet checks an add-on of cluster1.
func leaseOf(ctx context.Context, hub client.Client, name string) *coordinationv1.Lease {
	GinkgoHelper()
	subject := newAddOn(name)
	Expect(hub.Get(ctx, client.ObjectKeyFromObject(subject), subject)).To(Succeed())
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: cmp.Or(subject.Status.Namespace, subject.Spec.InstallNamespace),
	}}
}

// runOut sets a lease's renewal time to an hour ago. A klusterlet waits for five minutes.
func runOut(ctx context.Context, cluster client.Client, lease *coordinationv1.Lease) {
	GinkgoHelper()
	Expect(environment.Edit(ctx, cluster, lease, func(l *coordinationv1.Lease) {
		renewed := metav1.NewMicroTime(l.Spec.RenewTime.Add(-time.Hour))
		l.Spec.RenewTime = &renewed
	})).To(Succeed())
}
