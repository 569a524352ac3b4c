package agent

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("An agent on standby", func() {
	elected := func(o *agent.Options) {
		o.LeaderElection, o.LeaderElectionNamespace = true, agent.DefaultNamespace
	}

	BeforeEach(makeAgentNamespace)

	It("reads nothing but the Lease, and takes over when the leader stops", func(ctx context.Context) {
		stop := runAgentWith(agentOnHub, agentLocally, elected)
		DeferCleanup(func(ctx context.Context) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: "tandem-addon-agent"}}
			Expect(managed.Delete(ctx, lease)).To(Succeed())
		})
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})

		onHub, readsOfHub := environment.Reading(agentOnHub)
		locally, reads := environment.Reading(agentLocally)
		runAgentWith(onHub, locally, elected)
		const lease = "/leases/tandem-addon-agent"
		Eventually(func() []string { return reads.Of(lease) }).ShouldNot(BeEmpty(), "it follows the Lease")
		Consistently(func() []string { return append(reads.Of(""), readsOfHub.Of("")...) }).Should(HaveEach(ContainSubstring(lease)))

		before := h.plan(ctx, "deploy")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "while the first leads"} })
		h.completes(ctx, "deploy", before)
		before = h.plan(ctx, "deploy")
		stop()
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters["VALUE"] = "while the second leads" })
		h.completes(ctx, "deploy", before)
		Expect(h.config(ctx, "-config")).To(Equal("while the second leads"))
		h.finish(ctx)
	})
})
