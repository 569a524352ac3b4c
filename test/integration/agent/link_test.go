package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// link is a connection to the hub that can be cut: open connections break, and new ones fail.
type link struct {
	mutex       sync.Mutex
	isCut       bool
	connections []net.Conn
}

// through returns a copy of config whose clients use the link.
func (l *link) through(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Dial = l.dial
	return config
}

func (l *link) dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.isCut {
		return nil, errors.Join(errors.New("the link is cut"), connection.Close())
	}
	l.connections = append(l.connections, connection)
	return connection, nil
}

func (l *link) cut() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.isCut = true
	for _, connection := range l.connections {
		_ = connection.Close() // some are already closed by their users
	}
	l.connections = nil
}

func (l *link) mend() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.isCut = false
}

// afterOutage is longer than the longest retry delay for the hub.
const afterOutage = 75 * time.Second

var _ = Describe("While the hub is away", func() {
	var (
		toHub *link
		stop  func()
	)
	BeforeEach(func() {
		toHub = &link{}
		stop = runAgentWith(toHub.through(agentOnHub), agentLocally)
	})
	AfterEach(func(ctx context.Context) {
		Expect(invariants.Violations(ctx, hub)).To(BeEmpty())
		stop()
	})

	It("plans continue, and their last state arrives when it is back, as changes made meanwhile do", func(ctx context.Context) {
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("Deployment"))
		toHub.cut()
		h.rollOut(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.mirror(ctx).Status.PlanStatus["deploy"].Status }).Should(Equal(kudo.Complete))
		for _, value := range []string{"second", "third"} {
			h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": value} })
		}
		Consistently(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.InProgress))
		Expect(h.config(ctx, "-config")).To(Equal("one"))

		toHub.mend()
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).WithTimeout(afterOutage).Should(Equal(kudo.Complete))
		Eventually(func() string { return h.config(ctx, "-config") }).WithTimeout(afterOutage).Should(Equal("third"))
		Eventually(func() kudo.ExecutionStatus {
			h.rollOut(ctx) // whenever the plan changes the Deployment
			return h.plan(ctx, "update").Status
		}).Should(Equal(kudo.Complete))
		h.finish(ctx)
	})

	It("a removal that has started is finished, and reported when it is back", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.holds(ctx, "-config", hold)
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Reason", kudo.ReasonRemoving))

		toHub.cut()
		h.holds(ctx, "-config")
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(HaveValue(HaveField("IsRemoved()", true)))
		Expect(h.ready(ctx).Reason).To(Equal(kudo.ReasonRemoving))

		toHub.mend()
		Eventually(func() metav1.Condition { return h.ready(ctx) }).WithTimeout(afterOutage).Should(HaveField("Reason", kudo.ReasonRemoved))
		h.release(ctx)
	})
})

// withoutWatches returns a connection to a server that answers no watch.
func withoutWatches(to *rest.Config) *rest.Config {
	return withRequestHook(to, func(request *http.Request) {
		if request.URL.Query().Has("watch") {
			<-request.Context().Done()
		}
	})
}

var _ = Describe("The way to the hub", func() {
	DescribeTable("is replaced when it leads elsewhere", func(ctx context.Context, from func() *rest.Config) {
		nowhere := from()
		var way atomic.Pointer[rest.Config]
		way.Store(nowhere)
		DeferCleanup(runAgentWith(nil, agentLocally, func(o *agent.Options) {
			o.Hub = func() (*rest.Config, error) { return rest.CopyConfig(way.Load()), nil }
			o.HubPeriod = 100 * time.Millisecond
		}))
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		Consistently(func() *kudo.Instance { return h.mirror(ctx) }).Should(BeNil())
		way.Store(agentOnHub)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
	},
		Entry("from a server that refuses connections", func() *rest.Config {
			nowhere := rest.CopyConfig(agentOnHub)
			nowhere.Host = "https://127.0.0.1:1"
			return nowhere
		}),
		Entry("from a server that answers no watch", func() *rest.Config {
			unwatched := withoutWatches(agentOnHub)
			unwatched.APIPath = "/unwatched" // clients do not use it
			return unwatched
		}),
	)
})

// handlers counts the event handlers of all caches in this process.
func handlers() int {
	var stacks bytes.Buffer
	Expect(pprof.Lookup("goroutine").WriteTo(&stacks, 2)).To(Succeed())
	return strings.Count(stacks.String(), "processorListener).run(")
}

var _ = Describe("A new connection to the hub", func() {
	It("leaves none of the previous one's event handlers in the caches of the managed cluster", func(ctx context.Context) {
		var (
			way     atomic.Pointer[rest.Config]
			reached atomic.Int32 // the last connection that was used
		)
		connect := func(number int32) {
			config := withRequestHook(agentOnHub, func(*http.Request) { reached.Store(number) })
			config.APIPath = fmt.Sprint("/", number) // clients do not use it
			way.Store(config)
		}
		connect(0)
		DeferCleanup(runAgentWith(nil, agentLocally, func(o *agent.Options) {
			o.Hub = func() (*rest.Config, error) { return rest.CopyConfig(way.Load()), nil }
			o.HubPeriod = 100 * time.Millisecond
			o.Standalone = true // it watches leases, too
		}))
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		var first int
		Eventually(func() bool {
			before := first
			first = handlers()
			return first == before
		}).WithPolling(time.Second).Should(BeTrue(), "all handlers are added")
		for number := int32(1); number <= 2; number++ {
			before := h.plan(ctx, "deploy")
			connect(number)
			Eventually(reached.Load).Should(Equal(number))
			h.change(ctx, setParameter("VALUE", fmt.Sprint(number)))
			h.completes(ctx, "deploy", before)
			Eventually(handlers).Should(Equal(first))
		}
		h.finish(ctx)
	})
})

var _ = Describe("An agent that ends", func() {
	It("keeps the caches of the managed cluster while the controllers of the hub end, which use them", func(ctx context.Context) {
		var (
			mutex        sync.Mutex
			watches      []context.Context // of the managed cluster
			hold, intact atomic.Bool
		)
		held := make(chan struct{})
		locally := withRequestHook(agentLocally, func(request *http.Request) {
			if request.URL.Query().Has("watch") {
				mutex.Lock()
				defer mutex.Unlock()
				watches = append(watches, request.Context())
			}
		})
		onHub := withRequestHook(agentOnHub, func(request *http.Request) {
			if !strings.HasSuffix(request.URL.Path, "/status") || !hold.CompareAndSwap(true, false) {
				return
			}
			close(held)
			<-request.Context().Done()
			<-time.After(500 * time.Millisecond) // the caches would end meanwhile
			mutex.Lock()
			defer mutex.Unlock()
			intact.Store(slices.ContainsFunc(watches, func(c context.Context) bool { return c.Err() == nil }))
		})
		stop := runAgentWith(onHub, locally)
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		hold.Store(true)
		h.change(ctx, setParameter("VALUE", "two"))
		Eventually(held).Should(BeClosed())
		stop()
		Expect(intact.Load()).To(BeTrue())
		runAgent()
		h.finish(ctx)
	})
})

// reports counts the reports of the Instance among the writes of an agent on the hub.
func (h *hubPart) reports(writes *environment.Writes) (count int) {
	for _, request := range writes.Requests() {
		if strings.HasSuffix(request, "/instances/"+h.name+"/status") {
			count++
		}
	}
	return count
}

var _ = Describe("Reports", func() {
	It("of a plan of many steps are coalesced, and the last state arrives", func(ctx context.Context) {
		const interval, steps = 2 * time.Second, 40
		onHub, writes := environment.RecordWrites(agentOnHub)
		DeferCleanup(runAgentWith(onHub, agentLocally, func(o *agent.Options) { o.ReportInterval = interval }))
		spec, done := configOnly(), task("done", kudo.TaskDummy)
		done.Spec.Done = true
		spec.Tasks = append(spec.Tasks, done)
		phase := kudo.Phase{Name: "main"}
		for i := range steps {
			phase.Steps = append(phase.Steps, kudo.Step{Name: fmt.Sprint("step-", i), Tasks: []string{"done"}})
		}
		spec.Plans["deploy"] = kudo.Plan{Phases: []kudo.Phase{phase}}
		h := newInstance(ctx, spec, nil)
		start := time.Now()
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.plan(ctx, "deploy").Phases[0].Steps).To(HaveLen(steps))
		Expect(h.reports(writes)).To(BeNumerically("<=", 1+int(time.Since(start)/interval)))
		h.finish(ctx)
	})

	It("of a plan that ends within the interval have only its end", func(ctx context.Context) {
		const interval = 20 * time.Second
		onHub, writes := environment.RecordWrites(agentOnHub)
		start := time.Now()
		stop := runAgentWith(onHub, agentLocally, func(o *agent.Options) { o.ReportInterval = interval })
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		h.rollOut(ctx) // some time after its Deployment is applied
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.reports(writes)).To(BeNumerically("<=", 2+int(time.Since(start)/interval)),
			"the first one may precede the plan, and delays that of its end by the interval")
		stop()
		DeferCleanup(runAgent())
		h.finish(ctx)
	})

	It("of the progress of many Instances are few, because most plans end soon, and all of them arrive", func(ctx context.Context) {
		spec := configOnly()
		spec.Tasks = append(spec.Tasks, task("wait", kudo.TaskDummy))
		spec.Plans["deploy"] = serial("config", "wait")
		all := newInstance(ctx, spec, nil).siblings(ctx, 20)
		onHub, writes := environment.RecordWrites(agentOnHub)
		start := time.Now()
		DeferCleanup(runAgentWith(onHub, agentLocally))
		reported := func() (count int) {
			for _, h := range all {
				count += min(h.reports(writes), 1)
			}
			return count
		}
		Eventually(reported).Should(BeNumerically(">=", 5), "those of the first ones are not delayed")
		Consistently(func() int { return reported() - int(time.Since(start).Seconds()) }).WithTimeout(4 * time.Second).Should(BeNumerically("<=", 6))
		Eventually(reported).WithTimeout(timeout).Should(Equal(len(all)))
		for _, h := range all {
			h.finish(ctx)
		}
	})

	It("are sent immediately if the hub has to create a child, and after those of children whose plans have ended", func(ctx context.Context) {
		stop := runAgentWith(agentOnHub, agentLocally, func(o *agent.Options) { o.ReportInterval = time.Hour })
		spec, failing, fatal := configOnly(), configOnly(), task("config", kudo.TaskDummy)
		fatal.Spec.WantErr, fatal.Spec.Fatal = true, true
		failing.Tasks = []kudo.Task{fatal}
		for _, name := range []string{"first", "second"} {
			bring := task(name, kudo.TaskKudoOperator)
			bring.Spec.Package = name
			spec.Tasks = append(spec.Tasks, bring)
		}
		spec.Plans["deploy"] = serial("config", "first", "second")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.step(ctx, 1) }).Should(Equal(kudo.InProgress))

		first := h.bear(ctx, "first", configOnly())
		Eventually(func() kudo.ExecutionStatus { return h.step(ctx, 2) }).Should(Equal(kudo.InProgress))
		Expect(first.ready(ctx).Status).To(Equal(metav1.ConditionTrue), first.ready(ctx).Message)

		second := h.bear(ctx, "second", failing)
		Eventually(func() kudo.ExecutionStatus { return h.mirror(ctx).Status.PlanStatus["deploy"].Status }).Should(Equal(kudo.FatalError))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "again"} })
		Eventually(func(g Gomega) {
			g.Expect(h.plan(ctx, "deploy").UID).To(BeEquivalentTo("again"))
			g.Expect(h.step(ctx, 1)).To(Equal(kudo.InProgress))
		}).Should(Succeed())
		Expect(second.plan(ctx, "deploy").Status).To(Equal(kudo.FatalError), "the hub is to run it again")

		stop()
		runAgent()
		for _, instance := range []*hubPart{first, second, h} {
			instance.finish(ctx)
		}
	})

	It("of one that is gone are not taken for those of the next of its name", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		var replaced atomic.Bool
		late := func(request *http.Request) {
			if request.Method != http.MethodPatch || path.Base(path.Dir(request.URL.Path)) != h.name || replaced.Load() {
				return
			}
			defer GinkgoRecover()
			if lost := h.get(ctx); lost.DeletionTimestamp != nil && h.mirror(ctx).IsRemoved() {
				h.release(ctx)
				h.again(ctx, lost)
				replaced.Store(true)
			}
		}
		DeferCleanup(runAgentWith(withRequestHook(agentOnHub, late), agentLocally))
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before := h.plan(ctx, "deploy")
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(replaced.Load).Should(BeTrue(), "it is made again while the last report of the one before is on its way")
		Consistently(func() *kudo.Execution { return h.get(ctx).Status.Execution }).Should(BeNil())
		h.resolve(ctx)
		h.completes(ctx, "deploy", before)
		Expect(h.config(ctx, "-config")).To(Equal("one"))
		h.finish(ctx)
	})
})

var _ = Describe("A mirror that is edited", func() {
	var stop func()
	BeforeEach(func() { stop = runAgent() })
	AfterEach(func() { stop() })

	type state struct {
		spec        kudo.InstanceSpec
		annotations map[string]string
		finalizers  []string
	}
	stateOf := func(i *kudo.Instance) state { return state{i.Spec, i.Annotations, i.Finalizers} }

	DescribeTable("is put back",
		func(ctx context.Context, edit func(*kudo.Instance), executesAgain bool) {
			h := newInstance(ctx, configOnly(), map[string]string{"VALUE": "mine"})
			h.resolve(ctx)
			h.completes(ctx, "deploy", kudo.PlanStatus{})
			before := h.mirror(ctx)
			h.tamper(ctx, edit)
			Eventually(func(g Gomega) {
				mirror := h.mirror(ctx)
				g.Expect(mirror.ResourceVersion).NotTo(Equal(before.ResourceVersion))
				g.Expect(stateOf(mirror)).To(Equal(stateOf(before)))
				g.Expect(mirror.Status.PlanStatus["deploy"].Status).To(Equal(kudo.Complete))
				g.Expect(h.config(ctx, "-config")).To(Equal("mine"))
			}).Should(Succeed())
			Expect(h.mirror(ctx).UID).To(Equal(before.UID))
			if !executesAgain {
				Consistently(func() string { return string(h.mirror(ctx).Status.Execution.UID) }).WithTimeout(time.Second).Should(
					Equal(string(before.Status.Execution.UID)))
			}
			h.finish(ctx)
		},
		Entry("in its parameters", func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "theirs"} }, true),
		Entry("in the plan that it asks for", func(i *kudo.Instance) {
			i.Spec.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "theirs"}
		}, true),
		Entry("in its identity", func(i *kudo.Instance) { i.Annotations[kudo.AnnotationHubUID] = "another" }, false),
		Entry("which takes its identity away", func(i *kudo.Instance) { delete(i.Annotations, kudo.AnnotationHubUID) }, false),
		Entry("in its generation", func(i *kudo.Instance) { i.Annotations[kudo.AnnotationHubGeneration] = "7000" }, false),
		Entry("which takes its generation away, and what it has executed is not what the hub knew last",
			func(i *kudo.Instance) { delete(i.Annotations, kudo.AnnotationHubGeneration) }, false),
		Entry("in the mark of orphans", func(i *kudo.Instance) { i.Annotations[kudo.AnnotationOrphaned] = "true" }, false),
		Entry("in its finalizer", func(i *kudo.Instance) { i.Finalizers = nil }, false),
	)
})

var _ = Describe("An Instance that the hub releases", func() {
	var stop func()
	BeforeEach(func() { stop = runAgent() })
	AfterEach(func(ctx context.Context) {
		Expect(invariants.Violations(ctx, hub)).To(BeEmpty())
		stop()
	})

	// stuck returns a package with a cleanup that never completes.
	stuck := func() kudo.OperatorVersionSpec {
		spec := configOnly()
		spec.Plans["cleanup"] = serial("wait")
		spec.Tasks = append(spec.Tasks, task("wait", kudo.TaskDummy))
		return spec
	}
	release := And(HaveKey(kudo.AnnotationOrphaned), HaveKey(kudo.AnnotationHubDeleted))

	It("by force stays unchanged, marked, and is deployed again for the next of its name", func(ctx context.Context) {
		h := newInstance(ctx, stuck(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before := h.plan(ctx, "deploy").UID
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "cleanup").Status }).Should(Equal(kudo.InProgress))

		lost := h.get(ctx)
		h.force(ctx)
		Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).Should(release, "the agent does not wait for the hub")
		h.release(ctx)
		Consistently(func() string { return h.config(ctx, "-config") }).Should(Equal("one"))
		Expect(h.mirror(ctx).DeletionTimestamp).To(BeNil())
		Expect(h.mirror(ctx).Finalizers).To(BeEmpty())

		By("enabling it again")
		h.again(ctx, lost)
		h.resolve(ctx)
		Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).ShouldNot(Or(
			HaveKey(kudo.AnnotationOrphaned), HaveKey(kudo.AnnotationHubDeleted)))
		h.completes(ctx, "deploy", kudo.PlanStatus{UID: before})
		Expect(h.plan(ctx, "cleanup").Status).To(Equal(kudo.NeverRun))

		By("deleting it by force from the first")
		h.force(ctx)
		Consistently(func() map[string]string { return h.mirror(ctx).Annotations }).WithTimeout(time.Second).ShouldNot(
			HaveKey(kudo.AnnotationOrphaned), "it is not deleted")
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).Should(And(
			HaveKey(kudo.AnnotationOrphaned), Not(HaveKey(kudo.AnnotationHubDeleted))))
		h.release(ctx)
	})

	It("by force does not miss, once it is deployed again, what its removal has deleted", func(ctx context.Context) {
		spec := stuck()
		spec.Templates["held.yaml"] = fmt.Sprintf(configTemplate, "held")
		spec.Tasks = append(spec.Tasks, task("held", kudo.TaskApply, "held.yaml"))
		spec.Plans["more"] = serial("farewell", "held")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		lost, before := h.get(ctx), h.plan(ctx, "deploy").UID
		h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{PlanName: "more", UID: "by-hand"} })
		h.resolve(ctx)
		h.completes(ctx, "more", kudo.PlanStatus{})
		h.holds(ctx, "-held", "example.com/hold")
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "cleanup").Status }).Should(Equal(kudo.InProgress))
		h.force(ctx)
		Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).Should(release)
		h.release(ctx)
		Expect(managed.Delete(ctx, h.object(ctx, "-farewell"))).To(Succeed())
		Expect(managed.Delete(ctx, h.object(ctx, "-held"))).To(Succeed())

		By("enabling it again")
		h.again(ctx, lost)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{UID: before})
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))

		By("removing the finalizer of the held object")
		h.holds(ctx, "-held")
		Eventually(func() string { return h.config(ctx, "-held") }).Should(BeEmpty())
		Consistently(func() metav1.Condition { return h.ready(ctx) }).WithTimeout(time.Second).Should(HaveField("Status", metav1.ConditionTrue))

		h.force(ctx)
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).Should(HaveKey(kudo.AnnotationOrphaned))
		h.release(ctx)
	})

	It("while the agent is away, it finds out when it is back", func(ctx context.Context) {
		h := newInstance(ctx, stuck(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "cleanup").Status }).Should(Equal(kudo.InProgress))
		stop()
		h.release(ctx)
		stop = runAgent()
		Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).Should(release)
		Expect(h.config(ctx, "-config")).To(Equal("one"))
	})

	It("and is deleted again before any of it was deployed again, is removed completely", func(ctx context.Context) {
		h := newInstance(ctx, stuck(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		lost := h.get(ctx)
		h.force(ctx)
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).Should(HaveKey(kudo.AnnotationOrphaned))
		stop()
		h.release(ctx)
		h.tamperStatus(ctx, func(mirror *kudo.Instance) {
			mirror.Status = kudo.InstanceStatus{Inventory: mirror.Status.Inventory}
			Expect(mirror.Status.Inventory).NotTo(BeEmpty())
		})
		h.again(ctx, lost)
		h.tamper(ctx, func(mirror *kudo.Instance) { mirror.Annotations[kudo.AnnotationHubUID] = string(h.get(ctx).UID) })
		stop = runAgent()
		h.finish(ctx)
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(BeNil())
		Expect(h.config(ctx, "-config")).To(BeEmpty())
		err := managed.Get(ctx, client.ObjectKey{Name: h.namespace + "-" + h.name}, &rbacv1.ClusterRole{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "no other controller deletes cluster-scoped objects: %v", err)
	})

	It("because it was restored from before the deletion, it is deployed again", func(ctx context.Context) {
		h := newInstance(ctx, stuck(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		backup := h.get(ctx)
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "cleanup").Status }).Should(Equal(kudo.InProgress))
		stop()
		h.release(ctx)
		h.restore(ctx, backup)
		stop = runAgent()
		h.completes(ctx, "deploy", kudo.PlanStatus{UID: backup.Status.Execution.UID})
		Expect(h.mirror(ctx).Annotations).NotTo(HaveKey(kudo.AnnotationHubDeleted))
		h.force(ctx)
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		h.release(ctx)
	})
})

var _ = Describe("A hub restored from a backup", func() {
	It("learns what was executed since, and nothing is executed again", func(ctx context.Context) {
		stop := runAgent()
		spec := configOnly()
		h := newInstance(ctx, spec, map[string]string{"VALUE": "old"})
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		backup := h.get(ctx)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "new"} })
		h.completes(ctx, "deploy", backup.Status.PlanStatus["deploy"])
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("new"))
		executed := h.mirror(ctx).Status.Execution.UID

		By("a status that is older than what the mirror says, under the spec of now")
		stop()
		h.report(ctx, func(i *kudo.Instance) {
			i.Status.Execution, i.Status.PlanStatus = backup.Status.Execution, backup.Status.PlanStatus
		})
		stop = runAgent()
		Eventually(func() *kudo.Execution { return h.get(ctx).Status.Execution }).Should(HaveField("UID", executed))
		Consistently(func() *kudo.Execution { return h.mirror(ctx).Status.Execution }).WithTimeout(time.Second).Should(HaveField("UID", executed))

		By("an older spec too, which is what is wanted then")
		stop()
		h.lose(ctx)
		h.restore(ctx, backup)
		stop = runAgent()
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("old"))
		h.finish(ctx)
		stop()
	})
})

// force marks the Instance so that no controller waits for its removal once it is deleted.
func (h *hubPart) force(ctx context.Context) {
	GinkgoHelper()
	before := h.get(ctx)
	forced := before.DeepCopy()
	forced.Annotations = map[string]string{kudo.AnnotationForceRelease: "true"}
	Expect(hub.Patch(ctx, forced, client.MergeFrom(before))).To(Succeed())
}

// restore re-creates the Instance on the hub from a backup, including its status; its UID is always new.
func (h *hubPart) restore(ctx context.Context, backup *kudo.Instance) {
	GinkgoHelper()
	h.again(ctx, backup.DeepCopy())
	h.report(ctx, func(i *kudo.Instance) {
		i.Status = *backup.Status.DeepCopy()
		meta.RemoveStatusCondition(&i.Status.Conditions, kudo.ConditionResolved)
	})
	h.resolve(ctx)
}

var _ = Describe("An agent that is stopped while it starts", func() {
	It("ends without an error", func(ctx context.Context) {
		silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		DeferCleanup(silent.Close)
		DeferCleanup(silent.CloseClientConnections) // runs first: what is read without a context ends with the connection
		for _, locally := range []*rest.Config{agentLocally, withoutWatches(agentLocally), {Host: silent.URL}} {
			for _, after := range []time.Duration{0, 10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond} {
				By("stopping one of " + locally.Host + " after " + after.String())
				running, end := context.WithTimeout(ctx, after)
				DeferCleanup(end)
				Expect(agent.Run(running, agent.Options{
					ClusterName: clusterName, Hub: func() (*rest.Config, error) { return agentOnHub, nil }, Local: locally,
					MetricsAddress: "0", ProbeAddress: "0",
				})).To(Succeed())
			}
		}
	})
})
