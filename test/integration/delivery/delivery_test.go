package delivery

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// manifestsOf returns the objects delivered to a cluster, by KIND NAME, for Eventually; none if there is no ManifestWork.
func manifestsOf(cluster string) func(Gomega, context.Context) map[string]*unstructured.Unstructured {
	return func(g Gomega, ctx context.Context) map[string]*unstructured.Unstructured {
		found := map[string]*unstructured.Unstructured{}
		delivered := workNamed(cluster, "addon-tandem-deploy-0")
		err := server.Get(ctx, client.ObjectKeyFromObject(delivered), delivered)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		for _, manifest := range delivered.Spec.Workload.Manifests {
			object := &unstructured.Unstructured{}
			g.Expect(object.UnmarshalJSON(manifest.Raw)).To(Succeed())
			found[object.GetKind()+" "+object.GetName()] = object
		}
		return found
	}
}

// agentOf returns the Deployment delivered to a cluster, for Eventually.
func agentOf(cluster string) func(Gomega, context.Context) *appsv1.Deployment {
	return func(g Gomega, ctx context.Context) *appsv1.Deployment {
		object, found := manifestsOf(cluster)(g, ctx)["Deployment addon-agent"]
		g.Expect(found).To(BeTrue(), "there is a Deployment")
		deployment := &appsv1.Deployment{}
		g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment)).To(Succeed())
		return deployment
	}
}

func imageOf(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image }

var _ = Describe("The delivery of addon-agent", func() {
	var cluster string
	BeforeEach(func(ctx SpecContext) { cluster = register(ctx) })

	// deliver enables the agent on the cluster with a placement's config, in a namespace of administrators; the image is set unless the config
	// names one.
	deliver := func(ctx context.Context, change func(*upstream.AddOnDeploymentConfigSpec)) (*addonv1alpha1.ManagedClusterAddOn, *addonv1alpha1.AddOnDeploymentConfig) {
		GinkgoHelper()
		config := deploymentConfig(ctx, administrators(ctx), func(c *upstream.AddOnDeploymentConfigSpec) {
			if change(c); len(c.CustomizedVariables) == 0 {
				c.CustomizedVariables = []upstream.CustomizedVariable{{Name: "Image", Value: image}}
			}
		})
		place(ctx, addonv1alpha1.AgentAddOn, config)
		tandem := enable(ctx, cluster, addonv1alpha1.AgentAddOn)
		rollOut(ctx, tandem)
		return tandem, config
	}

	It("installs everything that the agent requires, and leaves CRDs and objects of users behind", func(ctx SpecContext) {
		tandem, _ := deliver(ctx, func(c *upstream.AddOnDeploymentConfigSpec) { c.AgentInstallNamespace = "spoke" })
		Eventually(manifestsOf(cluster)).WithContext(ctx).Should(And(
			HaveKey("CustomResourceDefinition instances.kudo.dev"), HaveKey("CustomResourceDefinition operatorversions.kudo.dev"),
			HaveKey("Namespace spoke"), HaveKey("ServiceAccount addon-agent"), HaveKey("ClusterRoleBinding tandem:addon-agent"),
			HaveKey("ValidatingAdmissionPolicy tandem-mirror"), HaveKey("FlowSchema tandem-leases"), HaveKey("FlowSchema tandem-instances"), HaveKey("Deployment addon-agent"),
		))
		agent := agentOf(cluster)(Default, ctx)
		Expect(agent.Namespace).To(Equal("spoke"))
		Expect(imageOf(agent)).To(Equal(image))

		delivered := get(ctx, workNamed(cluster, "addon-tandem-deploy-0"))
		Expect(metav1.GetControllerOf(delivered).UID).To(Equal(tandem.UID))
		var left []string
		for _, rule := range delivered.Spec.DeleteOption.SelectivelyOrphan.OrphaningRules {
			left = append(left, rule.Resource+" "+rule.Name)
		}
		Expect(left).To(ConsistOf("customresourcedefinitions instances.kudo.dev", "customresourcedefinitions operatorcontents.kudo.dev",
			"customresourcedefinitions operatorversions.kudo.dev", "namespaces spoke"))

		reportApplied(ctx, delivered)
		Eventually(conditionOf(tandem, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"True", "AddonManifestApplied"}))
		current := get(ctx, tandem)
		Expect(current.Status.Namespace).To(Equal("spoke"), "where the klusterlet puts the Secret, and looks for the lease")
		Expect(current.Status.HealthCheck.Mode).To(Equal(upstream.HealthCheckModeLease))
		Expect(current.Status.SupportedConfigs).To(Equal([]upstream.ConfigGroupResource{deploymentConfigs}))
		group := "system:open-cluster-management:cluster:" + cluster + ":addon:tandem"
		Expect(current.Status.Registrations).To(Equal([]upstream.RegistrationConfig{{
			SignerName: "kubernetes.io/kube-apiserver-client",
			Subject: upstream.Subject{
				User: group + ":agent:addon-agent", Groups: []string{group, "system:open-cluster-management:addon:tandem"},
			},
		}}))
	})

	It("installs a pod that complies with the restricted Pod Security Standard, regardless of its config", func(ctx SpecContext) {
		namespace := "restricted-" + cluster
		deliver(ctx, func(c *upstream.AddOnDeploymentConfigSpec) {
			c.AgentInstallNamespace = namespace
			c.CustomizedVariables = []upstream.CustomizedVariable{{Name: "Image", Value: "quay.io/agent:2"}, {Name: "PipeImage", Value: "pipe:1"}}
			c.NodePlacement = &upstream.NodePlacement{
				NodeSelector: map[string]string{"disk": "ssd"}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			}
			c.ProxyConfig = upstream.ProxyConfig{HTTPSProxy: "https://proxy.example.com", NoProxy: "10.0.0.0/8"}
			c.Registries = []upstream.ImageMirror{{Source: "quay.io", Mirror: "mirror.example.com"}}
			c.ResourceRequirements = []upstream.ContainerResourceRequirements{{ContainerID: "*:*:*", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}}}
		})
		Eventually(manifestsOf(cluster)).WithContext(ctx).Should(HaveKey("Deployment addon-agent"))
		Expect(manifestsOf(cluster)(Default, ctx)["Namespace "+namespace].GetLabels()).To(BeEmpty(), "nor does it concern other pods")
		Expect(server.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		}})).To(Succeed())
		agent := agentOf(cluster)(Default, ctx)
		Expect(imageOf(agent)).To(Equal("mirror.example.com/agent:2"))
		pod := &corev1.Pod{ObjectMeta: agent.Spec.Template.ObjectMeta, Spec: agent.Spec.Template.Spec}
		pod.Namespace, pod.Name = namespace, agent.Name
		Expect(server.Create(ctx, pod.DeepCopy(), client.DryRunAll)).To(Succeed())
		pod.Spec.SecurityContext.RunAsNonRoot = ptr.To(false)
		Expect(server.Create(ctx, pod, client.DryRunAll)).To(MatchError(ContainSubstring(`violates PodSecurity "restricted:latest"`)),
			"it is Pod Security that has looked")
	})

	It("gives the agent rights in its cluster's namespace, which go with the add-on", func(ctx SpecContext) {
		tandem, _ := deliver(ctx, func(*upstream.AddOnDeploymentConfigSpec) {})
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "tandem:addon-agent"}}
		binding := &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta}
		Eventually(exists(binding)).WithContext(ctx).Should(BeTrue())
		for _, object := range []client.Object{get(ctx, role), get(ctx, binding)} {
			Expect(object.GetOwnerReferences()).To(ConsistOf(HaveField("UID", tandem.UID)))
		}
		as := rest.CopyConfig(started.Config)
		group := "system:open-cluster-management:cluster:" + cluster + ":addon:tandem"
		as.Impersonate = rest.ImpersonationConfig{UserName: group + ":agent:addon-agent", Groups: []string{group}}
		agent := newClient(as)
		Expect(agent.List(ctx, &kudo.InstanceList{}, client.InNamespace(cluster))).To(Succeed())
		Expect(agent.List(ctx, &kudo.InstanceList{}, client.InNamespace(register(ctx)))).NotTo(Succeed())
	})

	It("applies a change when OCM rolls it out, and not before", func(ctx SpecContext) {
		tandem, config := deliver(ctx, func(c *upstream.AddOnDeploymentConfigSpec) {
			c.CustomizedVariables = []upstream.CustomizedVariable{{Name: "Image", Value: "addon-agent:2"}}
		})
		Eventually(agentOf(cluster)).WithContext(ctx).Should(HaveField("Spec.Template.Spec.Containers", ContainElement(HaveField("Image", "addon-agent:2"))))
		before := progressionHashes(addonv1alpha1.AgentAddOn)(Default, ctx)

		say(ctx, config, "addon-agent:3")
		Eventually(progressionHashes(addonv1alpha1.AgentAddOn)).WithContext(ctx).ShouldNot(Equal(before))
		Consistently(func(g Gomega, ctx context.Context) string { return imageOf(agentOf(cluster)(g, ctx)) }).WithContext(ctx).
			Should(Equal("addon-agent:2"))

		rollOut(ctx, tandem)
		Eventually(func(g Gomega, ctx context.Context) string { return imageOf(agentOf(cluster)(g, ctx)) }).WithContext(ctx).
			Should(Equal("addon-agent:3"))
	})

	DescribeTable("says what is wrong with a config", func(ctx SpecContext, problem string, change func(*upstream.AddOnDeploymentConfigSpec)) {
		tandem, _ := deliver(ctx, change)
		Eventually(func(g Gomega, ctx context.Context) []metav1.Condition {
			current := &addonv1alpha1.ManagedClusterAddOn{}
			g.Expect(server.Get(ctx, client.ObjectKeyFromObject(tandem), current)).To(Succeed())
			return current.Status.Conditions
		}).WithContext(ctx).Should(ContainElement(And(HaveField("Type", "ManifestApplied"), HaveField("Status", metav1.ConditionFalse),
			HaveField("Message", ContainSubstring(problem)))))
	},
		Entry("an unknown variable", "unknown variable Imag of addon-agent (did you mean Image?)", func(c *upstream.AddOnDeploymentConfigSpec) {
			c.CustomizedVariables = []upstream.CustomizedVariable{{Name: "Imag", Value: "addon-agent:2"}}
		}),
		Entry("no image", "no image of addon-agent is configured", func(c *upstream.AddOnDeploymentConfigSpec) {
			c.CustomizedVariables = []upstream.CustomizedVariable{{Name: "PipeImage", Value: "busybox"}}
		}),
		Entry("an authority that is none", "proxyConfig.caBundle has no certificate", func(c *upstream.AddOnDeploymentConfigSpec) {
			c.ProxyConfig = upstream.ProxyConfig{HTTPSProxy: "https://proxy", CABundle: []byte("none")}
		}),
	)

	It("restricts an agent by variables, and never less than addon-manager's arguments", func(ctx SpecContext) {
		variables := func(c *upstream.AddOnDeploymentConfigSpec, more ...upstream.CustomizedVariable) {
			c.CustomizedVariables = append(more, upstream.CustomizedVariable{Name: "Image", Value: image})
		}
		arguments := func(g Gomega, ctx context.Context) []string {
			return slices.DeleteFunc(agentOf(cluster)(g, ctx).Spec.Template.Spec.Containers[0].Args, func(argument string) bool {
				return !strings.HasPrefix(argument, "--rights") && !strings.HasPrefix(argument, "--default-service-account")
			})
		}
		tandem, config := deliver(ctx, func(c *upstream.AddOnDeploymentConfigSpec) { variables(c) })
		Eventually(arguments).WithContext(ctx).Should(BeEmpty())
		configure := func(more ...upstream.CustomizedVariable) {
			GinkgoHelper()
			before := progressionHashes(addonv1alpha1.AgentAddOn)(Default, ctx)
			edit(ctx, config, func(c *addonv1alpha1.AddOnDeploymentConfig) { variables(&c.Spec, more...) })
			Eventually(progressionHashes(addonv1alpha1.AgentAddOn)).WithContext(ctx).ShouldNot(Equal(before))
			rollOut(ctx, tandem)
		}
		strict := []string{"--rights=declared", "--default-service-account=installer"}
		configure(upstream.CustomizedVariable{Name: "Rights", Value: "declared"}, upstream.CustomizedVariable{Name: "DefaultServiceAccount", Value: "installer"})
		Eventually(arguments).WithContext(ctx).Should(Equal(strict))

		By("with arguments for all agents")
		stopHub()
		runHub(started, func(_ *rest.Config, o *hub.Options) { o.AgentArguments = strict })
		configure()
		Eventually(arguments).WithContext(ctx).Should(Equal(strict))
		for _, looser := range []struct{ name, value, problem string }{
			{"Rights", "any", "variable Rights is any, but addon-manager requires declared for all agents"},
			{"DefaultServiceAccount", "admin/root", `variable DefaultServiceAccount is "admin/root", but addon-manager sets "installer" for all agents`},
		} {
			configure(upstream.CustomizedVariable{Name: looser.name, Value: looser.value})
			Eventually(func(ctx context.Context) []metav1.Condition { return get(ctx, tandem).Status.Conditions }).WithContext(ctx).
				Should(ContainElement(And(HaveField("Type", "ManifestApplied"), HaveField("Status", metav1.ConditionFalse),
					HaveField("Message", ContainSubstring(looser.problem)))))
			Expect(arguments(Default, ctx)).To(Equal(strict))
		}
	})

	DescribeTable("takes no config from the namespace of", func(ctx SpecContext, namespaceOf func(context.Context) string) {
		other := namespaceOf(ctx)
		config := deploymentConfig(ctx, other, func(c *upstream.AddOnDeploymentConfigSpec) {
			c.CustomizedVariables = []upstream.CustomizedVariable{{Name: "Image", Value: image}}
			c.ProxyConfig = upstream.ProxyConfig{HTTPSProxy: "https://user:secret@proxy.example.com"}
		})
		place(ctx, addonv1alpha1.AgentAddOn, config)
		tandem := enable(ctx, cluster, addonv1alpha1.AgentAddOn)
		rollOut(ctx, tandem)
		Eventually(func(g Gomega, ctx context.Context) []metav1.Condition {
			current := &addonv1alpha1.ManagedClusterAddOn{}
			g.Expect(server.Get(ctx, client.ObjectKeyFromObject(tandem), current)).To(Succeed())
			return current.Status.Conditions
		}).WithContext(ctx).Should(ContainElement(And(HaveField("Type", "ManifestApplied"), HaveField("Status", metav1.ConditionFalse),
			HaveField("Message", ContainSubstring(`config cannot be used on managed cluster "`+cluster+`"`)))))
		Consistently(exists(workNamed(cluster, "addon-tandem-deploy-0"))).WithContext(ctx).Should(BeFalse())
	},
		Entry("another cluster", register),
		Entry("a detached cluster", func(ctx context.Context) string {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				GenerateName: "detached-", Labels: map[string]string{"open-cluster-management.io/cluster-name": "detached"},
			}}
			Expect(server.Create(ctx, namespace)).To(Succeed())
			return namespace.Name
		}),
	)

	DescribeTable("is not configured by a tenant of the cluster's namespace", func(ctx SpecContext, change func(*upstream.AddOnDeploymentConfigSpec)) {
		tandem, _ := deliver(ctx, func(c *upstream.AddOnDeploymentConfigSpec) {
			c.CustomizedVariables = []upstream.CustomizedVariable{{Name: "Image", Value: image}, {Name: "Rights", Value: "declared"}}
		})
		Eventually(agentOf(cluster)).WithContext(ctx).ShouldNot(BeNil())
		delivered := get(ctx, workNamed(cluster, "addon-tandem-deploy-0")).Spec
		tenant := tenantOf(ctx, cluster)
		config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine"}}
		config.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: "Image", Value: image}}
		change(&config.Spec)
		Expect(tenant.Create(ctx, config)).To(Succeed())
		Expect(environment.Edit(ctx, tenant, tandem, withConfig(config))).To(Succeed())
		configure(ctx, tandem, reference(config))

		Eventually(applicationOf(tandem)).WithContext(ctx).Should(And(HaveField("Status", metav1.ConditionFalse),
			HaveField("Message", And(ContainSubstring("AddOnDeploymentConfig "+cluster+"/mine may not configure addon-agent"),
				ContainSubstring("--agent-configs="+cluster+"/mine")))))
		Consistently(func(ctx context.Context) any { return get(ctx, workNamed(cluster, "addon-tandem-deploy-0")).Spec }).
			WithContext(ctx).Should(Equal(delivered))

		By("a status that the tenant writes, too")
		Expect(environment.EditStatus(ctx, tenant, tandem, func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.Namespace = "theirs" })).To(Succeed())
		Eventually(func(ctx context.Context) string { return get(ctx, tandem).Status.Namespace }).WithContext(ctx).
			Should(Equal("tandem-system"), "where the klusterlet puts the Secret")
		Expect(server.Delete(ctx, tandem)).To(Succeed())
		Eventually(exists(tandem)).WithContext(ctx).Should(BeFalse(), "the removal does not wait for the config")
	},
		Entry("by an image", func(c *upstream.AddOnDeploymentConfigSpec) { c.CustomizedVariables[0].Value = "evil.example/agent:1" }),
		Entry("by an image of Pipe tasks", func(c *upstream.AddOnDeploymentConfigSpec) {
			c.CustomizedVariables = append(c.CustomizedVariables, upstream.CustomizedVariable{Name: "PipeImage", Value: "evil.example/pipe:1"})
		}),
		Entry("by a registry", func(c *upstream.AddOnDeploymentConfigSpec) {
			c.Registries = []upstream.ImageMirror{{Source: "registry.example", Mirror: "evil.example"}}
		}),
		Entry("by a namespace of their own", func(c *upstream.AddOnDeploymentConfigSpec) { c.AgentInstallNamespace = "theirs" }),
		Entry("by nodes of their own", func(c *upstream.AddOnDeploymentConfigSpec) {
			c.NodePlacement = &upstream.NodePlacement{NodeSelector: map[string]string{"kubernetes.io/hostname": "theirs"}}
		}),
		Entry("by a proxy that presents itself as the hub", func(c *upstream.AddOnDeploymentConfigSpec) {
			c.ProxyConfig = upstream.ProxyConfig{HTTPSProxy: "https://evil.example", CABundle: started.Config.CAData}
		}),
		Entry("by omitting what restricts it", func(*upstream.AddOnDeploymentConfigSpec) {}),
	)

	It("is configured by what administrators allow", func(ctx SpecContext) {
		tandem, config := deliver(ctx, func(*upstream.AddOnDeploymentConfigSpec) {})
		images := func(g Gomega, ctx context.Context) string { return imageOf(agentOf(cluster)(g, ctx)) }
		Eventually(images).WithContext(ctx).Should(Equal(image))
		own := func(namespace, image string) *addonv1alpha1.AddOnDeploymentConfig {
			return deploymentConfig(ctx, namespace, func(c *upstream.AddOnDeploymentConfigSpec) {
				c.CustomizedVariables = []upstream.CustomizedVariable{{Name: "Image", Value: image}}
			})
		}
		use := func(config *addonv1alpha1.AddOnDeploymentConfig) {
			edit(ctx, tandem, withConfig(config))
			configure(ctx, tandem, reference(config))
		}
		refused := func(config *addonv1alpha1.AddOnDeploymentConfig) {
			GinkgoHelper()
			use(config)
			Eventually(applicationOf(tandem)).WithContext(ctx).Should(HaveField("Message",
				ContainSubstring("AddOnDeploymentConfig "+config.Namespace+"/"+config.Name+" may not configure addon-agent")))
			Expect(images(Default, ctx)).To(Equal(image))
		}
		elsewhere, here := own(administrators(ctx), "elsewhere:1"), own(cluster, "here:1")
		refused(elsewhere)
		refused(here)
		place(ctx, addonv1alpha1.AgentAddOn, config, here)
		refused(here)

		By("naming it in the definition, outside of the clusters' namespaces")
		place(ctx, addonv1alpha1.AgentAddOn, config, elsewhere)
		use(elsewhere)
		Eventually(images).WithContext(ctx).Should(Equal("elsewhere:1"))

		By("--agent-configs")
		stopHub()
		runHub(started, func(_ *rest.Config, o *hub.Options) { o.AgentConfigs = []string{"cluster-*/config"} })
		use(here)
		Eventually(images).WithContext(ctx).Should(Equal("here:1"))
	})

	It("keeps an agent unchanged after an upgrade of addon-manager until its rollout", func(ctx SpecContext) {
		tandem, config := deliver(ctx, func(c *upstream.AddOnDeploymentConfigSpec) { c.AgentInstallNamespace = "spoke" })
		Eventually(exists(workNamed(cluster, "addon-tandem-deploy-0"))).WithContext(ctx).Should(BeTrue())
		specOf := func(ctx context.Context) string { // the server escapes the manifests in one way or another
			work := get(ctx, workNamed(cluster, "addon-tandem-deploy-0"))
			encoded, err := json.Marshal(work.Spec)
			Expect(err).NotTo(HaveOccurred())
			return fmt.Sprint(work.Generation, " ", string(encoded))
		}
		before := specOf(ctx)

		By("a release: another addon-manager, and another config")
		stopHub()
		say(ctx, config, image+"-next")
		hashes := progressionHashes(addonv1alpha1.AgentAddOn)(Default, ctx)
		runHub(started)
		Eventually(progressionHashes(addonv1alpha1.AgentAddOn)).WithContext(ctx).ShouldNot(Equal(hashes))
		Consistently(specOf).WithContext(ctx).Should(Equal(before))

		rollOut(ctx, tandem)
		Eventually(func(g Gomega, ctx context.Context) string { return imageOf(agentOf(cluster)(g, ctx)) }).WithContext(ctx).
			Should(Equal(image + "-next"))
	})

	It("approves what a klusterlet asks for its own agent, and nothing else", func(ctx SpecContext) {
		tandem, _ := deliver(ctx, func(*upstream.AddOnDeploymentConfigSpec) {})
		Eventually(registrationsOf(tandem)).WithContext(ctx).ShouldNot(BeEmpty())
		other := register(ctx)
		good := askAs(ctx, cluster, cluster)
		Eventually(isApproved(good)).WithContext(ctx).Should(BeTrue())
		for _, bad := range []*certificatesv1.CertificateSigningRequest{
			askAs(ctx, other, cluster), askAs(ctx, cluster, cluster, "system:open-cluster-management:cluster:"+other+":addon:tandem"),
		} {
			Consistently(isApproved(bad)).WithContext(ctx).Should(BeFalse())
		}
	})

	It("approves a request of a klusterlet whose approval the API server has rejected before", func(ctx SpecContext) {
		tandem, _ := deliver(ctx, func(*upstream.AddOnDeploymentConfigSpec) {})
		Eventually(registrationsOf(tandem)).WithContext(ctx).ShouldNot(BeEmpty())
		approve := admissionregistrationv1.Rule{APIGroups: []string{certificatesv1.GroupName}, APIVersions: []string{"*"},
			Resources: []string{"certificatesigningrequests/approval"}}
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: cluster + "-no-approvals"}}
		policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update}, Rule: approve,
			},
		}}}
		policy.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "!object.metadata.name.startsWith('addon-" + cluster + "-')"}}
		binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}
		binding.Spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		}
		for _, object := range []client.Object{policy, binding} {
			Expect(server.Create(ctx, object)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(server.Delete(ctx, object))).To(Succeed()) })
		}
		refused := askAs(ctx, register(ctx), cluster) // which addon-manager never approves
		Eventually(func(ctx context.Context) error {
			return server.SubResource("approval").Update(ctx, refused, client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(ContainSubstring(policy.Name)))

		request := askAs(ctx, cluster, cluster)
		Consistently(isApproved(request)).WithContext(ctx).Should(BeFalse())
		Expect(server.Delete(ctx, binding)).To(Succeed())
		Eventually(isApproved(request)).WithContext(ctx).Should(BeTrue())
	})

	It("keeps the agent until everything that it runs is gone", func(ctx SpecContext) {
		tandem, _ := deliver(ctx, func(*upstream.AddOnDeploymentConfigSpec) {})
		Eventually(finalizersOf(tandem)).WithContext(ctx).Should(ContainElement(addonv1alpha1.FinalizerAgent))
		version := push(ctx, "kafka")
		kafka := enable(ctx, cluster, define(ctx, "kafka", version).Name)
		users := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "users"}}
		users.Spec.OperatorVersion.Namespace, users.Spec.OperatorVersion.Name = version.Namespace, version.Name
		Expect(server.Create(ctx, users)).To(Succeed())
		awaitFinalizer(ctx, instanceOf(kafka))
		awaitFinalizer(ctx, users)

		Expect(server.Delete(ctx, tandem)).To(Succeed())
		Eventually(func(g Gomega, ctx context.Context) []metav1.Condition {
			current := &addonv1alpha1.ManagedClusterAddOn{}
			g.Expect(server.Get(ctx, client.ObjectKeyFromObject(tandem), current)).To(Succeed())
			return current.Status.Conditions
		}).WithContext(ctx).Should(ContainElement(And(HaveField("Type", "AddOnsRemaining"),
			HaveField("Message", HaveSuffix("disable or delete these first: add-on "+kafka.Name+", Instance users")))))

		Expect(server.Delete(ctx, kafka)).To(Succeed())
		reportRemoved(ctx, instanceOf(kafka))
		Eventually(exists(kafka)).WithContext(ctx).Should(BeFalse())
		Consistently(exists(tandem)).WithContext(ctx).Should(BeTrue())
		Expect(server.Delete(ctx, users)).To(Succeed())
		reportRemoved(ctx, users)
		Eventually(exists(tandem)).WithContext(ctx).Should(BeFalse())
	})

	It("keeps the agent for an add-on without an Instance, although the first view of definitions is stale", func(ctx SpecContext) {
		tandem, _ := deliver(ctx, func(*upstream.AddOnDeploymentConfigSpec) {})
		Eventually(finalizersOf(tandem)).WithContext(ctx).Should(ContainElement(addonv1alpha1.FinalizerAgent))
		stopHub()
		var before addonv1alpha1.ClusterManagementAddOnList
		Expect(server.List(ctx, &before, client.Limit(1))).To(Succeed())
		version := push(ctx, "kafka")
		definition := define(ctx, "kafka", version)
		place(ctx, definition.Name, version)
		kafka := enable(ctx, cluster, definition.Name)
		Expect(server.Delete(ctx, tandem)).To(Succeed())

		current := make(chan struct{})
		runHub(started, func(config *rest.Config, _ *hub.Options) {
			environment.MakeStale(config, "clustermanagementaddons", before.ResourceVersion, current)
		})
		Eventually(conditionOf(tandem, "AddOnsRemaining")).WithContext(ctx).Should(Equal(seen{"True", "WaitingForRemoval"}))
		close(current)
		Expect(server.Delete(ctx, kafka)).To(Succeed())
		Eventually(exists(tandem)).WithContext(ctx).Should(BeFalse())
	})

	It("releases the agent once an add-on without an Instance is no longer plan-based", func(ctx SpecContext) {
		tandem, _ := deliver(ctx, func(*upstream.AddOnDeploymentConfigSpec) {})
		Eventually(finalizersOf(tandem)).WithContext(ctx).Should(ContainElement(addonv1alpha1.FinalizerAgent))
		version := push(ctx, "kafka")
		definition := define(ctx, "kafka", version)
		place(ctx, definition.Name, version)
		kafka := enable(ctx, cluster, definition.Name)
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(seen{"False", "WaitingForConfiguration"}))
		Expect(server.Delete(ctx, tandem)).To(Succeed())
		Eventually(conditionOf(tandem, "AddOnsRemaining")).WithContext(ctx).Should(Equal(seen{"True", "WaitingForRemoval"}))
		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.SupportedConfigs = []upstream.ConfigMeta{{ConfigGroupResource: deploymentConfigs}}
		})
		Eventually(exists(tandem)).WithContext(ctx).Should(BeFalse())
	})

	It("keeps nothing on a cluster that is detached", func(ctx SpecContext) {
		tandem, _ := deliver(ctx, func(*upstream.AddOnDeploymentConfigSpec) {})
		version := push(ctx, "kafka")
		kafka := enable(ctx, cluster, define(ctx, "kafka", version).Name)
		awaitFinalizer(ctx, instanceOf(kafka))
		Expect(server.Delete(ctx, tandem)).To(Succeed())
		Eventually(conditionOf(tandem, "AddOnsRemaining")).WithContext(ctx).Should(Equal(seen{"True", "WaitingForRemoval"}))
		Expect(server.Delete(ctx, managedCluster(cluster))).To(Succeed())
		Eventually(exists(tandem)).WithContext(ctx).Should(BeFalse())
	})

	It("is quiet at rest, and after a restart", func(ctx SpecContext) {
		tandem, _ := deliver(ctx, func(*upstream.AddOnDeploymentConfigSpec) {})
		Eventually(exists(workNamed(cluster, "addon-tandem-deploy-0"))).WithContext(ctx).Should(BeTrue())
		reportApplied(ctx, workNamed(cluster, "addon-tandem-deploy-0"))
		Eventually(conditionOf(tandem, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"True", "AddonManifestApplied"}))
		Eventually(exists(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "tandem:addon-agent"}})).
			WithContext(ctx).Should(BeTrue())
		awaitNoWrites(ctx, cluster)

		stopHub()
		again, _ := runHub(started)
		request := askAs(ctx, cluster, cluster)
		Eventually(isApproved(request)).WithContext(ctx).Should(BeTrue(), "it works again")
		Consistently(in(cluster, again)).Should(BeEmpty())
	})
})

var _ = Describe("A hub without OCM", func() {
	It("delivers nothing, and runs add-ons as ever", func(ctx SpecContext) {
		stopHub()
		plain, err := environment.Start()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(plain.Stop)
		for _, folder := range []string{"hub", "admission"} {
			Expect(plain.Apply(ctx, folder, manifests.ClusterParameters{})).To(Succeed())
		}
		withOCM := server
		DeferCleanup(func() { server = withOCM })
		server = newClient(plain.Config)
		runHub(plain)

		cluster := register(ctx)
		kafka := enable(ctx, cluster, define(ctx, "kafka", push(ctx, "kafka")).Name)
		Eventually(exists(instanceOf(kafka))).WithContext(ctx).Should(BeTrue())
		Expect(get(ctx, kafka).Status.SupportedConfigs).To(BeEmpty())
	})
})

// administrators creates a namespace in which only administrators write.
func administrators(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "administrators-"}}
	Expect(server.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}

// tenantOf returns a client of a user with all permissions in the cluster's namespace.
func tenantOf(ctx context.Context, cluster string) client.Client {
	GinkgoHelper()
	tenant, err := environment.Tenant(ctx, started.Config, server, cluster)
	Expect(err).NotTo(HaveOccurred())
	return tenant
}

// withConfig returns a change of an add-on to the config.
func withConfig(config *addonv1alpha1.AddOnDeploymentConfig) func(*addonv1alpha1.ManagedClusterAddOn) {
	return func(a *addonv1alpha1.ManagedClusterAddOn) {
		a.Spec.Configs = []upstream.AddOnConfig{{ConfigGroupResource: deploymentConfigs, ConfigReferent: referent(config)}}
	}
}

// reference returns the reference by which OCM desires the config. addon-framework sets its hash.
func reference(config *addonv1alpha1.AddOnDeploymentConfig) upstream.InstallConfigReference {
	return upstream.InstallConfigReference{
		ConfigGroupResource: deploymentConfigs, DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: referent(config)},
	}
}

// applicationOf returns condition ManifestApplied of an add-on, for Eventually.
func applicationOf(addOn *addonv1alpha1.ManagedClusterAddOn) func(Gomega, context.Context) *metav1.Condition {
	return func(g Gomega, ctx context.Context) *metav1.Condition {
		current := &addonv1alpha1.ManagedClusterAddOn{}
		g.Expect(server.Get(ctx, client.ObjectKeyFromObject(addOn), current)).To(Succeed())
		return meta.FindStatusCondition(current.Status.Conditions, "ManifestApplied")
	}
}

// askAs requests the certificate of a cluster's agent as the klusterlet of a cluster, with additional groups.
func askAs(ctx context.Context, klusterlet, cluster string, more ...string) *certificatesv1.CertificateSigningRequest {
	GinkgoHelper()
	as := rest.CopyConfig(started.Config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "system:open-cluster-management:" + klusterlet + ":agent", Groups: []string{"system:masters", "system:authenticated"},
	}
	group := "system:open-cluster-management:cluster:" + cluster + ":addon:tandem"
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	Expect(err).NotTo(HaveOccurred())
	der, err := x509.CreateCertificateRequest(cryptorand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName: group + ":agent:addon-agent", Organization: append(more, group, "system:open-cluster-management:addon:tandem"),
	}}, key)
	Expect(err).NotTo(HaveOccurred())
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "addon-" + cluster + "-tandem-", Labels: map[string]string{
			"open-cluster-management.io/addon-name": "tandem", "open-cluster-management.io/cluster-name": cluster,
		}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{
				certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
			},
		},
	}
	Expect(newClient(as).Create(ctx, request)).To(Succeed())
	return request
}

// registrationsOf returns the registrations of an add-on, for Eventually. A klusterlet requests a certificate once there is one.
func registrationsOf(addOn *addonv1alpha1.ManagedClusterAddOn) func(context.Context) []upstream.RegistrationConfig {
	return func(ctx context.Context) []upstream.RegistrationConfig { return get(ctx, addOn).Status.Registrations }
}

// isApproved reports whether a request is approved, for Eventually.
func isApproved(request *certificatesv1.CertificateSigningRequest) func(Gomega, context.Context) bool {
	return func(g Gomega, ctx context.Context) bool {
		current := &certificatesv1.CertificateSigningRequest{}
		g.Expect(server.Get(ctx, client.ObjectKeyFromObject(request), current)).To(Succeed())
		for _, c := range current.Status.Conditions {
			if c.Type == certificatesv1.CertificateApproved {
				return true
			}
		}
		return false
	}
}
