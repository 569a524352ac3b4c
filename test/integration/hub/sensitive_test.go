package hub

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/identity"
)

var _ = Describe("A sensitive parameter", func() {
	const value = "hunter2-of-the-hub"
	var (
		f               fleet
		cluster         string
		version, parent *kudo.OperatorVersion
	)
	hidden := kudo.Parameter{Name: "PASSWORD", Sensitive: ptrTo(true)}
	from := []kudo.ParameterFrom{{Name: "PASSWORD", SecretKeyRef: kudo.SecretKeyRef{Name: "db", Key: "password"}}}

	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		base := f.push(ctx, "base", packages)
		version = &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: f.nameOf("db") + "-1.0.0"}, Spec: base.Spec}
		version.Spec.Operator.Name = f.nameOf("db")
		version.Spec.Parameters = append(version.Spec.Parameters, hidden)
		Expect(server.Create(ctx, version)).To(Succeed())
		parent = parentOf(version)
		parent.Spec.Parameters = []kudo.Parameter{hidden}
		parent.Spec.Templates = map[string]string{"db.yaml": "PASSWORD: {{ .Params.PASSWORD }}\n"}
		parent.Spec.Tasks[0].Spec.ParameterFile = "db.yaml"
		Expect(server.Create(ctx, parent)).To(Succeed())
	})
	instance := func(of *kudo.OperatorVersion, change func(*kudo.InstanceSpec)) *kudo.Instance {
		i := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine"}}
		i.Spec.OperatorVersion = corev1.ObjectReference{Namespace: of.Namespace, Name: of.Name}
		change(&i.Spec)
		return i
	}
	plain := func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"PASSWORD": value} }
	byReference := func(s *kudo.InstanceSpec) { s.ParametersFrom = from }

	It("is refused by admission as a plain value", func(ctx SpecContext) {
		user, _ := newUser()
		awaitWebhooks(ctx)
		Expect(user.Create(ctx, instance(version, plain))).To(MatchError(And(ContainSubstring("denied the request: "),
			ContainSubstring(`parameter "PASSWORD": sensitive: a value in spec.parameters is rejected`), Not(ContainSubstring(value)))))
		broken := version.DeepCopy()
		broken.ObjectMeta = metav1.ObjectMeta{Namespace: packages, Name: f.nameOf("broken") + "-1.0.0"}
		broken.Spec.Parameters[2].Default = ptrTo("public")
		Expect(user.Create(ctx, broken)).To(MatchError(ContainSubstring(`parameter "PASSWORD" is sensitive and cannot have a default`)))

		By("giving it by reference")
		mine := instance(version, byReference)
		Expect(user.Create(ctx, mine)).To(Succeed())
		Eventually(resolvedOf(mine)).WithContext(ctx).Should(HaveField("Status", "True"))
		Expect(started.Traces(ctx, value)).To(BeEmpty())
	})

	It("is not resolved as a plain value without admission", func(ctx SpecContext) {
		runWithoutWebhooks()
		mine := instance(version, plain)
		Expect(server.Create(ctx, mine)).To(Succeed())
		Eventually(resolvedOf(mine)).WithContext(ctx).Should(And(HaveField("Reason", kudo.ReasonParametersInvalid),
			HaveField("Message", And(ContainSubstring(`parameter "PASSWORD": sensitive`), Not(ContainSubstring(value))))))
	})

	It("of an add-on is a reference in its configuration", func(ctx SpecContext) {
		runWithoutWebhooks()
		config := f.variables(ctx, "config", cluster, "PASSWORD", "no-reference-"+value)
		f.define(ctx, "db", runs(version))
		addOn := f.enable(ctx, cluster, "db", withConfigs(config))
		Eventually(conditionOf(addOn, "Resolved")).WithContext(ctx).Should(And(HaveField("Reason", addonv1alpha1.ReasonConfigurationInvalid),
			HaveField("Message", And(ContainSubstring("variable PASSWORD: sensitive: must be secret:NAME/KEY"), Not(ContainSubstring(value))))))
		Expect(exists(instanceOf(addOn))(Default, ctx)).To(BeFalse())

		config.Spec.CustomizedVariables[0].Value = "secret:db/password"
		Expect(server.Update(ctx, config)).To(Succeed())
		Eventually(specOf(instanceOf(addOn))).WithContext(ctx).Should(And(HaveField("ParametersFrom", from), HaveField("Parameters", BeEmpty())))
		By("removing what a user has added")
		edit(ctx, instanceOf(addOn), func(i *kudo.Instance) {
			i.Spec.ParametersFrom = append(i.Spec.ParametersFrom, kudo.ParameterFrom{Name: "TEXT", SecretKeyRef: from[0].SecretKeyRef})
		})
		Eventually(specOf(instanceOf(addOn))).WithContext(ctx).Should(HaveField("ParametersFrom", from))
	})

	It("is not passed on if an agent reports a value, and the message names the reference", func(ctx SpecContext) {
		runWithoutWebhooks()
		Expect(started.Apply(ctx, "cluster", manifests.ClusterParameters{Cluster: cluster})).To(Succeed())
		impersonated := rest.CopyConfig(config)
		impersonated.Impersonate = rest.ImpersonationConfig{UserName: identity.User(cluster), Groups: identity.Groups(cluster)}
		agent, err := client.New(impersonated, client.Options{Scheme: server.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		mine := instance(parent, byReference)
		Expect(server.Create(ctx, mine)).To(Succeed())
		Eventually(resolvedOf(mine)).WithContext(ctx).Should(HaveField("Status", "True"))
		before := panicCount(Default)
		forged := fmt.Sprintf(`{"status":{"execution":{"uid":"x","plan":"deploy","parameters":{"PASSWORD":"plain"},"operatorVersion":{"namespace":%q,`+
			`"name":%q,"uid":%q}},"planStatus":{"deploy":{"uid":"x","status":"IN_PROGRESS","phases":[{"name":"child","steps":[{"name":"child",`+
			`"tasks":[{"name":"child","status":"IN_PROGRESS"},{"name":"child","status":"IN_PROGRESS"}]}]}]}}}}`, parent.Namespace, parent.Name, parent.UID)
		Eventually(func() error {
			return agent.Status().Patch(ctx, mine.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(forged)))
		}).WithContext(ctx).Should(Succeed())
		Eventually(func(g Gomega) []kudo.ChildStatus {
			g.Expect(server.Get(ctx, client.ObjectKeyFromObject(mine), mine)).To(Succeed())
			return mine.Status.Children
		}).WithContext(ctx).Should(ConsistOf(And(HaveField("State", kudo.ChildFailed),
			HaveField("Message", ContainSubstring(`sensitive parameter "PASSWORD" cannot be passed on`)))))
		Expect(panicCount(Default)).To(Equal(before))
	})

	It("is passed on to a child as a reference", func(ctx SpecContext) {
		runWithoutWebhooks()
		mine := instance(parent, byReference)
		Expect(server.Create(ctx, mine)).To(Succeed())
		Eventually(resolvedOf(mine)).WithContext(ctx).Should(HaveField("Status", "True"))
		deploys(ctx, mine, parent)
		child := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine." + version.Spec.Operator.Name}}
		Eventually(exists(child)).WithContext(ctx).Should(BeTrue())
		Expect(specOf(child)(Default, ctx)).To(And(HaveField("ParametersFrom", from), HaveField("Parameters", BeEmpty())))

		By("editing it as a user")
		stranger, _ := newUser()
		before := get(ctx, child)
		edited := before.DeepCopy()
		edited.Spec.ParametersFrom[0].SecretKeyRef.Key = "other"
		Expect(stranger.Patch(ctx, edited, client.MergeFrom(before))).To(MatchError(ContainSubstring("are set by its parent")))
	})
})

// panicCount returns how often the hub's controllers in this process have panicked.
func panicCount(g Gomega) (times float64) {
	for _, metric := range gatherMetrics(g, "controller_runtime_reconcile_panics_total") {
		times += metric.GetCounter().GetValue()
	}
	return times
}

// deploys acts as the agent: it reports that plan deploy runs with the references of the spec, and that its child is in progress.
func deploys(ctx context.Context, i *kudo.Instance, version *kudo.OperatorVersion) {
	GinkgoHelper()
	reported := get(ctx, i)
	before := reported.DeepCopy()
	reported.Status.Execution = &kudo.Execution{
		UID: "x", Plan: kudo.DeployPlan, Parameters: reported.Spec.Parameters, Cluster: reported.Spec.Cluster, KubernetesVersion: "v1.34.2",
		OperatorVersion: corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name, UID: version.UID},
	}
	for _, from := range reported.Spec.ParametersFrom {
		reported.Status.Execution.ParametersFrom = append(reported.Status.Execution.ParametersFrom,
			kudo.StartedParameterFrom{ParameterFrom: from, Digest: "d", DigestKey: "k"})
	}
	reported.Status.PlanStatus = map[string]kudo.PlanStatus{kudo.DeployPlan: {Name: kudo.DeployPlan, UID: "x", Status: kudo.InProgress,
		Phases: []kudo.PhaseStatus{{Name: "child", Status: kudo.InProgress, Steps: []kudo.StepStatus{{Name: "child", Status: kudo.InProgress,
			Tasks: []kudo.TaskStatus{{Name: "child", Status: kudo.InProgress}}}}}}}}
	Expect(server.Status().Patch(ctx, reported, client.MergeFrom(before))).To(Succeed())
}
