package agent

import (
	"context"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/faults/proxy"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// use makes the Instance use that version of its package.
func (h *hubPart) use(ctx context.Context, version string) {
	GinkgoHelper()
	h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-" + version })
}

// recorded returns a condition of the mirror; nil if it is absent.
func (h *hubPart) recorded(ctx context.Context, condition string) *metav1.Condition {
	GinkgoHelper()
	return meta.FindStatusCondition(h.mirror(ctx).Status.Conditions, condition)
}

var _ = Describe("An agent whose cache has a mirrored OperatorVersion that no longer exists", func() {
	var (
		h *hubPart
		// stale is a resource version of the managed cluster at which the first version exists, while the Instance runs the second one.
		stale string
	)
	// dropsFirst installs the first version and upgrades to the second one. drops is called before the agent deletes the first one.
	dropsFirst := func(ctx context.Context, to *rest.Config, drops func()) (stop func()) {
		GinkgoHelper()
		var (
			mutex sync.Mutex
			first string
		)
		stop = runAgentWith(agentOnHub, withRequestHook(to, func(request *http.Request) {
			mutex.Lock()
			defer mutex.Unlock()
			if request.Method == http.MethodDelete && path.Base(request.URL.Path) == first {
				drops()
				first = ""
			}
		}))
		h = newInstance(ctx, configOnly(), nil)
		next := configOnly()
		next.Version = "2.0.0"
		push(ctx, h.name+"-2.0.0", next)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		mutex.Lock()
		first = h.mirror(ctx).Spec.OperatorVersion.Name
		mutex.Unlock()
		h.use(ctx, "2.0.0")
		Eventually(func() string {
			mutex.Lock()
			defer mutex.Unlock()
			return first
		}).Should(BeEmpty())
		Eventually(h.versions).WithArguments(ctx).Should(ConsistOf(HavePrefix(h.name + "-2.0.0-")))
		return stop
	}
	// hasFirst reports whether the mirror names the first version, which exists.
	hasFirst := func(ctx context.Context) func(Gomega) {
		return func(g Gomega) {
			named := h.mirror(ctx).Spec.OperatorVersion.Name
			g.Expect(named).To(HavePrefix(h.name + "-1.0.0-"))
			g.Expect(h.versions(ctx)).To(ContainElement(named))
		}
	}

	It("mirrors it again if it has deleted it, before an Instance names it", func(ctx context.Context) {
		var gate sync.RWMutex
		link := startProxy(agentLocally, func(*proxy.Write) proxy.Fault { return proxy.Fault{} })
		stop := dropsFirst(ctx, holdEvents(through(link), "operatorversions", &gate), gate.Lock)
		open := sync.OnceFunc(gate.Unlock)
		DeferCleanup(stop)
		DeferCleanup(open)

		h.use(ctx, "1.0.0")
		Eventually(hasFirst(ctx)).Should(Succeed())
		open()
		Eventually(func(g Gomega) {
			g.Expect(h.mirror(ctx).Status.Whole).To(HaveField("Version", "1.0.0"))
			g.Expect(h.versions(ctx)).To(ConsistOf(HavePrefix(h.name + "-1.0.0-")))
		}).Should(Succeed())
		Eventually(link.Idle).WithArguments(500*time.Millisecond).Should(BeTrue(), "the proxy has the responses, too")
		var writes []string
		for _, w := range link.Journal() {
			if w.Resource == "operatorversions" && w.Namespace == h.namespace && w.IsSuccess() {
				writes = append(writes, w.Verb)
			}
			if w.Kind() == "instances/status" && w.Name == h.name {
				Expect(string(w.Raw)).NotTo(ContainSubstring(kudo.ReasonNotMirrored))
			}
		}
		Expect(writes).To(Equal([]string{"create", "create", "delete", "create", "delete"}))
		h.finish(ctx)
	})

	It("mirrors it again if an agent has deleted it that ran before", func(ctx context.Context) {
		dropsFirst(ctx, agentLocally, func() {
			var before kudo.OperatorVersionList
			Expect(managed.List(ctx, &before, client.Limit(1))).To(Succeed())
			stale = before.ResourceVersion
		})()
		h.use(ctx, "1.0.0")

		locally, current := rest.CopyConfig(agentLocally), make(chan struct{})
		environment.MakeStale(locally, "operatorversions", stale, current)
		stop := runAgentWith(agentOnHub, locally)
		open := sync.OnceFunc(func() { close(current) })
		DeferCleanup(stop)
		DeferCleanup(open)
		Eventually(hasFirst(ctx)).Should(Succeed())
		open()
		Eventually(func() *kudo.WholeVersion { return h.mirror(ctx).Status.Whole }).Should(HaveField("Version", "1.0.0"))
		h.finish(ctx)
	})
})

var _ = Describe("An agent that may not delete a mirrored OperatorVersion", func() {
	It("reads it from its cache when it is needed again", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		next := configOnly()
		next.Version = "2.0.0"
		push(ctx, h.name+"-2.0.0", next)
		var refused atomic.Pointer[string]
		refused.Store(new(string))
		tried := make(chan struct{})
		once := sync.OnceFunc(func() { close(tried) })
		link := startProxy(agentLocally, func(w *proxy.Write) proxy.Fault {
			var fault proxy.Fault
			if w.Verb == "delete" && w.Resource == "operatorversions" && w.Name == *refused.Load() {
				fault.Refuse = http.StatusForbidden
				once()
			}
			return fault
		})
		locally, reads := environment.RecordReads(through(link))
		runAgentWith(agentOnHub, locally)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		first := h.mirror(ctx).Spec.OperatorVersion.Name
		refused.Store(&first)
		h.use(ctx, "2.0.0")
		Eventually(tried).WithTimeout(timeout).Should(BeClosed())

		h.use(ctx, "1.0.0")
		Eventually(func(g Gomega) {
			g.Expect(h.mirror(ctx).Status.Whole).To(HaveField("Version", "1.0.0"))
			g.Expect(h.versions(ctx)).To(ConsistOf(first))
		}).Should(Succeed())
		before := reads.Of("/operatorversions/" + first)
		for _, value := range []string{"two", "three"} {
			h.tamper(ctx, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"VALUE": value} })
			Eventually(func() map[string]string { return h.mirror(ctx).Spec.Parameters }).Should(BeEmpty(), "the mirror is put back")
		}
		Expect(reads.Of("/operatorversions/" + first)).To(Equal(before))
		h.finish(ctx)
	})
})

var _ = Describe("A mirrored OperatorVersion that is not needed any more", func() {
	It("is deleted although the first try ends in a conflict", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		next := configOnly()
		next.Version = "2.0.0"
		push(ctx, h.name+"-2.0.0", next)
		var conflicts atomic.Int32
		link := startProxy(agentLocally, func(w *proxy.Write) proxy.Fault {
			var fault proxy.Fault
			if w.Verb == "delete" && w.Resource == "operatorversions" && strings.HasPrefix(w.Name, h.name+"-") && conflicts.Add(1) == 1 {
				fault.Refuse = http.StatusConflict
			}
			return fault
		})
		DeferCleanup(runAgentWith(agentOnHub, through(link)))
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.use(ctx, "2.0.0")
		Eventually(func(g Gomega) {
			g.Expect(h.mirror(ctx).Status.Whole).To(HaveField("Version", "2.0.0"))
			g.Expect(h.versions(ctx)).To(ConsistOf(h.mirror(ctx).Spec.OperatorVersion.Name))
		}).Should(Succeed())
		Expect(conflicts.Load()).To(BeNumerically(">", 1))
		h.finish(ctx)
	})
})

var _ = Describe("An Instance whose mirrored OperatorVersion is lost while the hub is away", func() {
	It("stays available as long as its workloads are", func(ctx context.Context) {
		toHub := &link{}
		stop := runAgentWith(toHub.through(agentOnHub), agentLocally)
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		toHub.cut()
		DeferCleanup(stop)
		DeferCleanup(toHub.mend)
		lost := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.mirror(ctx).Spec.OperatorVersion.Name}}
		Expect(managed.Delete(ctx, lost)).To(Succeed())
		ready := func() *metav1.Condition { return h.recorded(ctx, kudo.ConditionReady) }
		serves := func() *metav1.Condition { return h.recorded(ctx, kudo.ConditionAvailable) }
		Eventually(ready).Should(HaveValue(is(metav1.ConditionFalse, kudo.ReasonNotMirrored, lost.Name)))
		Expect(serves()).To(HaveValue(is(metav1.ConditionTrue, kudo.ReasonUpdating, lost.Name)))

		By("losing the pods of the workload")
		h.serve(ctx, 0, corev1.ConditionFalse)
		Eventually(serves).Should(HaveValue(is(metav1.ConditionFalse, kudo.ReasonUnhealthy, "-app: is not available")))
		Expect(ready()).To(HaveValue(is(metav1.ConditionFalse, kudo.ReasonNotMirrored, lost.Name)))

		By("restarting the agent before they are there again")
		stop()
		stop = runAgentWith(toHub.through(agentOnHub), agentLocally)
		DeferCleanup(func() { stop() })
		h.rollOut(ctx)
		Eventually(serves).Should(HaveValue(is(metav1.ConditionTrue, kudo.ReasonUpdating, lost.Name)))
		Expect(ready()).To(HaveValue(is(metav1.ConditionFalse, kudo.ReasonNotMirrored, lost.Name)))

		toHub.mend()
		Eventually(ready).Should(HaveValue(HaveField("Status", metav1.ConditionTrue)))
		h.finish(ctx)
	})

	It("is not available any longer once its plan takes too long, which cannot continue", func(ctx context.Context) {
		toHub := &link{}
		stop := runAgentWith(toHub.through(agentOnHub), agentLocally)
		DeferCleanup(func() { stop() })
		DeferCleanup(toHub.mend)
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.change(ctx, setParameter("REPLICAS", "3"))
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "update").Status }).Should(Equal(kudo.InProgress))
		toHub.cut()
		lost := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.mirror(ctx).Spec.OperatorVersion.Name}}
		Expect(managed.Delete(ctx, lost)).To(Succeed())
		serves := func() *metav1.Condition { return h.recorded(ctx, kudo.ConditionAvailable) }
		Eventually(func() *metav1.Condition { return h.recorded(ctx, kudo.ConditionReady) }).Should(
			HaveValue(is(metav1.ConditionFalse, kudo.ReasonNotMirrored, lost.Name)))
		Expect(serves()).To(HaveValue(is(metav1.ConditionTrue, kudo.ReasonUpdating, lost.Name)))

		stop()
		h.tamperStatus(ctx, func(i *kudo.Instance) {
			status := i.Status.PlanStatus["update"]
			started := metav1.NewTime(status.StartedTimestamp.Add(-11 * time.Minute))
			status.StartedTimestamp = &started
			i.Status.PlanStatus["update"] = status
		})
		stop = runAgentWith(toHub.through(agentOnHub), agentLocally)
		Eventually(serves).Should(HaveValue(is(metav1.ConditionFalse, kudo.ReasonPlanInProgress,
			`plan "update" has been running for more than 10m0s: OperatorVersion "`+lost.Name)))

		toHub.mend()
		h.rollOut(ctx)
		h.completes(ctx, "update", kudo.PlanStatus{})
		Expect(serves()).To(BeNil())
		h.finish(ctx)
	})
})
