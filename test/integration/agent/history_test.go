package agent

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/author"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// historyOf formats the history in a status: revision, plan, cause, previous version, names of parameters and outcome.
func historyOf(status kudo.InstanceStatus) (lines []string) {
	for _, e := range status.History {
		line := fmt.Sprintf("%d %s %s", e.Revision, e.Plan, e.Cause)
		if e.From != "" {
			line += " after " + e.From
		}
		if len(e.Parameters) > 0 {
			line += " of " + strings.Join(e.Parameters, ",")
		}
		if e.Outcome != "" {
			line += ": " + string(e.Outcome)
		}
		lines = append(lines, line)
	}
	return lines
}

var _ = Describe("History", func() {
	var h *hubPart
	AfterEach(func(ctx context.Context) {
		h.finish(ctx)
		Expect(invariants.Violations(ctx, hub)).To(BeEmpty())
	})
	onHub := func(ctx context.Context) []string { return historyOf(h.get(ctx).Status) }
	// rests expects that nothing is written.
	rests := func(ctx context.Context) {
		GinkgoHelper()
		versions := func() []string { return []string{h.get(ctx).ResourceVersion, h.mirror(ctx).ResourceVersion} }
		before := versions()
		Consistently(versions).Should(Equal(before))
	}

	It("has each execution once, whatever happens to the agent, and is reported to the hub", func(ctx context.Context) {
		stop := runAgent()
		h = newInstance(ctx, gatePackage(), map[string]string{"KIND": "ConfigMap"})
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})

		By("restarting the agent while a plan runs, and cancelling the plan")
		h.change(ctx, requests("wait", "by-hand"))
		Eventually(func() []string { return onHub(ctx) }).Should(Equal([]string{"1 deploy Install of KIND: Complete", "2 wait Request"}))
		stop()
		stop = runAgent()
		h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution.Cancel = true })
		Eventually(func() []string { return onHub(ctx) }).Should(Equal([]string{"1 deploy Install of KIND: Complete", "2 wait Request: Cancelled"}))
		Expect(h.get(ctx).Status.History[1]).To(And(HaveField("UID", BeEquivalentTo("by-hand")), HaveField("Message", "cancelled"),
			HaveField("StartedTimestamp", Not(BeNil())), HaveField("EndedTimestamp", Not(BeNil()))))

		By("upgrading to a version that fails, and returning to the one before")
		broken := gatePackage()
		broken.Version, broken.Plans["deploy"] = "2.0.0", serial("broken")
		push(ctx, h.name+"-2.0.0", broken)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
		Eventually(func() []string { return onHub(ctx) }).Should(HaveLen(3))
		Eventually(func() []string { return onHub(ctx) }).Should(ContainElement("3 deploy Version after " + h.name + "-1.0.0: Failed"))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-1.0.0" })
		want := []string{
			"1 deploy Install of KIND: Complete", "2 wait Request: Cancelled", "3 deploy Version after " + h.name + "-1.0.0: Failed",
			"4 deploy Version after " + h.name + "-2.0.0: Complete",
		}
		Eventually(func() []string { return onHub(ctx) }).Should(Equal(want))
		rests(ctx)

		By("losing the mirror")
		stop()
		h.loseMirror(ctx)
		DeferCleanup(runAgent())
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).ShouldNot(BeNil())
		Eventually(func() []string { return historyOf(h.mirror(ctx).Status) }).Should(Equal(want))
		Consistently(func() []string { return onHub(ctx) }).Should(Equal(want))
	})

	It("begins with the next execution for a status of an earlier release, and writes nothing before", func(ctx context.Context) {
		stop := runAgent()
		h = newInstance(ctx, gatePackage(), map[string]string{"KIND": "ConfigMap"})
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		forget := func(i *kudo.Instance) { i.Status.History = nil }
		h.tamperStatus(ctx, forget)
		h.report(ctx, forget)
		DeferCleanup(runAgent())
		rests(ctx)
		Expect(onHub(ctx)).To(BeEmpty())

		h.change(ctx, requests("noop", "by-hand"))
		Eventually(func() []string { return onHub(ctx) }).Should(Equal([]string{"1 noop Request: Complete"}))
	})

	// by sets what addon-manager records of a change, and of a request.
	by := func(s *kudo.InstanceSpec, manager string) {
		version := types.NamespacedName{Namespace: s.OperatorVersion.Namespace, Name: s.OperatorVersion.Name}
		of := kudo.ChangeAuthor{Manager: manager, Kind: "AddOnDeploymentConfig", Name: "cluster1/kafka"}
		s.ChangedBy, s.RequestedBy = author.With(of, author.Values(version, *s)), nil
		if s.PlanExecution.PlanName != "" {
			s.RequestedBy = author.With(of, author.Request(s.PlanExecution))
		}
	}
	authors := func(ctx context.Context) (found []string) {
		for _, entry := range h.get(ctx).Status.History {
			found = append(found, string(entry.Cause)+" by "+entry.By)
		}
		return found
	}

	It("names who asked for a change or a plan, as addon-manager has recorded it", func(ctx context.Context) {
		DeferCleanup(runAgent())
		h = newInstance(ctx, gatePackage(), map[string]string{"KIND": "ConfigMap"})
		h.change(ctx, func(s *kudo.InstanceSpec) { by(s, "kubectl-addon") })
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.change(ctx, func(s *kudo.InstanceSpec) {
			requests("noop", "by-hand")(s)
			by(s, "kubectl\x1b[31m")
		})
		Eventually(func() []string { return authors(ctx) }).Should(Equal([]string{
			"Install by kubectl-addon (AddOnDeploymentConfig cluster1/kafka)", "Request by kubectl^[[31m (AddOnDeploymentConfig cluster1/kafka)",
		}))

		By("another request, whose author is not recorded")
		h.change(ctx, requests("noop", "by-hand-again"))
		Eventually(func() []string { return authors(ctx) }).Should(HaveLen(3))
		Expect(authors(ctx)[2]).To(Equal("Request by "))
	})

	It("lacks who asked while the managed cluster's CustomResourceDefinition is older, and the mirror is written once", func(ctx context.Context) {
		DeferCleanup(runAgent())
		restore := dropField(ctx, "changedBy")
		h = newInstance(ctx, gatePackage(), map[string]string{"KIND": "ConfigMap"})
		h.change(ctx, func(s *kudo.InstanceSpec) { by(s, "kubectl-addon") })
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(authors(ctx)).To(Equal([]string{"Install by "}))
		rests(ctx)
		restore(ctx)
	})
})
