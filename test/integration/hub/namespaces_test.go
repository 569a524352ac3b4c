package hub

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// tenantOf returns a client of a user with all permissions in the cluster's namespace, and none elsewhere.
func tenantOf(ctx context.Context, cluster string) client.Client {
	GinkgoHelper()
	tenant, err := environment.Tenant(ctx, config, server, cluster)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error { // new permissions take effect with a delay
		return tenant.List(ctx, &kudo.InstanceList{}, client.InNamespace(cluster))
	}).WithContext(ctx).Should(Succeed())
	return tenant
}

var _ = Describe("A tenant of a cluster's namespace", func() {
	var (
		f       fleet
		cluster string
		tenant  client.Client
		version *kudo.OperatorVersion
	)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		tenant = tenantOf(ctx, cluster)
		version = f.push(ctx, "kafka", packages)
		f.define(ctx, "kafka", runs(version))
	})
	// secret creates a config in a new namespace with these labels.
	secret := func(ctx context.Context, labels map[string]string) *addonv1alpha1.AddOnDeploymentConfig {
		GinkgoHelper()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.nameOf("private"), Labels: labels}}
		Expect(server.Create(ctx, namespace)).To(Succeed())
		return f.variables(ctx, "config", namespace.Name, "TEXT", "secret")
	}
	naming := func(configs ...client.Object) *addonv1alpha1.ManagedClusterAddOn {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: f.nameOf("kafka")}}
		withConfigs(configs...)(addOn)
		return addOn
	}
	refused := func(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, config client.Object) {
		GinkgoHelper()
		Eventually(conditionOf(addOn, "Resolved")).WithContext(ctx).Should(
			Equal(seen{"False", "ConfigurationInvalid", refusalOf(cluster, config)}))
		Expect(exists(instanceOf(addOn))(Default, ctx)).To(BeFalse())
	}

	Describe("who may write everything in it, does not learn a value, or what exists, by naming", func() {
		BeforeEach(runWithoutWebhooks)

		DescribeTable("a config in", func(ctx SpecContext, labels map[string]string) {
			config := secret(ctx, labels)
			addOn := naming(config)
			Expect(tenant.Create(ctx, addOn)).To(Succeed())
			refused(ctx, addOn, config)
			Expect(server.Delete(ctx, config)).To(Succeed())
			Consistently(conditionOf(addOn, "Resolved")).WithContext(ctx).Should(HaveField("Message", refusalOf(cluster, config)))
		},
			Entry("a private namespace of the hub", nil),
			Entry("the namespace of a detached cluster", map[string]string{"open-cluster-management.io/cluster-name": "detached"}),
			Entry("one that an administrator has labelled before", map[string]string{
				"open-cluster-management.io/cluster-name": "detached", "kudo.dev/shared-configs": "true",
			}),
			Entry("one of another distribution of OCM", map[string]string{
				"cluster.open-cluster-management.io/managedCluster": "detached", "kudo.dev/shared-configs": "true",
			}),
		)

		It("a namespace that does not exist", func(ctx SpecContext) {
			nowhere := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: f.nameOf("nowhere"), Name: "config"}}
			addOn := naming(nowhere)
			Expect(tenant.Create(ctx, addOn)).To(Succeed())
			refused(ctx, addOn, nowhere)
		})

		It("a config in the status, as if OCM had resolved it", func(ctx SpecContext) {
			config := secret(ctx, nil)
			addOn := naming()
			Expect(tenant.Create(ctx, addOn)).To(Succeed())
			forge := func(a *addonv1alpha1.ManagedClusterAddOn) {
				a.Status.ConfigReferences = nil
				for _, c := range naming(version, config).Spec.Configs {
					a.Status.ConfigReferences = append(a.Status.ConfigReferences, upstream.ConfigReference{
						ConfigGroupResource: c.ConfigGroupResource, ConfigReferent: c.ConfigReferent,
						DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: c.ConfigReferent},
					})
				}
				a.Status.Conditions = append(a.Status.Conditions, metav1.Condition{
					Type: "Configured", Status: metav1.ConditionTrue, Reason: "Forged", LastTransitionTime: metav1.Now(),
				})
			}
			Expect(environment.EditStatus(ctx, tenant, addOn, forge)).To(MatchError(ContainSubstring("tandem-config-references")))
			By("writing it where the policy is missing")
			Expect(environment.EditStatus(ctx, server, addOn, forge)).To(Succeed())
			Eventually(conditionOf(addOn, "Resolved")).WithContext(ctx).Should(
				Equal(seen{"False", "ConfigurationInvalid", refusalOf(cluster, config)}))
			Consistently(func(g Gomega, ctx context.Context) string {
				instance := instanceOf(addOn)
				if !exists(instance)(g, ctx) {
					return ""
				}
				return specOf(instance)(g, ctx).Parameters["TEXT"]
			}).WithContext(ctx).Should(BeEmpty())
		})
	})

	Describe("may name a config in another namespace", func() {
		installed := func(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) {
			GinkgoHelper()
			Eventually(conditionOf(addOn, "Resolved")).WithContext(ctx).Should(Equal(seen{"True", "Resolved", "OperatorVersion " + packages + "/" + version.Name}))
			Eventually(specOf(instanceOf(addOn))).WithContext(ctx).Should(HaveField("Parameters", map[string]string{"TEXT": "secret"}))
		}

		It("while an administrator shares it by its label", func(ctx SpecContext) {
			runWithoutWebhooks()
			config := secret(ctx, nil)
			addOn := naming(config)
			Expect(tenant.Create(ctx, addOn)).To(Succeed())
			refused(ctx, addOn, config)
			label := func(value string) {
				GinkgoHelper()
				namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: config.Namespace}}
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"kudo.dev/shared-configs":`+value+`}}}`))
				Expect(server.Patch(ctx, namespace, patch)).To(Succeed())
			}
			label(`"true"`)
			installed(ctx, addOn)
			label("null")
			Eventually(conditionOf(addOn, "Resolved")).WithContext(ctx).Should(HaveField("Message", refusalOf(cluster, config)))
			Consistently(specOf(instanceOf(addOn))).WithContext(ctx).Should(HaveField("Parameters", map[string]string{"TEXT": "secret"}), "nothing restarts")
		})

		It("that the flag shares, also through admission", func(ctx SpecContext) {
			config := secret(ctx, nil)
			stopHub()
			_, stopHub = runHub(withWebhooks, func(_ *rest.Config, options *hub.Options) { options.ConfigNamespaces = []string{config.Namespace} })
			awaitWebhooks(ctx)
			addOn := naming(config)
			Expect(tenant.Create(ctx, addOn)).To(Succeed())
			installed(ctx, addOn)
		})

		It("that its definition has as the default, also through admission", func(ctx SpecContext) {
			awaitWebhooks(ctx)
			config := secret(ctx, nil)
			definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: f.nameOf("kafka")}}
			edit(ctx, definition, withDefault(config))
			addOn := naming(config)
			Eventually(func() error { return tenant.Create(ctx, addOn.DeepCopy(), client.DryRunAll) }).WithContext(ctx).Should(Succeed(),
				"the webhook reads the definition from a watch cache")
			Expect(tenant.Create(ctx, addOn)).To(Succeed())
			installed(ctx, addOn)
		})
	})

	It("gets the same answer from admission about every other config and package", func(ctx SpecContext) {
		awaitWebhooks(ctx)
		other := f.cluster(ctx, "other")
		private := secret(ctx, nil)
		refuse := func(message string, config client.Object) {
			GinkgoHelper()
			err := tenant.Create(ctx, naming(config), client.DryRunAll)
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(HaveSuffix(": spec.configs: " + message)))
		}
		Eventually(func() error { return tenant.Create(ctx, naming(private), client.DryRunAll) }).WithContext(ctx).ShouldNot(Succeed(),
			"the webhook reads the definition from a watch cache")
		for _, namespace := range []string{other, private.Namespace, f.nameOf("nowhere")} {
			config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: private.Name}}
			refuse(refusalOf(cluster, config), config)
			refuse(`OperatorVersion "x" is in namespace "`+namespace+`", which agents are not allowed to read: push it to `+packages+", or to "+cluster+
				" for this cluster only", &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}})
		}
	})
})

// refusalOf returns the message about a config that add-ons of the cluster must not use.
func refusalOf(cluster string, config client.Object) string {
	return "AddOnDeploymentConfig " + config.GetNamespace() + "/" + config.GetName() + ` cannot be used on managed cluster "` + cluster +
		`": copy it to namespace ` + cluster + ", or ask an administrator of the hub to share namespace " + config.GetNamespace() +
		" (flag --config-namespaces of addon-manager, or label kudo.dev/shared-configs=true; namespaces of clusters cannot be shared)"
}
