package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

const credentialTemplate = `
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Name }}-%s"}
stringData: {password: {{ .Params.PASSWORD | quote }}}
`

// confidential returns a package with a sensitive parameter, which plans store in Secrets: deploy and update at once, late and cleanup behind
// a Deployment to wait for.
func confidential() kudo.OperatorVersionSpec {
	spec := standard()
	for _, name := range []string{"credential", "late", "farewell"} {
		spec.Templates[name+".yaml"] = fmt.Sprintf(credentialTemplate, name)
	}
	spec.Templates["gate.yaml"] = strings.ReplaceAll(deploymentTemplate, "-app", "-gate")
	spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "PASSWORD", Required: new(true), Sensitive: new(true)})
	spec.Tasks = append(spec.Tasks, task("credential", kudo.TaskApply, "credential.yaml"), task("late", kudo.TaskApply, "late.yaml"),
		task("gate", kudo.TaskApply, "gate.yaml"), task("farewell", kudo.TaskApply, "farewell.yaml"))
	spec.Tasks = append(spec.Tasks[:3:3], spec.Tasks[4:]...) // the other farewell
	spec.Plans = map[string]kudo.Plan{
		"deploy": serial("credential"), "update": serial("credential"), "late": serial("gate", "late"), "cleanup": serial("farewell", "gate"),
	}
	return spec
}

// secrets counts values, so that each spec searches for its own.
var secrets int

// password returns a value that exists nowhere else.
func password() string {
	secrets++
	return fmt.Sprintf("hunter2-%d/%%'\"<p>", secrets)
}

var _ = Describe("A sensitive parameter", func() {
	var (
		locally  *rest.Config
		reads    *environment.Reads
		h        *hubPart
		messages []string
	)

	BeforeEach(func(ctx context.Context) {
		locally, reads = environment.RecordReads(agentLocally)
		messages = nil
		makeAgentNamespace(ctx)
	})
	AfterEach(func(ctx context.Context) {
		if h.get(ctx) != nil { // every agent of a later spec would take care of it, and sign it again with another key
			h.edit(ctx, func(i *kudo.Instance) {
				metav1.SetMetaDataAnnotation(&i.ObjectMeta, kudo.AnnotationSkipCleanup, "true")
			})
			h.finish(ctx)
		}
		for _, value := range messages {
			Expect(hubServer.Traces(ctx, value)).To(BeEmpty(), "the hub has a sensitive value")
			Expect(environment.Quotes([]byte(CurrentSpecReport().CapturedGinkgoWriterOutput), value)).To(BeFalse(), "a log has a sensitive value")
		}
	})

	// give creates or changes the Secret, and remembers the value.
	give := func(ctx context.Context, value string) string {
		GinkgoHelper()
		messages = append(messages, value)
		Expect(client.IgnoreAlreadyExists(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))).To(Succeed())
		stored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "given"}, Data: map[string][]byte{"password": []byte(value)}}
		if err := managed.Create(ctx, stored); err != nil {
			Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
			Expect(managed.Update(ctx, stored)).To(Succeed())
		}
		return value
	}
	install := func(ctx context.Context, spec kudo.OperatorVersionSpec) {
		GinkgoHelper()
		h = newInstance(ctx, spec, nil)
		h.edit(ctx, func(i *kudo.Instance) { i.Spec.ParametersFrom = from("given", "password") })
	}
	stored := func(ctx context.Context, suffix string) string {
		GinkgoHelper()
		found := &corev1.Secret{}
		if !h.local(ctx, suffix, found) {
			return ""
		}
		return string(found.Data["password"])
	}
	copies := func(ctx context.Context) map[string][]byte {
		GinkgoHelper()
		found := &corev1.Secret{}
		name := types.NamespacedName{Namespace: agent.DefaultNamespace, Name: "tandem-parameters-" + string(h.get(ctx).UID)}
		Expect(client.IgnoreNotFound(managed.Get(ctx, name, found))).To(Succeed())
		return found.Data
	}
	execution := func(ctx context.Context) *kudo.Execution { return h.get(ctx).Status.Execution }
	run := func(ctx context.Context, plan string) {
		h.change(ctx, func(s *kudo.InstanceSpec) {
			s.PlanExecution = kudo.PlanExecution{PlanName: plan, UID: types.UID(h.name + plan)}
		})
	}
	pass := func(ctx context.Context) {
		GinkgoHelper()
		gate := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name + "-gate"}}
		Eventually(func() error {
			return environment.EditStatus(ctx, managed, gate, func(d *appsv1.Deployment) {
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
			})
		}).Should(Succeed())
	}

	It("is waited for, and rendered from the Secret that it refers to", func(ctx context.Context) {
		spec := confidential()
		spec.Operator.Name = "confidential"
		waiting := func() float64 { return plansWaiting(spec.Operator.Name, kudo.ReasonSecretNotFound) }
		runAgentWith(agentOnHub, locally)
		install(ctx, spec)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(HaveField("Reason", kudo.ReasonSecretNotFound),
			HaveField("Message", `plan deploy waits for the values of sensitive parameters: parameter "PASSWORD": Secret `+h.namespace+
				`/given does not exist: create it with key "password" in namespace "`+h.namespace+`" of the managed cluster`)))
		Expect(h.there(ctx)).To(BeEmpty())
		Expect(execution(ctx)).To(BeNil())
		Expect(waiting()).To(Equal(1.0))
		Eventually(reads.Rests).WithArguments("/namespaces/"+h.namespace+"/secrets").Should(BeTrue(), "the agent reads the Secret again and again")

		By("creating the Secret without the key, and then with a value that is too short")
		give(ctx, "abc")
		messages = nil
		Eventually(func() string { return h.ready(ctx).Message }).Should(HaveSuffix(
			`Secret ` + h.namespace + `/given, key "password": its value is shorter than 4 bytes and could not be masked in messages: use a longer one`))

		value := give(ctx, password())
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(stored(ctx, "-credential")).To(Equal(value))
		Expect(managedServer.Traces(ctx, value)).NotTo(BeEmpty(), "the search finds it where it is")
		Expect(copies(ctx)).To(HaveLen(1))
		Expect(waiting()).To(BeZero())
		Expect(execution(ctx).Parameters).To(BeEmpty())
		Expect(execution(ctx).ParametersFrom).To(ConsistOf(HaveField("Digest", HaveLen(64))))

		By("changing it")
		next := give(ctx, password())
		h.completes(ctx, "update", kudo.PlanStatus{})
		Expect(stored(ctx, "-credential")).To(Equal(next))
		Eventually(func() map[string][]byte { return copies(ctx) }).Should(HaveLen(1), "the old value is kept")
	})

	It("keeps its value while a plan runs", func(ctx context.Context) {
		runAgent()
		install(ctx, confidential())
		before := give(ctx, password())
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		run(ctx, "late")
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "late").Status }).Should(Equal(kudo.InProgress))
		after := give(ctx, password())
		Consistently(func() kudo.ExecutionStatus { return h.plan(ctx, "update").Status }).Should(Equal(kudo.NeverRun))
		pass(ctx)
		Eventually(func() string { return stored(ctx, "-late") }).Should(Equal(before))
		h.completes(ctx, "update", kudo.PlanStatus{})
		Expect(stored(ctx, "-credential")).To(Equal(after))
	})

	It("does not make what runs unavailable while plans wait for it", func(ctx context.Context) {
		stop := runAgent()
		spec := confidential()
		spec.Plans["update"] = serial("gate", "credential")
		install(ctx, spec)
		value := give(ctx, password())
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		remove := func(namespace, name string) {
			GinkgoHelper()
			Expect(managed.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})).To(Succeed())
		}
		waits := func(message string) func(Gomega) {
			return func(g Gomega) {
				g.Expect(h.recorded(ctx, kudo.ConditionReady)).To(HaveValue(HaveField("Reason", kudo.ReasonSecretNotFound)))
				g.Expect(h.recorded(ctx, kudo.ConditionAvailable)).To(HaveValue(is(metav1.ConditionTrue, kudo.ReasonUpdating, message)))
			}
		}

		By("waiting to start")
		remove(h.namespace, "given")
		h.change(ctx, setParameter("VALUE", "two"))
		Eventually(waits("plan update waits for the values")).Should(Succeed())
		give(ctx, value)
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "update").Status }).Should(Equal(kudo.InProgress))

		By("waiting to continue")
		stop()
		remove(h.namespace, "given")
		remove(agent.DefaultNamespace, "tandem-parameters-"+string(h.get(ctx).UID))
		runAgent()
		Eventually(waits("the copies of the values of sensitive parameters")).Should(Succeed())
		give(ctx, value)
		pass(ctx)
		h.completes(ctx, "update", kudo.PlanStatus{})
	})

	It("has its value in the cleanup although its Secret was deleted before, and the agent restarted", func(ctx context.Context) {
		stop := runAgent()
		install(ctx, confidential())
		value := give(ctx, password())
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(managed.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "given"}})).To(Succeed())
		Consistently(func() metav1.ConditionStatus { return h.ready(ctx).Status }).Should(Equal(metav1.ConditionTrue), "nothing has to start")
		stop()
		runAgent()
		Expect(hub.Delete(ctx, h.onHub())).To(Succeed())
		Eventually(func() string { return stored(ctx, "-farewell") }).Should(Equal(value))
		pass(ctx)
		Eventually(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonRemoved))
		Expect(copies(ctx)).To(BeEmpty())
		h.release(ctx)
		Eventually(h.mirror).WithArguments(ctx).Should(BeNil())
	})

	It("is not kept for an Instance that neither the hub nor the cluster has, or that was released during its removal", func(ctx context.Context) {
		sweeping := func(o *agent.Options) { o.SweepInterval = 100 * time.Millisecond }
		stop := runAgentWith(agentOnHub, agentLocally, sweeping)
		install(ctx, confidential())
		give(ctx, password())
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: agent.DefaultNamespace, Name: "tandem-parameters-" + string(h.get(ctx).UID)}}
		exists := func() bool {
			err := managed.Get(ctx, client.ObjectKeyFromObject(kept), kept)
			Expect(client.IgnoreNotFound(err)).To(Succeed())
			return err == nil
		}
		By("losing the mirror")
		stop()
		h.loseMirror(ctx)
		stop = runAgentWith(agentOnHub, agentLocally, sweeping)
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).ShouldNot(BeNil())
		Consistently(exists).Should(BeTrue())

		By("losing the Instance on the hub")
		h.edit(ctx, func(i *kudo.Instance) { i.Finalizers = nil })
		Expect(hub.Delete(ctx, h.onHub())).To(Succeed())
		Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).Should(HaveKey(kudo.AnnotationOrphaned))
		Consistently(exists).Should(BeTrue(), "a hub that is restored may have the Instance again")
		By("deleting the mirror while the agent is away")
		stop()
		Expect(managed.Delete(ctx, h.mirror(ctx))).To(Succeed())
		runAgentWith(agentOnHub, agentLocally, sweeping)
		Eventually(exists).Should(BeFalse())

		By("releasing another one whose cleanup plan is running")
		install(ctx, confidential())
		give(ctx, password())
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		kept.Name = "tandem-parameters-" + string(h.get(ctx).UID)
		Expect(exists()).To(BeTrue())
		Expect(hub.Delete(ctx, h.onHub())).To(Succeed())
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "cleanup").Status }).Should(Equal(kudo.InProgress))
		h.force(ctx)
		Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).Should(HaveKey(kudo.AnnotationOrphaned))
		h.release(ctx)
		Eventually(exists).Should(BeFalse())
		Expect(h.mirror(ctx).Annotations).To(HaveKey(kudo.AnnotationOrphaned))
	})

	It("runs no plan because the key of digests is lost", func(ctx context.Context) {
		stop := runAgent()
		install(ctx, confidential())
		give(ctx, password())
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before := *execution(ctx)
		stop()
		key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: "tandem-digest-key"}}
		Expect(managed.Delete(ctx, key)).To(Succeed())
		runAgent()
		Eventually(func() string { return execution(ctx).ParametersFrom[0].DigestKey }).ShouldNot(Equal(before.ParametersFrom[0].DigestKey))
		Expect(execution(ctx).ParametersFrom[0].Digest).NotTo(Equal(before.ParametersFrom[0].Digest))
		Consistently(func() types.UID { return execution(ctx).UID }).Should(Equal(before.UID))
		Expect(h.ready(ctx).Status).To(Equal(metav1.ConditionTrue))

		By("changing the value after that")
		next := give(ctx, password())
		h.completes(ctx, "update", kudo.PlanStatus{})
		Expect(stored(ctx, "-credential")).To(Equal(next))
	})

	DescribeTable("is masked in messages", func(ctx context.Context, template, message string) {
		spec := confidential()
		spec.Templates["credential.yaml"] = template
		runAgent()
		install(ctx, spec)
		value := give(ctx, password())
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring(message))))
		Expect(h.plan(ctx, "deploy").Message).NotTo(ContainSubstring(value))
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring(message))
		Expect(h.get(ctx).Status.Inventory).NotTo(ContainElement(HaveField("Name", ContainSubstring("hunter2"))))
	},
		Entry("of the API server that quote it",
			"apiVersion: v1\nkind: Service\nmetadata: {name: \"{{ .Name }}-s\"}\nspec:\n  ports: [{port: 80}]\n  type: {{ .Params.PASSWORD | quote }}\n",
			`spec.type: Unsupported value: "*****"`),
		Entry("of the API server that quote its base64",
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"{{ .Name }}-s\"\n  labels: {x: {{ printf \"a-%s-b\" .Params.PASSWORD | b64enc | printf \"-%s\" | quote }}}\n",
			`*****`),
		Entry("of templates that fail with it", "{{ fail (printf \"bad password %s\" .Params.PASSWORD) }}", `template "credential.yaml", line 1: rendering fails, and its message is not shown, because it depends on sensitive parameter "PASSWORD"`),
		Entry("about structure", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-s\"}\ndata: {a: {{ printf \"{x: %s}\" .Params.PASSWORD }}}\n",
			`the value of parameter "PASSWORD" changes the structure of the rendered YAML`),
		Entry("about names of objects", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Params.PASSWORD | sha256sum | quote }}}\n",
			`sensitive parameter "PASSWORD" is part of the name or namespace of an object`),
	)

	It("is not part of a parameter of a child", func(ctx context.Context) {
		spec := confidential()
		spec.Templates["child.yaml"] = "URL: https://admin:{{ .Params.PASSWORD }}@db\n"
		spec.Tasks = append(spec.Tasks, childTask("child", "child.yaml"))
		spec.Plans["deploy"] = serial("credential", "child")
		runAgent()
		install(ctx, spec)
		give(ctx, password())
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring(`task "child": parameterFile "child.yaml": sensitive parameter "PASSWORD" can only be passed on as a whole: `+
				`write NAME: {{ .Params.PASSWORD }}`))))
		Expect(h.there(ctx)).To(BeEmpty())
	})

	It("costs an Instance without any no request", func(ctx context.Context) {
		runAgentWith(agentOnHub, locally)
		h = newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		uid := h.get(ctx).UID
		h.finish(ctx)
		Expect(reads.Of("/namespaces/" + h.namespace + "/secrets")).To(BeEmpty())
		Expect(reads.Of(string(uid))).To(BeEmpty(), "no copy is read")
	})
})

// from returns the reference of parameter PASSWORD.
func from(name, key string) []kudo.ParameterFrom {
	return []kudo.ParameterFrom{{Name: "PASSWORD", SecretKeyRef: kudo.SecretKeyRef{Name: name, Key: key}}}
}
