package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// newController returns a client of a controller with that user name, which may do everything.
func newController(user string) client.Client {
	GinkgoHelper()
	own := rest.CopyConfig(config)
	own.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	c, err := client.New(own, client.Options{Scheme: server.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return c
}

var _ = Describe("An add-on that a dependent protects", func() {
	var (
		f                fleet
		cluster          string
		user             client.Client
		definition       *addonv1alpha1.ClusterManagementAddOn
		zookeeper, kafka *addonv1alpha1.ManagedClusterAddOn
	)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		user, _ = newUser()
		awaitWebhooks(ctx)
		definition = f.define(ctx, "zookeeper", nil)
		f.define(ctx, "kafka", f.withNeeds(need{Name: "zookeeper", Removal: addonv1alpha1.RemovalProtect}))
		zookeeper, kafka = f.enable(ctx, cluster, "zookeeper"), f.enable(ctx, cluster, "kafka")
	})
	deletes := func(as client.Client, object client.Object, options ...client.DeleteOption) func(Gomega, context.Context) error {
		return func(_ Gomega, ctx context.Context) error {
			return as.Delete(ctx, object, append(options, client.DryRunAll)...)
		}
	}
	// awaitProtection waits until the webhook, which reads from a watch cache, knows the dependent.
	awaitProtection := func(ctx SpecContext, object client.Object) {
		GinkgoHelper()
		Eventually(deletes(user, object)).WithContext(ctx).Should(HaveOccurred())
	}

	It("is not deleted, and the refusal names the dependent and the way out", func(ctx SpecContext) {
		awaitProtection(ctx, zookeeper)
		err := user.Delete(ctx, zookeeper)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(fmt.Sprintf("add-on %q is protected on cluster %q by add-ons that require it there with removal: Protect: %s; "+
			"disable these first, or force the deletion with 'kubectl addon disable %s --cluster %s --force'", zookeeper.Name, cluster, kafka.Name, zookeeper.Name, cluster))))
		Expect(exists(zookeeper)(Default, ctx)).To(BeTrue())

		awaitProtection(ctx, definition)
		err = user.Delete(ctx, definition)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(fmt.Sprintf("add-on %q is protected on 1 cluster by add-ons that require it there with removal: Protect: %s; "+
			"OCM would delete it with its definition. Disable these first, or force the deletion with 'kubectl delete clustermanagementaddon %s --force'",
			zookeeper.Name, kafka.Name, zookeeper.Name))))

		By("the deletion of the dependent, which may take its time")
		edit(ctx, kafka, hold)
		Expect(user.Delete(ctx, kafka)).To(Succeed())
		Eventually(deletes(user, zookeeper)).WithContext(ctx).Should(Succeed())
		Eventually(deletes(user, definition)).WithContext(ctx).Should(Succeed())
		edit(ctx, kafka, release)
		Expect(user.Delete(ctx, zookeeper)).To(Succeed())
	})

	It("is deleted by force, and by the controllers of OCM and Kubernetes", func(ctx SpecContext) {
		for _, object := range []client.Object{zookeeper, definition} {
			awaitProtection(ctx, object)
			Expect(deletes(user, object, client.GracePeriodSeconds(1))(Default, ctx)).NotTo(Succeed())
			Expect(deletes(user, object, client.PropagationPolicy(metav1.DeletePropagationForeground))(Default, ctx)).NotTo(Succeed())
			for _, other := range []string{
				"system:serviceaccount:argocd:argocd-application-controller", "system:serviceaccount:kube-system:default",
				"system:serviceaccount:open-cluster-management-agent-addon:default",
			} {
				Expect(deletes(newController(other), object)(Default, ctx)).NotTo(Succeed(), other)
			}
			Expect(deletes(user, object, client.GracePeriodSeconds(0))(Default, ctx)).To(Succeed())
			for _, controller := range []string{
				"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccount:kube-system:namespace-controller",
				"system:kube-controller-manager", "system:serviceaccount:open-cluster-management-hub:addon-manager-controller-sa",
				"system:serviceaccount:hosted:registration-controller-sa", "system:serviceaccount:tandem-system:addon-manager",
			} {
				Expect(deletes(newController(controller), object)(Default, ctx)).To(Succeed(), controller)
			}
		}
		Expect(user.Delete(ctx, zookeeper, client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(exists(zookeeper)).WithContext(ctx).Should(BeFalse())
	})

	It("is deleted where another add-on serves the dependent, where the dependency does not exist, and from a detached cluster", func(ctx SpecContext) {
		base := f.define(ctx, "base", nil)
		f.define(ctx, "served", f.withNeeds(need{Name: "base", Alternatives: []string{"other"}, Removal: addonv1alpha1.RemovalProtect}))
		f.define(ctx, "elsewhere", f.withNeeds(need{Name: "base", Clusters: withLabel("gpu"), Removal: addonv1alpha1.RemovalProtect}))
		for _, name := range []string{"served", "elsewhere"} {
			f.enable(ctx, cluster, name)
		}
		installed := f.enable(ctx, cluster, "base")
		awaitProtection(ctx, installed)
		f.install(ctx, cluster, "other")
		Eventually(deletes(user, installed)).WithContext(ctx).Should(Succeed())
		Eventually(deletes(user, base)).WithContext(ctx).Should(Succeed())
		By("a label by which the dependency exists")
		describeCluster(ctx, cluster, map[string]string{"gpu": "true"}, "v1.37.2")
		awaitProtection(ctx, installed)
		By("the end of the cluster")
		Expect(server.Delete(ctx, managedCluster(cluster))).To(Succeed())
		Eventually(deletes(user, installed)).WithContext(ctx).Should(Succeed())
		Eventually(deletes(user, base)).WithContext(ctx).Should(Succeed())
	})

	It("stays while the other add-on has a version that the dependency excludes", func(ctx SpecContext) {
		f.define(ctx, "base", nil)
		other := f.define(ctx, "other", labelled("1.0.0"))
		f.define(ctx, "served", f.withNeeds(need{Name: "base", Alternatives: []string{"other"}, Version: ">=2", Removal: addonv1alpha1.RemovalProtect}))
		f.enable(ctx, cluster, "served")
		base := f.enable(ctx, cluster, "base")
		f.install(ctx, cluster, "other")
		awaitProtection(ctx, base)
		Consistently(deletes(user, base)).WithContext(ctx).WithTimeout(time.Second).Should(HaveOccurred())
		edit(ctx, other, labelled("2.0.0"))
		Eventually(deletes(user, base)).WithContext(ctx).Should(Succeed())
	})

	It("is deleted right after the dependent, which the cache still has", func(ctx SpecContext) {
		stopHub()
		runStaleHub("managedclusteraddons", revision(ctx))
		awaitWebhooks(ctx)
		for _, object := range []client.Object{zookeeper, definition} {
			Expect(deletes(user, object)(Default, ctx)).NotTo(Succeed())
		}
		Expect(user.Delete(ctx, kafka)).To(Succeed())
		for _, object := range []client.Object{zookeeper, definition} {
			Expect(deletes(user, object)(Default, ctx)).To(Succeed())
		}
	})

	It("is protected although addon-manager cannot learn its own user", func(ctx SpecContext) {
		stopHub()
		_, stopHub = runHub(withWebhooks, withTransport(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
			if strings.HasSuffix(request.URL.Path, "/selfsubjectreviews") {
				return nil, errors.New("refused by the test")
			}
			return next.RoundTrip(request)
		}))
		awaitWebhooks(ctx)
		awaitProtection(ctx, zookeeper)
		Expect(deletes(newController("system:serviceaccount:tandem-system:addon-manager"), zookeeper)(Default, ctx)).NotTo(Succeed())
		Expect(deletes(user, zookeeper, client.GracePeriodSeconds(0))(Default, ctx)).To(Succeed())
	})

	It("is declared only by a Required dependency, in the annotation, too", func(ctx SpecContext) {
		create := func(change func(*addonv1alpha1.ClusterManagementAddOn)) error {
			bad := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: f.nameOf("bad")}}
			bad.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
			change(bad)
			return user.Create(ctx, bad)
		}
		Expect(create(f.withNeeds(need{Name: "zookeeper", Type: addonv1alpha1.DependencyTypeOptional, Removal: addonv1alpha1.RemovalProtect}))).To(
			MatchError(ContainSubstring("only Required dependencies can have removal Protect")))
		Expect(create(f.withNeeds(need{Name: "zookeeper", Removal: "Never"}))).To(MatchError(ContainSubstring(`supported values: "Warn", "Protect"`)))
		Expect(create(withAnnotation(`[{"name":"zookeeper","removal":"Never"}]`))).To(MatchError(ContainSubstring("must be Warn or Protect")))
		f.define(ctx, "annotated", withAnnotation(fmt.Sprintf(`[{"name":%q,"removal":"Protect"}]`, f.nameOf("alone"))))
		f.enable(ctx, cluster, "annotated")
		awaitProtection(ctx, f.enable(ctx, cluster, "alone"))
	})
})
