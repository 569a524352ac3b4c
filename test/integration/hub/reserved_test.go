package hub

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("A reserved install namespace", func() {
	const refusal = `nothing is installed in namespace "kube-system", which is reserved`
	var (
		f       fleet
		cluster string
		version *kudo.OperatorVersion
	)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		version = f.push(ctx, "store", packages)
		f.define(ctx, "store", runs(version))
	})
	instance := func() *kudo.Instance {
		i := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine"}}
		i.Spec.OperatorVersion = corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name}
		i.Spec.InstallNamespace = "kube-system"
		return i
	}
	into := func(namespace string) func(*addonv1alpha1.ManagedClusterAddOn) {
		return func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.InstallNamespace = namespace }
	}
	refused := And(HaveField("Status", "False"), HaveField("Reason", kudo.ReasonNamespaceNotAllowed),
		HaveField("Message", And(HavePrefix(refusal), HaveSuffix("(flag --allow-namespaces of addon-manager and of addon-agent allows it)"))))

	It("is refused by admission", func(ctx SpecContext) {
		user, _ := newUser()
		awaitWebhooks(ctx)
		Expect(user.Create(ctx, instance())).To(MatchError(And(ContainSubstring("denied the request: "), ContainSubstring(refusal))))
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: f.nameOf("store")}}
		into("kube-system")(addOn)
		Expect(user.Create(ctx, addOn)).To(MatchError(And(ContainSubstring("spec.installNamespace: "), ContainSubstring(refusal))))

		By("trying an add-on of a stack, whose definition does not exist yet")
		ofStack := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: f.nameOf("later"), Labels: map[string]string{kudo.LabelStack: "shop"},
		}}
		into("kube-system")(ofStack)
		Expect(user.Create(ctx, ofStack, client.DryRunAll)).To(MatchError(ContainSubstring(refusal)))

		By("enabling add-ons that Tandem does not run, and its own agent")
		f.define(ctx, "other", nil)
		other := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: f.nameOf("other")}}
		into("kube-system")(other)
		agent := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: addonv1alpha1.AgentAddOn}}
		into("tandem-system")(agent)
		Expect(user.Create(ctx, other)).To(Succeed())
		Expect(user.Create(ctx, agent)).To(Succeed())
	})

	It("is not resolved without admission, unless something runs there", func(ctx SpecContext) {
		runWithoutWebhooks()
		mine := instance()
		Expect(server.Create(ctx, mine)).To(Succeed())
		Eventually(resolvedOf(mine)).WithContext(ctx).Should(refused)

		By("naming it in an add-on, and in its AddOnDeploymentConfig")
		addOn := f.enable(ctx, cluster, "store", into("kube-system"))
		Eventually(conditionOf(addOn, "Resolved")).WithContext(ctx).Should(refused)
		Expect(exists(instanceOf(addOn))(Default, ctx)).To(BeFalse())
		config := f.variables(ctx, "config", cluster)
		config.Spec.AgentInstallNamespace = "kube-system"
		Expect(server.Update(ctx, config)).To(Succeed())
		f.define(ctx, "configured", runs(version))
		addOn = f.enable(ctx, cluster, "configured", withConfigs(config))
		Eventually(conditionOf(addOn, "Resolved")).WithContext(ctx).Should(refused)
		Expect(exists(instanceOf(addOn))(Default, ctx)).To(BeFalse())

		By("running an Instance there, as an earlier release did")
		Expect(environment.EditStatus(ctx, server, mine, func(i *kudo.Instance) {
			i.Status.Execution = &kudo.Execution{UID: "x", Plan: kudo.DeployPlan, OperatorVersion: corev1.ObjectReference{
				Namespace: version.Namespace, Name: version.Name, UID: version.UID}}
		})).To(Succeed())
		edit(ctx, mine, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"TEXT": "b"} })
		Eventually(resolvedOf(mine)).WithContext(ctx).Should(HaveField("Status", "True"))
	})

	It("is used if a flag allows it", func(ctx SpecContext) {
		stopHub()
		_, stopHub = runHub(withWebhooks, func(_ *rest.Config, o *hub.Options) { o.AllowedNamespaces = []string{"kube-system"} })
		user, _ := newUser()
		awaitWebhooks(ctx)
		mine := instance()
		Expect(user.Create(ctx, mine)).To(Succeed())
		Eventually(resolvedOf(mine)).WithContext(ctx).Should(HaveField("Status", "True"))
		addOn := f.enable(ctx, cluster, "store", into("kube-system"))
		Eventually(exists(instanceOf(addOn))).WithContext(ctx).Should(BeTrue())
	})
})
