package agent

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// labelTemplate is rejected by the API server until parameter LABEL is a label.
const labelTemplate = `
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}-s11", labels: {value: "{{ .Params.LABEL }}"}}
`

const randomTemplate = `
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Name }}-random"}
stringData: {password: "{{ randAlphaNum 16 }}"}
`

// twelveSteps returns a package whose plan deploy fails at its eleventh step until parameter LABEL is a label. The third step runs a Job.
func twelveSteps() kudo.OperatorVersionSpec {
	spec := standard()
	spec.Templates, spec.Tasks = map[string]string{}, nil
	var steps []string
	for i := 1; i <= 12; i++ {
		name := fmt.Sprintf("s%d", i)
		steps = append(steps, name)
		spec.Templates[name+".yaml"] = fmt.Sprintf(configTemplate, name)
		spec.Tasks = append(spec.Tasks, task(name, kudo.TaskApply, name+".yaml"))
	}
	spec.Templates["s3.yaml"], spec.Templates["s11.yaml"] = jobTemplate(`containers: [{name: app, image: "app:1"}]`), labelTemplate
	spec.Parameters = []kudo.Parameter{
		{Name: "VALUE", Default: ptr.To("one")}, {Name: "LABEL", Default: ptr.To("not a label")},
	}
	spec.Plans = map[string]kudo.Plan{"deploy": serial(steps...)}
	return spec
}

// withRandomStep lets the second step draw a random value.
func withRandomStep(spec kudo.OperatorVersionSpec) kudo.OperatorVersionSpec {
	spec.Templates["s2.yaml"] = randomTemplate
	return spec
}

// fails waits until the plan deploy has failed at its eleventh step, after its Job has run, and returns the execution.
func (h *hubPart) fails(ctx context.Context) types.UID {
	GinkgoHelper()
	h.end(ctx, batchv1.JobComplete)
	Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(
		And(HaveField("Status", kudo.FatalError), HaveField("Message", ContainSubstring(`step "s11"`))))
	Expect(h.step(ctx, 9)).To(Equal(kudo.Complete))
	return h.plan(ctx, "deploy").UID
}

// objectVersions returns the resourceVersions of the objects of the steps before the one that fails, by name.
func (h *hubPart) objectVersions(ctx context.Context) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	var configs corev1.ConfigMapList
	var jobs batchv1.JobList
	Expect(managed.List(ctx, &configs, client.InNamespace(h.namespace))).To(Succeed())
	Expect(managed.List(ctx, &jobs, client.InNamespace(h.namespace))).To(Succeed())
	for _, config := range configs.Items {
		if strings.HasPrefix(config.Name, h.name) && !strings.HasSuffix(config.Name, "-s11") && !strings.HasSuffix(config.Name, "-s12") {
			found[config.Name] = config.ResourceVersion
		}
	}
	for _, job := range jobs.Items {
		found[job.Name] = job.ResourceVersion
	}
	return found
}

// asksToResume sets a request to resume the execution, with a label that the API server accepts.
func asksToResume(request, execution types.UID) func(*kudo.InstanceSpec) {
	return func(s *kudo.InstanceSpec) {
		s.Parameters = map[string]string{"LABEL": "fine"}
		s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: request, Resume: execution}
	}
}

// skippedSteps returns the steps of the plan that were skipped, and reruns why others ran again.
func (h *hubPart) skippedSteps(ctx context.Context) (skipped []string, reruns map[string]string) {
	GinkgoHelper()
	reruns = map[string]string{}
	for _, step := range h.plan(ctx, "deploy").Phases[0].Steps {
		if step.RerunReason != "" {
			reruns[step.Name] = step.RerunReason
		}
		if step.Tasks[0].Skipped {
			skipped = append(skipped, step.Name)
		}
	}
	return skipped, reruns
}

var _ = Describe("A failed plan of twelve steps", func() {
	var (
		h      *hubPart
		stop   func()
		failed types.UID
		before map[string]string
	)
	firstTen := []string{"s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10"}
	failsOnce := func(ctx context.Context, spec kudo.OperatorVersionSpec) {
		GinkgoHelper()
		h = newInstance(ctx, spec, nil)
		h.resolve(ctx)
		failed = h.fails(ctx)
		before = h.objectVersions(ctx)
	}
	BeforeEach(func() { stop = runAgent() })
	AfterEach(func(ctx context.Context) {
		h.finish(ctx)
		Expect(invariants.Violations(ctx, hub)).To(BeEmpty())
		stop()
	})
	resumes := func(ctx context.Context) {
		GinkgoHelper()
		h.change(ctx, asksToResume("again", failed))
		h.completes(ctx, "deploy", kudo.PlanStatus{UID: failed})
	}

	It("resumes at the eleventh, and writes no object of the ten before", func(ctx context.Context) {
		failsOnce(ctx, twelveSteps())
		Expect(before).To(HaveLen(10))
		resumes(ctx)

		skipped, reruns := h.skippedSteps(ctx)
		Expect(skipped).To(Equal(firstTen))
		Expect(reruns).To(BeEmpty())
		Expect(h.objectVersions(ctx)).To(Equal(before))
		Expect(h.config(ctx, "-s12")).To(Equal("one"))
		Expect(h.get(ctx).Status.Execution.Resume).To(Equal(failed))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(h.lastRequest(ctx)).To(HaveField("Status", metav1.ConditionTrue))
	})

	It("resumes when only the cause outside of the Instance is fixed", func(ctx context.Context) {
		spec := twelveSteps()
		spec.Templates["s11.yaml"] = fmt.Sprintf(configTemplate, "s11")
		h = newInstance(ctx, spec, nil)
		h.makeNamespace(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: h.name + "-s11"}})
		h.resolve(ctx)
		failed = h.fails(ctx)
		before = h.objectVersions(ctx)
		Expect(managed.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: h.name + "-s11", Namespace: h.namespace}})).To(Succeed())

		h.change(ctx, func(s *kudo.InstanceSpec) {
			s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "again", Resume: failed}
		})
		h.completes(ctx, "deploy", kudo.PlanStatus{UID: failed})
		Expect(h.plan(ctx, "deploy").UID).To(BeEquivalentTo("again"))
		skipped, _ := h.skippedSteps(ctx)
		Expect(skipped).To(Equal(firstTen))
		Expect(h.objectVersions(ctx)).To(Equal(before))
	})

	It("runs a step with a random value again, and those after it", func(ctx context.Context) {
		failsOnce(ctx, withRandomStep(twelveSteps()))
		resumes(ctx)
		skipped, reruns := h.skippedSteps(ctx)
		Expect(skipped).To(Equal(firstTen[:1]))
		Expect(reruns).To(And(HaveLen(9), HaveKeyWithValue("s2", `task "s2" generates random values or reads the current time`),
			HaveKeyWithValue("s10", `follows step "s2", which runs again`)))
	})

	It("runs a step again whose object is gone", func(ctx context.Context) {
		failsOnce(ctx, twelveSteps())
		Expect(managed.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: h.name + "-s9", Namespace: h.namespace}})).To(Succeed())
		resumes(ctx)
		skipped, reruns := h.skippedSteps(ctx)
		Expect(skipped).To(Equal(firstTen[:8]))
		Expect(reruns).To(HaveKeyWithValue("s9", HaveSuffix("-s9: is missing")))
		Expect(h.config(ctx, "-s9")).To(Equal("one"))
	})

	It("runs a step again whose object another writer has changed", func(ctx context.Context) {
		failsOnce(ctx, twelveSteps())
		for name, patch := range map[string]string{"-s5": `{"metadata":{"labels":{"added":"here"}}}`, "-s8": `{"data":{"value":"edited"}}`} {
			edited := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: h.name + name, Namespace: h.namespace}}
			Expect(managed.Patch(ctx, edited, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl-edit"))).To(Succeed())
		}
		resumes(ctx)
		skipped, reruns := h.skippedSteps(ctx)
		Expect(skipped).To(Equal(firstTen[:7]), "another writer's own fields are no change of what was applied")
		Expect(reruns).To(HaveKeyWithValue("s8", ContainSubstring(`another writer has changed ConfigMap %s/%s-s8: `, h.namespace, h.name)))
		Expect(h.config(ctx, "-s8")).To(Equal("one"))
	})

	It("does not run a completed Job again that is gone", func(ctx context.Context) {
		failsOnce(ctx, twelveSteps())
		Expect(managed.Delete(ctx, h.job(ctx), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		resumes(ctx)
		skipped, _ := h.skippedSteps(ctx)
		Expect(skipped).To(Equal(firstTen))
		Expect(h.objectVersions(ctx)).To(HaveLen(9))
	})

	It("runs a step again that would render something else", func(ctx context.Context) {
		spec := twelveSteps()
		spec.Templates["s7.yaml"] = strings.ReplaceAll(spec.Templates["s7.yaml"], ".Params.VALUE", ".Params.LABEL")
		failsOnce(ctx, spec)
		resumes(ctx)
		skipped, reruns := h.skippedSteps(ctx)
		Expect(skipped).To(Equal(firstTen[:6]))
		Expect(reruns).To(HaveKeyWithValue("s7", `task "s7" renders differently now`))
		Expect(h.config(ctx, "-s7")).To(Equal("fine"))
	})

	It("is not resumed by the uid of another execution", func(ctx context.Context) {
		failsOnce(ctx, twelveSteps())
		h.change(ctx, func(s *kudo.InstanceSpec) {
			s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "again", Resume: "another"}
		})
		Eventually(func() metav1.Condition { return h.lastRequest(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonRequestInvalid,
			`execution "another" cannot be resumed: the last one is`))
		Consistently(func() types.UID { return h.plan(ctx, "deploy").UID }).Should(Equal(failed))
	})

	It("is resumed by another agent in the middle", func(ctx context.Context) {
		failsOnce(ctx, twelveSteps())
		stop()
		h.change(ctx, asksToResume("again", failed))
		stop = runAgent()
		Eventually(func() types.UID { return h.mirror(ctx).Status.PlanStatus["deploy"].UID }).ShouldNot(Equal(failed))
		stop()
		stop = runAgent()
		h.completes(ctx, "deploy", kudo.PlanStatus{UID: failed})
		skipped, _ := h.skippedSteps(ctx)
		Expect(skipped).To(Equal(firstTen))
		Expect(h.objectVersions(ctx)).To(Equal(before))
	})
})

var _ = Describe("A resumed Helm task", func() {
	BeforeEach(func(ctx context.Context) {
		makeAgentNamespace(ctx)
		DeferCleanup(runAgent())
	})
	steady := func() chartFiles {
		chart := web.in(fmt.Sprintf("resumed%d.tandem.test", made+1))
		delete(chart, "templates/secret.yaml") // it draws a random value
		return chart
	}
	resumes := func(ctx context.Context, h *hubPart, label string) {
		GinkgoHelper()
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.FatalError))
		failed := h.plan(ctx, "deploy").UID
		h.change(ctx, func(s *kudo.InstanceSpec) {
			if label != "" {
				s.Parameters = map[string]string{"LABEL": label}
			}
			s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "again", Resume: failed}
		})
		h.completes(ctx, "deploy", kudo.PlanStatus{UID: failed})
	}

	It("does not run hooks again that have succeeded", func(ctx context.Context) {
		h := newChart(ctx, steady(), nil)
		ran := runJobs(ctx, h)
		ran.fail("seed", true)
		h.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.FatalError))
		Expect(ran.all()).To(Equal([]string{"migrate", "seed"}))
		ran.fail("seed", false)
		resumes(ctx, h, "")
		Expect(ran.all()).To(Equal([]string{"migrate", "seed", "seed"}))
		Expect(h.get(ctx).Status.Tasks).To(ConsistOf(And(HaveField("Revision", BeEquivalentTo(1)), HaveField("Installed", true), HaveField("Upgrade", false))))
		h.finish(ctx)
	})

	It("is skipped if it was complete", func(ctx context.Context) {
		h := newChart(ctx, steady(), func(spec *kudo.OperatorVersionSpec) {
			spec.Templates["s11.yaml"] = labelTemplate
			spec.Tasks = append(spec.Tasks, task("s11", kudo.TaskApply, "s11.yaml"))
			spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "LABEL", Default: ptr.To("not a label")})
			spec.Plans["deploy"] = serial("web", "s11")
		})
		ran := runJobs(ctx, h)
		h.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.FatalError))
		config := &corev1.ConfigMap{}
		Expect(h.local(ctx, "-config", config)).To(BeTrue())
		before := config.ResourceVersion
		resumes(ctx, h, "fine")
		skipped, reruns := h.skippedSteps(ctx)
		Expect(skipped).To(Equal([]string{"web"}), "%v", reruns)
		Expect(h.local(ctx, "-config", config)).To(BeTrue())
		Expect(config.ResourceVersion).To(Equal(before))
		Expect(ran.all()).To(Equal([]string{"migrate", "seed"}))

		By("changing a value after that")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"LABEL": "fine", "VALUE": "two"} })
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("two"))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(h.get(ctx).Status.Tasks).To(ConsistOf(HaveField("Revision", BeEquivalentTo(2))))
		h.finish(ctx)
	})
})
