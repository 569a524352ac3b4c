package agent

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("Facts of the cluster", func() {
	var stop func()
	BeforeEach(func(ctx context.Context) {
		makeAgentNamespace(ctx)
		stop = runAgent()
	})
	AfterEach(func() { stop() })
	region := func(value string) func(*kudo.InstanceSpec) {
		return func(s *kudo.InstanceSpec) {
			s.Cluster = &kudo.ClusterFacts{Name: "one", Labels: map[string]string{"region": value}, Claims: map[string]string{"id": "a: {b"}}
		}
	}
	describing := func() kudo.OperatorVersionSpec {
		spec := configOnly()
		for _, name := range []string{"config", "farewell"} {
			spec.Templates[name+".yaml"] = strings.Replace(fmt.Sprintf(configTemplate, name), `"{{ .Params.VALUE }}"`,
				`"{{ .Cluster.Name }} {{ index .Cluster.Labels "region" }} {{ index .Cluster.Claims "none" }} {{ .Params.VALUE }} {{ .Capabilities.KubeVersion.Major }}"`, 1)
		}
		spec.Plans = map[string]kudo.Plan{"deploy": serial("config"), "cleanup": serial("farewell")}
		return spec
	}

	It("are those of the start of a plan, and a change starts none", func(ctx context.Context) {
		h := newInstance(ctx, describing(), nil)
		h.change(ctx, region("eu"))
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.config(ctx, "-config")).To(Equal("one eu  one 1"))
		Expect(h.get(ctx).Status.Execution.Cluster).To(Equal(h.get(ctx).Spec.Cluster))
		Expect(h.get(ctx).Status.Execution.KubernetesVersion).To(HavePrefix("v1."))

		By("changing a label")
		first := h.plan(ctx, "deploy")
		h.change(ctx, region("us"))
		Eventually(func(g Gomega) {
			g.Expect(h.ready(ctx).ObservedGeneration).To(Equal(h.get(ctx).Generation))
			g.Expect(h.ready(ctx).Status).To(Equal(metav1.ConditionTrue))
		}).Should(Succeed())
		Consistently(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }, "1s").Should(HaveField("UID", first.UID))
		Expect(h.config(ctx, "-config")).To(Equal("one eu  one 1"))
		Expect(h.get(ctx).Status.Execution.Cluster.Labels).To(HaveKeyWithValue("region", "eu"))

		By("restarting the agent and losing the mirror, which starts none either")
		stop()
		h.loseMirror(ctx)
		stop = runAgent()
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).ShouldNot(BeNil())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(h.plan(ctx, "deploy").UID).To(Equal(first.UID))

		By("changing a parameter, whose plan takes it")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two"} })
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("one us  two 1"))
		h.completes(ctx, "deploy", first)

		By("removing the Instance, whose cleanup uses those in use")
		h.edit(ctx, func(i *kudo.Instance) { region("late")(&i.Spec) })
		h.finish(ctx)
		Expect(h.config(ctx, "-farewell")).To(BeEmpty())
	})

	It("cannot change the structure of a template", func(ctx context.Context) {
		spec := configOnly()
		spec.Templates["config.yaml"] = strings.Replace(fmt.Sprintf(configTemplate, "config"), `"{{ .Params.VALUE }}"`, `{{ index .Cluster.Claims "id" }}`, 1)
		h := newInstance(ctx, spec, nil)
		h.change(ctx, func(s *kudo.InstanceSpec) {
			s.Cluster = &kudo.ClusterFacts{Name: "one", Claims: map[string]string{"id": "x}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: stolen"}}
		})
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(HaveField("Reason", kudo.ReasonPlanFailed),
			HaveField("Message", ContainSubstring("what the cluster has as .Cluster.Claims changes the structure"))))
		Expect(h.config(ctx, "-config")).To(BeEmpty())

		By("a harmless one, with which the plan can be run again")
		h.change(ctx, func(s *kudo.InstanceSpec) {
			s.Cluster.Claims["id"] = "x"
			s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "again"}
		})
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("x"))
		h.finish(ctx)
	})

	It("reach the values file of a chart, and cannot change the structure of what it renders", func(ctx context.Context) {
		h := newChart(ctx, chartFiles{
			"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
			"templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-config\"}\n" +
				"data:\n  value: {{ .Values.region }}-{{ .Values.id }}\n",
		}, func(spec *kudo.OperatorVersionSpec) {
			spec.Templates["values.yaml"] = "region: {{ index .Cluster.Labels \"region\" | quote }}\nid: {{ index .Cluster.Claims \"id\" | quote }}\n"
		})
		with := func(id string) func(*kudo.InstanceSpec) {
			return func(s *kudo.InstanceSpec) {
				region("eu")(s)
				s.Cluster.Claims["id"] = id
				s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: types.UID("plan-" + fmt.Sprint(len(id)))}
			}
		}
		h.change(ctx, with("x\n  stolen: y"))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(HaveField("Reason", kudo.ReasonPlanFailed),
			HaveField("Message", ContainSubstring(`what the cluster has as .Cluster.Claims changes the structure of what the chart renders`))))
		h.change(ctx, with("x"))
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("eu-x"))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		h.finish(ctx)
	})
})
