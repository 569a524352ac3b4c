package agent

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

var _ = Describe("An Instance on the hub", func() {
	var stop func()
	BeforeEach(func() { stop = runAgent() })
	AfterEach(func(ctx context.Context) {
		Expect(invariants.Violations(ctx, hub)).To(BeEmpty())
		stop()
	})

	It("is mirrored once it is resolved, and not before", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		Consistently(func() *kudo.Instance { return h.mirror(ctx) }).Should(BeNil())

		h.resolve(ctx)
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).ShouldNot(BeNil())
		onHub, mirror := h.get(ctx), h.mirror(ctx)
		Expect(mirror.Annotations).To(HaveKeyWithValue(kudo.AnnotationHubUID, string(onHub.UID)))
		Expect(mirror.OwnerReferences).To(BeEmpty())
		Expect(h.versions(ctx)).To(ConsistOf(HavePrefix(h.name + "-1.0.0-")))
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
	})

	It("goes through deploy, update, a feature on and off, and removal", func(ctx context.Context) {
		h := newInstance(ctx, standard(), map[string]string{"VALUE": "first"})
		h.resolve(ctx)

		By("waiting for the Deployment, and saying so")
		Eventually(func() string { return h.ready(ctx).Message }).Should(
			MatchRegexp(`plan "deploy" is running: phase "main": step "app": task "app": Deployment .*-app: .*`))
		Expect(h.plan(ctx, "deploy").Phases[0].Steps[0].Status).To(Equal(kudo.Complete))
		Expect(h.plan(ctx, "deploy").Phases[0].Steps[2].Status).To(Equal(kudo.Pending))
		Expect(h.plan(ctx, "update").Status).To(Equal(kudo.NeverRun))
		Expect(h.config(ctx, "-config")).To(Equal("first"))

		By("completing when it is healthy")
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.config(ctx, "-feature")).To(BeEmpty())

		By("labelling, annotating and owning what it applied")
		config, execution := &corev1.ConfigMap{}, h.get(ctx).Status.Execution
		Expect(h.local(ctx, "-config", config)).To(BeTrue())
		Expect(config.Labels).To(And(HaveKeyWithValue("heritage", "kudo"), HaveKeyWithValue("kudo.dev/operator", "app"),
			HaveKeyWithValue("kudo.dev/instance", h.name)))
		Expect(config.Annotations).To(And(HaveKeyWithValue("kudo.dev/plan", "deploy"), HaveKeyWithValue("kudo.dev/step", "config"),
			HaveKeyWithValue("kudo.dev/last-plan-execution-uid", string(execution.UID))))
		Expect(config.OwnerReferences).To(ConsistOf(HaveField("UID", h.mirror(ctx).UID)))
		Expect(execution.Parameters).To(Equal(map[string]string{"VALUE": "first"}))
		Expect(execution.OperatorVersion.Name).To(Equal(h.name + "-1.0.0"))

		By("updating what a parameter changes, without restarting pods for one that need not")
		before := h.plan(ctx, "update")
		template := h.podTemplate(ctx)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "first", "REPLICAS": "5"} })
		Eventually(func() int32 { return h.replicas(ctx) }).Should(BeEquivalentTo(5))
		Consistently(func() kudo.ExecutionStatus { return h.plan(ctx, "update").Status }).ShouldNot(Equal(kudo.Complete),
			"the Deployment was healthy before it was scaled")
		h.rollOut(ctx)
		h.completes(ctx, "update", before)
		Expect(h.podTemplate(ctx)).To(Equal(template))

		By("restarting pods for one that must")
		before = h.plan(ctx, "update")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters["VALUE"] = "second" })
		Eventually(func() *corev1.PodTemplateSpec { return h.podTemplate(ctx) }).ShouldNot(Equal(template))
		h.rollOut(ctx)
		h.completes(ctx, "update", before)
		Expect(h.config(ctx, "-config")).To(Equal("second"))

		By("switching the feature on and off")
		for _, on := range []string{"true", "false", "true"} {
			before = h.plan(ctx, "feature")
			h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters["FEATURE"] = on })
			h.completes(ctx, "feature", before)
			Expect(h.config(ctx, "-feature") != "").To(Equal(on == "true"))
		}

		By("leaving nothing behind, after the cleanup plan")
		h.finish(ctx)
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(BeNil())
		for _, suffix := range []string{"-config", "-feature", "-farewell"} {
			Expect(h.config(ctx, suffix)).To(BeEmpty())
		}
		Expect(h.local(ctx, "-app", &appsv1.Deployment{})).To(BeFalse())
		Expect(managed.Get(ctx, client.ObjectKey{Name: h.namespace + "-" + h.name}, &rbacv1.ClusterRole{})).NotTo(Succeed())
		Eventually(func() []string { return h.versions(ctx) }).Should(BeEmpty())
	})

	It("is upgraded by the new version's plans", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})

		next := configOnly()
		next.Version = "2.0.0"
		next.Plans["upgrade"] = serial("config", "farewell")
		push(ctx, h.name+"-2.0.0", next)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
		h.completes(ctx, "upgrade", kudo.PlanStatus{})
		Expect(h.config(ctx, "-farewell")).To(Equal("one"))
		Expect(h.plan(ctx, "deploy").Status).To(Equal(kudo.NeverRun), "this version's deploy was never run")
		Eventually(func() []string { return h.versions(ctx) }).Should(ConsistOf(HavePrefix(h.name + "-2.0.0-")))
		h.finish(ctx)
	})

	DescribeTable("names an operator in labels and templates that is no object's name",
		func(ctx context.Context, operator string, want func(*hubPart) string) {
			spec := configOnly()
			spec.Operator.Name = operator
			spec.Templates["config.yaml"] += "  operator: \"{{ .OperatorName }}\"\n"
			spec.Templates["config.yaml"] = strings.Replace(spec.Templates["config.yaml"], `data: {value: "{{ .Params.VALUE }}"}`,
				"data:\n  value: \"{{ .Params.VALUE }}\"", 1)
			h := newInstance(ctx, spec, nil)
			h.resolve(ctx)
			h.completes(ctx, "deploy", kudo.PlanStatus{})
			config := &corev1.ConfigMap{}
			Expect(h.local(ctx, "-config", config)).To(BeTrue())
			Expect(config.Labels).To(HaveKeyWithValue(kudo.LabelOperator, want(h)))
			Expect(config.Data).To(HaveKeyWithValue("operator", want(h)))
			h.finish(ctx)
		},
		Entry("an OperatorVersion without an operator, by its own name", "", func(h *hubPart) string { return h.name }),
		Entry("an operator with upper case", "Toy_Box", func(*hubPart) string { return "Toy_Box" }),
	)

	It("does not do again, after a restart of the agent, what was complete", func(ctx context.Context) {
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("Deployment"))
		stop()
		config := &corev1.ConfigMap{}
		Expect(h.local(ctx, "-config", config)).To(BeTrue())
		Expect(managed.Delete(ctx, config)).To(Succeed())
		uid := h.plan(ctx, "deploy").UID
		h.rollOut(ctx)

		stop = runAgent()
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.Complete))
		Expect(h.plan(ctx, "deploy").UID).To(Equal(uid), "the execution continued")
		Expect(h.local(ctx, "-config", config)).To(BeFalse(), "its step was complete")
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(HaveField("Reason", kudo.ReasonUnhealthy),
			HaveField("Message", ContainSubstring("ConfigMap "+h.namespace+"/"+h.name+"-config: is missing"))))
		h.finish(ctx)
	})

	It("that is missing without having been deleted leaves its workloads alone, and is taken up again", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		lost := h.lose(ctx)
		stop = runAgent()
		Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).Should(HaveKey(kudo.AnnotationOrphaned))
		Expect(h.config(ctx, "-config")).To(Equal("one"))

		By("restoring it on the hub")
		uid := h.mirror(ctx).Status.Execution.UID
		h.again(ctx, lost)
		h.resolve(ctx)
		Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).ShouldNot(HaveKey(kudo.AnnotationOrphaned))
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.get(ctx).Status.Execution.UID).To(Equal(uid), "nothing was executed again")
		h.finish(ctx)
	})

	It("whose mirror is lost gets a new one that knows what was executed", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		uid := h.get(ctx).Status.Execution.UID
		stop()
		h.loseMirror(ctx)

		stop = runAgent()
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(HaveField("Annotations", HaveKey(kudo.AnnotationHubGeneration)))
		Consistently(func(g Gomega) {
			g.Expect(h.mirror(ctx).Status.Execution).To(HaveField("UID", uid))
			g.Expect(h.get(ctx).Status.Execution).To(HaveField("UID", uid))
		}).Should(Succeed())
		h.finish(ctx)
	})

	It("at rest causes no writes, not even after a restart of the agent", func(ctx context.Context) {
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()

		onHub, toHub := environment.RecordWrites(agentOnHub)
		locally, toManaged := environment.RecordWrites(agentLocally)
		stop = runAgentWith(onHub, locally)
		Consistently(func() []string { return h.writesOf(toManaged, toHub) }).Should(BeEmpty())
		app := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name + "-app"}}
		Expect(environment.EditStatus(ctx, managed, app, func(d *appsv1.Deployment) {
			d.Status.ReadyReplicas, d.Status.AvailableReplicas = 0, 0
		})).To(Succeed())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Reason", kudo.ReasonUnhealthy), "it is awake")
		h.finish(ctx)
	})

	It("keeps the replicas that an autoscaler has chosen, as long as there is one", func(ctx context.Context) {
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		Eventually(func() bool { return h.local(ctx, "-app", &appsv1.Deployment{}) }).Should(BeTrue())
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "scaler", Namespace: h.namespace}}
		scaler.Spec.MaxReplicas = 9
		scaler.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: h.name + "-app"}
		Expect(managed.Create(ctx, scaler)).To(Succeed())
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: h.name + "-app", Namespace: h.namespace}}
		Expect(managed.SubResource("scale").Update(ctx, deployment, client.FieldOwner("kube-controller-manager"), client.WithSubResourceBody(
			&autoscalingv1.Scale{ObjectMeta: deployment.ObjectMeta, Spec: autoscalingv1.ScaleSpec{Replicas: 5}}))).To(Succeed())
		h.rollOut(ctx)
		updates := func(value string) {
			GinkgoHelper()
			before, template := h.plan(ctx, "update"), h.podTemplate(ctx)
			h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": value} })
			Eventually(func() *corev1.PodTemplateSpec { return h.podTemplate(ctx) }).ShouldNot(Equal(template), "it is applied")
			h.rollOut(ctx)
			h.completes(ctx, "update", before)
		}
		updates("second")
		Expect(h.replicas(ctx)).To(BeEquivalentTo(5))

		Expect(managed.Delete(ctx, scaler)).To(Succeed())
		updates("third")
		Expect(h.replicas(ctx)).To(BeEquivalentTo(2))
		h.finish(ctx)
	})

	It("fails permanently on an object of another owner, which it does not change", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
		foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: h.name + "-config", Namespace: h.namespace,
			Annotations: map[string]string{"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": h.namespace}},
			Data: map[string]string{"value": "foreign"}}
		Expect(managed.Create(ctx, foreign)).To(Succeed())
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(HaveField("Reason", kudo.ReasonPlanFailed),
			HaveField("Message", ContainSubstring("ConfigMap "+h.namespace+"/"+h.name+"-config: already exists and was not created by this Instance, but belongs to Helm release "+
				h.namespace+"/shop; it stays as it is"))))
		h.finish(ctx)
		Expect(h.config(ctx, "-config")).To(Equal("foreign"))
	})

	DescribeTable("that cannot be carried out says which task, which object and why",
		func(ctx context.Context, edit func(*kudo.OperatorVersionSpec), state kudo.ExecutionStatus, says string) {
			spec := configOnly()
			edit(&spec)
			h := newInstance(ctx, spec, nil)
			h.resolve(ctx)
			Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(
				And(HaveField("Status", state), HaveField("Message", MatchRegexp(says))))
			h.finish(ctx)
		},
		Entry("a template that names an unknown parameter",
			func(s *kudo.OperatorVersionSpec) { s.Templates["config.yaml"] = "{{ .Params.NOPE }}" },
			kudo.FatalError, `task "config": .*config.yaml.*NOPE`),
		Entry("a kind that the cluster does not have is tried again",
			func(s *kudo.OperatorVersionSpec) {
				s.Templates["config.yaml"] = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}"
			},
			kudo.Error, `task "config": Widget w: no matches for kind "Widget" in version "example.com/v1": waiting for its CustomResourceDefinition`),
		Entry("a kind that the cluster does not have ends the plan with its timeout",
			func(s *kudo.OperatorVersionSpec) {
				s.Templates["config.yaml"] = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}"
				deploy := s.Plans["deploy"]
				deploy.Timeout = &metav1.Duration{Duration: 2 * time.Second}
				s.Plans["deploy"] = deploy
			},
			kudo.FatalError, `timed out after 2s: .*no matches for kind "Widget"`),
		Entry("a kind that Kubernetes does not have",
			func(s *kudo.OperatorVersionSpec) {
				s.Templates["config.yaml"] = "apiVersion: apps/v1\nkind: Widget\nmetadata: {name: w}"
			},
			kudo.FatalError, `task "config": Widget w: no matches for kind "Widget" in version "apps/v1"`),
		Entry("a kind that Kubernetes has removed",
			func(s *kudo.OperatorVersionSpec) {
				s.Templates["config.yaml"] = "apiVersion: policy/v1beta1\nkind: PodSecurityPolicy\nmetadata: {name: w}"
			},
			kudo.FatalError, `task "config": PodSecurityPolicy w: no matches for kind`),
		Entry("a kind of which objects can be neither listed nor watched",
			func(s *kudo.OperatorVersionSpec) {
				s.Templates["config.yaml"] = "apiVersion: authorization.k8s.io/v1\nkind: LocalSubjectAccessReview\nmetadata: {name: w}"
			},
			kudo.FatalError, `task "config": LocalSubjectAccessReview .*cannot be listed or watched`),
		Entry("a field that the kind does not have",
			func(s *kudo.OperatorVersionSpec) {
				s.Templates["config.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndta: {}"
			},
			kudo.FatalError, `task "config": applying ConfigMap .*/c: .*dta: field not declared in schema`),
		Entry("an object that the API server refuses",
			func(s *kudo.OperatorVersionSpec) {
				s.Templates["config.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Upper}"
			},
			kudo.FatalError, `task "config": applying ConfigMap .*/Upper: .*metadata.name`),
		Entry("a namespace that does not exist yet is tried again",
			func(s *kudo.OperatorVersionSpec) {
				s.Templates["config.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: nowhere}"
			},
			kudo.Error, `task "config": applying ConfigMap nowhere/c: namespaces "nowhere" not found`),
		Entry("a Dummy task that is to fail",
			func(s *kudo.OperatorVersionSpec) {
				s.Tasks[0] = task("config", kudo.TaskDummy)
				s.Tasks[0].Spec.WantErr, s.Tasks[0].Spec.Fatal = true, true
			},
			kudo.FatalError, `task "config": the Dummy task`),
	)

	It("with a kind whose definition is created later continues by itself", func(ctx context.Context) {
		spec := configOnly()
		spec.Templates["config.yaml"] = "apiVersion: late.tandem.test/v1\nkind: Latecomer\nmetadata: {name: late}\n"
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(
			HaveField("Status", kudo.Error), HaveField("Message", ContainSubstring(`no matches for kind "Latecomer"`))))
		definition := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"group": "late.tandem.test", "scope": "Namespaced",
			"names": map[string]any{"plural": "latecomers", "singular": "latecomer", "kind": "Latecomer", "listKind": "LatecomerList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
		}}}
		definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		definition.SetName("latecomers.late.tandem.test")
		Expect(managed.Create(ctx, definition)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(managed.Delete(ctx, definition)).To(Succeed()) })
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
	})

	It("deleted before it was ever resolved is reported removed", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		h.finish(ctx)
	})
})

// podTemplate reads the Deployment's pod template.
func (h *hubPart) podTemplate(ctx context.Context) *corev1.PodTemplateSpec {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(h.local(ctx, "-app", deployment)).To(BeTrue())
	return &deployment.Spec.Template
}

func (h *hubPart) replicas(ctx context.Context) int32 {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(h.local(ctx, "-app", deployment)).To(BeTrue())
	return *deployment.Spec.Replicas
}
