package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// ocmTimeout is the timeout for OCM: its work agent checks applied objects every ten seconds.
const ocmTimeout = time.Minute

var _ = Describe("A hub with OCM", Label("ocm"), onSandbox("it is the sandbox that runs OCM"), Ordered, func() {
	var (
		box     *sandbox.Sandbox
		hub     client.Client
		options sandbox.Options
	)
	clusters := []string{"cluster1", "cluster2", "cluster3"}

	BeforeAll(func(ctx SpecContext) {
		programsOfOCM, err := sandbox.FindOCM(os.Getenv)
		Expect(err).NotTo(HaveOccurred())
		box = startSandbox(ctx, len(clusters), func(o *sandbox.Options) {
			o.OCM, o.DeliverAgents = programsOfOCM, true
			options = *o
		})
		hub, err = client.New(box.Hub().Config(), client.Options{Scheme: ocmScheme()})
		Expect(err).NotTo(HaveOccurred())
	})

	It("has registered its clusters from scratch, and found them available", func(ctx SpecContext) {
		for _, name := range clusters {
			var cluster clusterv1.ManagedCluster
			Expect(hub.Get(ctx, client.ObjectKey{Name: name}, &cluster)).To(Succeed())
			Expect(cluster.Spec.HubAcceptsClient).To(BeTrue())
			for _, condition := range []string{
				clusterv1.ManagedClusterConditionHubAccepted, clusterv1.ManagedClusterConditionJoined,
				clusterv1.ManagedClusterConditionAvailable,
			} {
				Expect(meta.IsStatusConditionTrue(cluster.Status.Conditions, condition)).To(BeTrue(), "%s of %s", condition, name)
			}
			Expect(cluster.Status.Allocatable).To(HaveKey(clusterv1.ResourceCPU), "what its nodes have")

			By("approving the certificate that " + name + " asked for as nobody in particular")
			var requests certificatesv1.CertificateSigningRequestList
			Expect(hub.List(ctx, &requests, client.MatchingLabels{clusterv1.ClusterNameLabelKey: name})).To(Succeed())
			own := slices.DeleteFunc(requests.Items, func(r certificatesv1.CertificateSigningRequest) bool {
				return r.Labels[upstream.AddonLabelKey] != "" // an add-on's
			})
			Expect(own).To(HaveLen(1))
			Expect(own[0].Spec.Username).To(Equal("system:serviceaccount:open-cluster-management:agent-registration-bootstrap"))
			Expect(own[0].Status.Conditions).To(ConsistOf(
				HaveField("Reason", "AutoApprovedByHubCSRApprovingController")))
		}
	})

	It("keeps OCM's resource definitions and OCM's conversion", func(ctx SpecContext) {
		conversion := fmt.Sprintf("https://127.0.0.1:%d/convert", find(box, "hub", "ocm-webhooks").Port)
		for _, resource := range []string{"clustermanagementaddons", "managedclusteraddons"} {
			var definition apiextensionsv1.CustomResourceDefinition
			key := client.ObjectKey{Name: resource + "." + upstream.GroupName}
			Expect(hub.Get(ctx, key, &definition)).To(Succeed())
			Expect(definition.Spec.Conversion.Webhook.ClientConfig.URL).To(HaveValue(Equal(conversion)))
			Expect(definition.ManagedFields).NotTo(ContainElement(HaveField("Manager", ContainSubstring("addon-manager"))))
			Expect(definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties).NotTo(HaveKey("dependencies"))
		}
	})

	It("delivers a ManifestWork, and takes away what it delivered", func(ctx SpecContext) {
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "note", Namespace: "cluster2"}}
		work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Object: note()}}}
		Expect(hub.Create(ctx, work)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(work), work)).To(Succeed())
			g.Expect(meta.IsStatusConditionTrue(work.Status.Conditions, workv1.WorkApplied)).To(BeTrue())
			g.Expect(meta.IsStatusConditionTrue(work.Status.Conditions, workv1.WorkAvailable)).To(BeTrue())
		}).WithContext(ctx).WithTimeout(ocmTimeout).WithPolling(interval).Should(Succeed())
		cluster, err := client.New(box.Cluster("cluster2").Config(), client.Options{})
		Expect(err).NotTo(HaveOccurred())
		delivered := note()
		Expect(cluster.Get(ctx, client.ObjectKeyFromObject(delivered), delivered)).To(Succeed())
		Expect(delivered.Data).To(Equal(note().Data))

		Expect(hub.Delete(ctx, work)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(cluster.Get(ctx, client.ObjectKeyFromObject(delivered), delivered))
		}).WithContext(ctx).WithTimeout(ocmTimeout).WithPolling(interval).Should(BeTrue())
	})

	It("has had Tandem's agents delivered, with identities that it approved itself", func(ctx SpecContext) {
		for _, name := range clusters {
			agent := find(box, name, "addon-agent")
			Expect(agent.PID).NotTo(BeZero())
			Eventually(statusOf).WithContext(ctx).WithArguments(hub, name, "tandem", addonv1alpha1.ConditionAvailable).
				WithTimeout(2*ocmTimeout).WithPolling(interval).Should(Equal(metav1.ConditionTrue), name)
		}
	})

	It("lets a delivered agent do on the hub what the manual says, and nothing else", func(ctx SpecContext) {
		expectNoMoreThanDocumented(ctx, box, "cluster1", "cluster2")
	})

	It("decides a Placement", func(ctx SpecContext) {
		Expect(hub.Create(ctx, bindingOfDefaultSet())).To(Succeed())
		two := placement("two", 2)
		Expect(hub.Create(ctx, two)).To(Succeed())
		Eventually(selectedClusters).WithContext(ctx).WithArguments(hub, two).WithTimeout(ocmTimeout).WithPolling(interval).
			Should(And(HaveLen(2), HaveEach(BeElementOf(clusters))))
	})

	It("installs an add-on by a Placement, and Tandem judges it by an annotation that survives OCM's conversion", func(ctx SpecContext) {
		everywhere := placement("everywhere", len(clusters))
		Expect(hub.Create(ctx, everywhere)).To(Succeed())
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{
			Name: "dashboard", Annotations: map[string]string{addonv1alpha1.AnnotationDependencies: dependsOn(base)},
		}}
		definition.Spec.InstallStrategy = upstream.InstallStrategy{
			Type: upstream.AddonInstallStrategyPlacements,
			Placements: []upstream.PlacementStrategy{{
				PlacementRef:    upstream.PlacementRef{Namespace: everywhere.Namespace, Name: everywhere.Name},
				RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All},
			}},
		}
		Expect(hub.Create(ctx, definition)).To(Succeed())
		degraded := func(status metav1.ConditionStatus, among ...string) {
			GinkgoHelper()
			for _, cluster := range among {
				Eventually(statusOf).WithContext(ctx).WithArguments(hub, cluster, "dashboard", addonv1alpha1.ConditionDegraded).
					WithTimeout(ocmTimeout).WithPolling(interval).Should(Equal(status), cluster)
			}
		}
		degraded(metav1.ConditionTrue, clusters...)

		By("writing the definition in v1beta1, as OCM's own controllers will")
		newer := &unstructured.Unstructured{}
		newer.SetGroupVersionKind(schema.GroupVersionKind{Group: upstream.GroupName, Version: "v1beta1", Kind: "ClusterManagementAddOn"})
		newer.SetName(definition.Name)
		Expect(environment.Edit(ctx, hub, newer, func(d *unstructured.Unstructured) { // its status is written concurrently
			d.SetLabels(map[string]string{"written": "in-v1beta1"})
		})).To(Succeed())

		By("making available on cluster1 what it requires")
		Expect(hub.Create(ctx, newAddOn(base))).To(Succeed())
		setBase(ctx, hub, metav1.ConditionTrue)
		degraded("", "cluster1") // released
		degraded(metav1.ConditionTrue, "cluster2", "cluster3")
	})

	It("keeps its data after it was stopped, and delivered agents continue to run plans", func(ctx SpecContext) {
		box.Stop()
		again, err := sandbox.Start(ctx, options)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(again.Stop)
		box = again
		hub, err = client.New(box.Hub().Config(), client.Options{Scheme: ocmScheme()})
		Expect(err).NotTo(HaveOccurred())
		last := link(depth - 1) // requires an add-on that is available on cluster1
		for _, object := range []client.Object{linkPackage(), linkDefinition(depth - 1), newAddOn(last)} {
			create(ctx, hub, object)
		}
		Eventually(statusOf).WithContext(ctx).WithArguments(hub, "cluster1", last, addonv1alpha1.ConditionAvailable).
			WithTimeout(2 * ocmTimeout).WithPolling(interval).Should(Equal(metav1.ConditionTrue))
	})
})

// ocmScheme returns a scheme with the kinds of a hub with OCM and Tandem.
func ocmScheme() *runtime.Scheme {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, addonv1alpha1.AddToScheme, kudo.AddToScheme, workv1.Install,
		clusterv1.Install, clusterv1beta1.Install, clusterv1beta2.Install,
	} {
		Expect(add(scheme)).To(Succeed())
	}
	return scheme
}

func note() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "note", Namespace: "default"},
		Data:       map[string]string{"written": "on the hub"},
	}
}

// bindingOfDefaultSet lets Placements select clusters of the default set.
func bindingOfDefaultSet() *clusterv1beta2.ManagedClusterSetBinding {
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "default"}}
	binding.Spec.ClusterSet = "default"
	return binding
}

func placement(name string, clusters int) *clusterv1beta1.Placement {
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	p.Spec.NumberOfClusters = ptr.To(int32(clusters))
	return p
}

// selectedClusters returns the clusters selected by a Placement.
func selectedClusters(ctx context.Context, hub client.Client, p *clusterv1beta1.Placement) ([]string, error) {
	var decisions clusterv1beta1.PlacementDecisionList
	err := hub.List(ctx, &decisions, client.InNamespace(p.Namespace), client.MatchingLabels{clusterv1beta1.PlacementLabel: p.Name})
	var chosen []string
	for _, decision := range decisions.Items {
		for _, cluster := range decision.Status.Decisions {
			chosen = append(chosen, cluster.ClusterName)
		}
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), err
}

// dependsOn returns the annotation of an add-on that requires another.
func dependsOn(name string) string {
	GinkgoHelper()
	return declares(addonv1alpha1.AddonDependency{Name: name, Type: addonv1alpha1.DependencyTypeRequired})
}

// declares returns the annotation of an add-on with these dependencies.
func declares(dependencies ...addonv1alpha1.AddonDependency) string {
	GinkgoHelper()
	value, err := json.Marshal(dependencies)
	Expect(err).NotTo(HaveOccurred())
	return string(value)
}

// statusOf returns the status of a condition of an add-on, or an empty string.
func statusOf(ctx context.Context, hub client.Client, cluster, name, condition string) (metav1.ConditionStatus, error) {
	var subject addonv1alpha1.ManagedClusterAddOn
	if err := hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, &subject); err != nil {
		return "", err
	}
	if found := meta.FindStatusCondition(subject.Status.Conditions, condition); found != nil {
		return found.Status, nil
	}
	return "", nil
}
