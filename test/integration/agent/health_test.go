package agent

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("The health of a custom resource that its package judges by expressions", func() {
	var c *custom
	BeforeEach(func() {
		stop := runAgent()
		defined++
		c = &custom{group: fmt.Sprintf("judged-%d.tandem.test", defined)}
		DeferCleanup(func(ctx context.Context) {
			stop()
			c.undefine(ctx)
		})
	})
	deploy := func(ctx context.Context, rule kudo.HealthRule) {
		definition := c.definition("v1")
		for _, version := range definition.Object["spec"].(map[string]any)["versions"].([]any) {
			version.(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}}
		}
		spec := c.spec("v1", definition)
		rule.Group, rule.Kind = c.group, "Gizmo"
		spec.Health = []kudo.HealthRule{rule}
		c.hubPart = newInstance(ctx, spec, nil)
		c.resolve(ctx)
	}
	is := func(ctx context.Context, status map[string]any) {
		GinkgoHelper()
		body, err := json.Marshal(map[string]any{"status": status})
		Expect(err).NotTo(HaveOccurred())
		Expect(managed.Patch(ctx, c.gizmo(ctx, "v1"), client.RawPatch("application/merge-patch+json", body), client.FieldOwner("vendor"))).To(Succeed())
	}
	rule := kudo.HealthRule{
		Healthy: "self.status.ready == self.status.desired", Failed: "self.status.phase == 'Broken'", Message: "self.status.why",
	}
	gizmo := func() string { return "Gizmo " + c.namespace + "/" + c.name + "-gizmo: " }
	stepSays := func(ctx context.Context, status kudo.ExecutionStatus, message string) {
		GinkgoHelper()
		Eventually(func() []kudo.TaskStatus {
			phases := c.plan(ctx, "deploy").Phases
			if len(phases) == 0 || len(phases[0].Steps) < 3 {
				return nil
			}
			return phases[0].Steps[2].Tasks
		}).Should(ConsistOf(And(HaveField("Status", status), HaveField("Message", HavePrefix(gizmo()+message)))))
	}

	It("holds its step until it is healthy, and decides condition Ready afterwards", func(ctx context.Context) {
		deploy(ctx, rule)
		stepSays(ctx, kudo.InProgress, `is not healthy yet: there is no field "status"`)
		is(ctx, map[string]any{"ready": 1, "desired": 3, "why": "two replicas start"})
		stepSays(ctx, kudo.InProgress, "is not healthy yet: two replicas start")
		is(ctx, map[string]any{"ready": 3})
		c.completes(ctx, "deploy", kudo.PlanStatus{})
		Eventually(func() metav1.Condition { return c.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))

		is(ctx, map[string]any{"ready": 2, "why": "a replica has crashed"})
		c.says(ctx, "is not healthy yet: a replica has crashed")
		is(ctx, map[string]any{"phase": "Broken", "why": "the volume is lost"})
		c.says(ctx, "the volume is lost")
		is(ctx, map[string]any{"phase": "Running", "ready": 3})
		Eventually(func() metav1.Condition { return c.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
	})

	It("ends its plan with its message if it has failed", func(ctx context.Context) {
		deploy(ctx, rule)
		stepSays(ctx, kudo.InProgress, "is not healthy yet")
		is(ctx, map[string]any{"phase": "Broken", "why": "the license has expired"})
		stepSays(ctx, kudo.FatalError, "the license has expired")
		Eventually(func() metav1.Condition { return c.ready(ctx) }).Should(HaveField("Reason", kudo.ReasonPlanFailed))
	})

	It("is an error of the step if a malformed expression has passed admission, and names it", func(ctx context.Context) {
		deploy(ctx, kudo.HealthRule{Healthy: "self.status."})
		stepSays(ctx, kudo.Error, `its health is not known: health of "Gizmo.`+c.group+`" in the package: healthy: line 1, column 13: Syntax error`)
	})
})

var _ = Describe("The health of a custom resource of a chart that the package judges by expressions", func() {
	It("holds the task until it is healthy", func(ctx context.Context) {
		makeAgentNamespace(ctx)
		DeferCleanup(runAgent())
		group := fmt.Sprintf("chart%d.tandem.test", made+1)
		h := newChart(ctx, web.in(group), func(spec *kudo.OperatorVersionSpec) {
			spec.Health = []kudo.HealthRule{{Group: group, Kind: "Widget", Healthy: "self.status.phase == 'Running'", Message: "self.status.phase"}}
		})
		runJobs(ctx, h)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanInProgress,
			`Widget `+h.namespace+"/"+h.name+`: is not healthy yet: there is no field "status"`))
		widget := blank(group + "/v1 Widget")
		widget.SetNamespace(h.namespace)
		widget.SetName(h.name)
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Running"}}`))
		Expect(managed.Patch(ctx, widget, patch, client.FieldOwner("vendor"))).To(Succeed())
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		h.finish(ctx) // while its hooks run
	})
})
