package agent

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("An agent with leader election", func() {
	elected := func(o *agent.Options) {
		o.LeaderElection, o.LeaderElectionNamespace = true, agent.DefaultNamespace
	}
	lease := func() *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: "tandem-addon-agent"}}
	}
	holder := func(ctx context.Context) string {
		GinkgoHelper()
		held := lease()
		Expect(client.IgnoreNotFound(managed.Get(ctx, client.ObjectKeyFromObject(held), held))).To(Succeed())
		return ptr.Deref(held.Spec.HolderIdentity, "")
	}

	BeforeEach(func(ctx context.Context) {
		makeAgentNamespace(ctx)
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(managed.Delete(ctx, lease()))).To(Succeed()) })
	})

	It("reads nothing but the Lease on standby, and takes over when the leader stops", func(ctx context.Context) {
		stop := runAgentWith(agentOnHub, agentLocally, elected)
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		first := holder(ctx)

		onHub, readsOfHub := environment.RecordReads(agentOnHub)
		locally, reads := environment.RecordReads(agentLocally)
		locally, writes := environment.RecordWrites(locally)
		const path = "/leases/tandem-addon-agent"
		stopSecond := runAgentWith(onHub, locally, elected)
		Eventually(func() []string { return reads.Of(path) }).ShouldNot(BeEmpty(), "it reads the Lease")
		stopSecond()
		Expect(holder(ctx)).To(Equal(first), "one on standby that stops releases nothing")
		runAgentWith(onHub, locally, elected)
		Consistently(func() []string { return append(reads.Of(""), readsOfHub.Of("")...) }).Should(HaveEach(ContainSubstring(path)))
		Expect(writes.Requests()).To(BeEmpty())

		before := h.plan(ctx, "deploy")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "while the first leads"} })
		h.completes(ctx, "deploy", before)
		before = h.plan(ctx, "deploy")
		stop()
		Expect(holder(ctx)).NotTo(Equal(first), "it releases the Lease")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters["VALUE"] = "while the second leads" })
		h.completes(ctx, "deploy", before)
		Expect(h.config(ctx, "-config")).To(Equal("while the second leads"))
		h.finish(ctx)
	})

	It("ends when it loses the Lease", func(ctx context.Context) {
		options := agent.Options{
			ClusterName: clusterName, Hub: func() (*rest.Config, error) { return agentOnHub, nil }, Local: agentLocally,
			MetricsAddress: "0", ProbeAddress: "0",
		}
		elected(&options)
		running, end := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- agent.Run(running, options) }()
		DeferCleanup(end)
		Eventually(func() string { return holder(ctx) }).ShouldNot(BeEmpty())
		Expect(environment.Edit(ctx, managed, lease(), func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = ptr.To("another"), ptr.To[int32](3600)
			l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now()))
		})).To(Succeed())
		Eventually(ended).Should(Receive(MatchError("leader election lost")))
		Expect(holder(ctx)).To(Equal("another"))
	})
})
