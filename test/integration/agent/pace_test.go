package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tandem-addons/tandem/pkg/agent"
	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// journal records the requests of an agent that name an Instance or its ConfigMaps.
type journal struct {
	mutex    sync.Mutex
	requests []string
}

// of returns a copy of config that records its requests, each as METHOD NAME.
func (j *journal) of(config *rest.Config) *rest.Config {
	return withRequestHook(config, func(request *http.Request) {
		_, name, _ := strings.Cut(request.URL.Path, "/namespaces/")
		_, name, _ = strings.Cut(name, "/")
		if strings.HasPrefix(name, "operatorversions") || strings.HasPrefix(name, "events") || request.URL.Query().Has("watch") {
			return
		}
		j.mutex.Lock()
		defer j.mutex.Unlock()
		j.requests = append(j.requests, request.Method+" "+name)
	})
}

// about returns the recorded requests that contain a name.
func (j *journal) about(name string) []string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	var found []string
	for _, request := range j.requests {
		if strings.Contains(request, name) {
			found = append(found, request)
		}
	}
	return found
}

// steps returns a package whose plan deploy has a serial step for each name, which applies a ConfigMap of that name.
func steps(names ...string) kudo.OperatorVersionSpec {
	spec := configOnly()
	for _, name := range names {
		spec.Templates[name+".yaml"] = fmt.Sprintf(configTemplate, name)
		spec.Tasks = append(spec.Tasks, task(name, kudo.TaskApply, name+".yaml"))
	}
	spec.Plans["deploy"] = serial(names...)
	return spec
}

// deploymentPackage returns a package whose plan deploy has a serial step that waits for a Deployment.
func deploymentPackage() kudo.OperatorVersionSpec {
	spec := steps("a", "b", "c")
	spec.Plans["deploy"] = serial("a", "b", "app", "c")
	return spec
}

// after returns a copy of config that calls do when the first request of that method for an object of that name was answered.
func after(method, name string, config *rest.Config, do func()) *rest.Config {
	var done atomic.Bool
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return sender(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && request.Method == method && path.Base(request.URL.Path) == name && done.CompareAndSwap(false, true) {
				defer GinkgoRecover()
				do()
			}
			return response, err
		})
	})
	return config
}

// holdEvents returns a copy of config that receives no event of a resource while gate is locked.
func holdEvents(config *rest.Config, resource string, gate *sync.RWMutex) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return sender(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && path.Base(request.URL.Path) == resource && request.URL.Query().Has("watch") {
				response.Body = gatedBody{response.Body, gate}
			}
			return response, err
		})
	})
	return config
}

// gatedBody is a body that passes on nothing while its gate is locked.
type gatedBody struct {
	io.ReadCloser
	gate *sync.RWMutex
}

func (b gatedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.gate.RLock()
	defer b.gate.RUnlock()
	return n, err
}

// withSlowPace keeps progress that nothing depends on unrecorded for as long as a busy machine may need for the next step.
func withSlowPace(o *agent.Options) { o.ProgressDelay = timeout }

var _ = Describe("A plan", func() {
	AfterEach(func(ctx context.Context) { Expect(invariants.Violations(ctx, hub)).To(BeEmpty()) })

	It("takes two writes of its status if no step waits, and at most one read of it", func(ctx context.Context) {
		warm := newInstance(ctx, steps("x"), nil) // otherwise ConfigMaps are not watched yet
		requests := &journal{}
		DeferCleanup(runAgentWith(agentOnHub, requests.of(agentLocally), withSlowPace))
		warm.resolve(ctx)
		warm.completes(ctx, "deploy", kudo.PlanStatus{})
		h := newInstance(ctx, steps("a", "b", "c", "d", "e"), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		applied := func(name string) string { return "PATCH configmaps/" + h.name + "-" + name }
		// If the mirror's event precedes the response to its creation or signature, the mirror is read once.
		signature, status := "PUT instances/"+h.name, "PUT instances/"+h.name+"/status"
		reads := func(request string) bool { return request == "GET instances/"+h.name }
		sent := requests.about("instances/" + h.name)
		Expect(slices.DeleteFunc(slices.Clone(sent), reads)).To(Equal([]string{signature, status, status}))
		Expect(len(sent)).To(BeNumerically("<=", 4), "%v", sent)
		Expect(requests.about("configmaps/"+h.name)).To(Equal([]string{applied("a"), applied("b"), applied("c"), applied("d"), applied("e")}),
			"no object is read")
		warm.finish(ctx)
		h.finish(ctx)
	})

	It("has one event if it ends soon, and another one if it runs for a while", func(ctx context.Context) {
		DeferCleanup(runAgent())
		short, long := newInstance(ctx, steps("a"), nil), newInstance(ctx, deploymentPackage(), nil)
		for _, h := range []*hubPart{short, long} {
			h.resolve(ctx)
		}
		short.completes(ctx, "deploy", kudo.PlanStatus{})
		Eventually(func() []string { return long.eventsOf(ctx, "PlanStarted") }).WithTimeout(timeout).Should(ConsistOf(`plan "deploy" started`))
		Expect(short.eventsOf(ctx, "PlanStarted")).To(BeEmpty())
		Expect(short.eventsOf(ctx, "PlanComplete")).To(ConsistOf(`plan "deploy" is complete`))
		long.rollOut(ctx)
		Eventually(func() []string { return long.eventsOf(ctx, "PlanComplete") }).Should(ConsistOf(`plan "deploy" is complete`))
		short.finish(ctx)
		long.finish(ctx)
	})

	It("has its OperatorVersion mirrored by one request if the namespace exists", func(ctx context.Context) {
		var (
			mutex    sync.Mutex
			requests []string
			gate     sync.RWMutex
			signed   string
		)
		DeferCleanup(runAgentWith(agentOnHub, withRequestHook(holdEvents(agentLocally, "operatorversions", &gate), func(request *http.Request) {
			mutex.Lock()
			defer mutex.Unlock()
			if _, own, found := strings.Cut(request.URL.Path, kudo.GroupVersion.String()+"/"); found && !request.URL.Query().Has("watch") {
				requests = append(requests, request.Method+" "+own)
				if signed != "" && request.Method+" "+own == signed {
					signed = ""
					gate.Unlock()
				}
			}
		})))
		Eventually(func() []string { return versionsToDrop(ctx) }).Should(BeEmpty(), "those of earlier specs are dropped first")
		warm := newInstance(ctx, steps("x"), nil) // otherwise ConfigMaps are not watched yet
		warm.resolve(ctx)
		warm.completes(ctx, "deploy", kudo.PlanStatus{})
		h := newInstance(ctx, steps("a"), nil)
		Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
		instances := "namespaces/" + h.namespace + "/instances"
		gate.Lock() // the cache lacks the OperatorVersion until the Instance is signed
		mutex.Lock()
		requests, signed = nil, "PUT "+instances+"/"+h.name
		mutex.Unlock()
		DeferCleanup(func() {
			mutex.Lock()
			defer mutex.Unlock()
			if signed != "" {
				gate.Unlock()
			}
		})
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		mutex.Lock()
		sent := slices.DeleteFunc(slices.Clone(requests), func(r string) bool { return !strings.Contains(r, " namespaces/"+h.namespace+"/") })
		mutex.Unlock()
		Expect(sent[:4]).To(Equal([]string{
			"POST namespaces/" + h.namespace + "/operatorversions", "POST " + instances, "PUT " + instances + "/" + h.name,
			"PUT " + instances + "/" + h.name + "/status",
		}), "nothing is read before the plan starts")
		warm.finish(ctx)
		h.finish(ctx)
	})

	It("records a step before a later one changes or deletes its object", func(ctx context.Context) {
		requests := &journal{}
		DeferCleanup(runAgentWith(agentOnHub, requests.of(agentLocally), withSlowPace))
		spec := steps("a", "b", "c")
		spec.Templates["again.yaml"] = strings.Replace(spec.Templates["a.yaml"], "{{ .Params.VALUE }}", "another", 1)
		spec.Tasks = append(spec.Tasks, task("again", kudo.TaskApply, "again.yaml"), task("away", kudo.TaskDelete, "b.yaml"))
		spec.Plans["deploy"] = serial("a", "b", "again", "c", "away")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.config(ctx, "-a")).To(Equal("another"))
		Expect(h.config(ctx, "-b")).To(BeEmpty())
		var changes []string
		for _, request := range requests.about(h.name) {
			if strings.HasPrefix(request, "PATCH") || strings.HasPrefix(request, "DELETE") || strings.HasSuffix(request, "/status") {
				changes = append(changes, strings.Replace(request, h.name, "I", 1))
			}
		}
		Expect(len(changes)).To(BeNumerically(">=", 8), "%v", changes)
		Expect(changes[:8]).To(Equal([]string{
			"PUT instances/I/status", "PATCH configmaps/I-a", "PATCH configmaps/I-b",
			"PUT instances/I/status", "PATCH configmaps/I-a", "PATCH configmaps/I-c", "DELETE configmaps/I-b",
			"PUT instances/I/status",
		}))
		h.finish(ctx)
	})

	It("continues after a restart of the agent between two steps that were not recorded", func(ctx context.Context) {
		var broken atomic.Bool
		reached := make(chan struct{})
		config := rest.CopyConfig(agentLocally)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return sender(func(request *http.Request) (*http.Response, error) {
				if request.Method == http.MethodPatch && strings.HasSuffix(path.Base(request.URL.Path), "-c") && broken.CompareAndSwap(false, true) {
					close(reached)
				}
				if broken.Load() {
					return nil, errors.New("the agent is being killed")
				}
				return next.RoundTrip(request)
			})
		})
		stop := runAgentWith(agentOnHub, config, withSlowPace)
		h := newInstance(ctx, steps("a", "b", "c"), nil)
		h.resolve(ctx)
		Eventually(reached).WithTimeout(timeout).Should(BeClosed())
		stop()
		before := h.mirror(ctx)
		Expect(before.Status.PlanStatus["deploy"].Phases[0].Steps[0].Status).To(Equal(kudo.Pending), "nothing is recorded")
		Expect(h.config(ctx, "-b")).To(Equal("one"), "it was applied all the same")

		DeferCleanup(runAgent())
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.plan(ctx, "deploy").UID).To(Equal(before.Status.Execution.UID))
		Expect(h.config(ctx, "-c")).To(Equal("one"))
		h.finish(ctx)
	})

	It("takes two writes of its status if the object that a step waits for is soon healthy", func(ctx context.Context) {
		requests := &journal{}
		h := newInstance(ctx, deploymentPackage(), nil)
		DeferCleanup(runAgentWith(agentOnHub, after(http.MethodPatch, h.name+"-app", requests.of(agentLocally), func() { h.rollOut(ctx) }), withSlowPace))
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		writes := func(about string) []string {
			return slices.DeleteFunc(requests.about(about), func(r string) bool { return strings.HasPrefix(r, "GET") })
		}
		signature, status := "PUT instances/"+h.name, "PUT instances/"+h.name+"/status"
		Expect(writes("instances/" + h.name)).To(Equal([]string{signature, status, status}))
		Expect(writes("configmaps/"+h.name)).To(HaveLen(3), "none is applied again")
		h.finish(ctx)
	})

	It("continues after a restart of the agent while a step waits whose progress was not recorded", func(ctx context.Context) {
		var broken atomic.Bool
		reached := make(chan struct{})
		h := newInstance(ctx, deploymentPackage(), nil)
		config := after(http.MethodPatch, h.name+"-app", agentLocally, func() {
			if broken.CompareAndSwap(false, true) {
				close(reached)
			}
		})
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return sender(func(request *http.Request) (*http.Response, error) {
				if broken.Load() {
					return nil, errors.New("the agent is being killed")
				}
				return next.RoundTrip(request)
			})
		})
		stop := runAgentWith(agentOnHub, config, withSlowPace)
		h.resolve(ctx)
		Eventually(reached).WithTimeout(timeout).Should(BeClosed())
		stop()
		before := h.mirror(ctx)
		Expect(before.Status.PlanStatus["deploy"].Phases[0].Steps[0].Status).To(Equal(kudo.Pending), "nothing is recorded")

		DeferCleanup(runAgent())
		Eventually(func() []kudo.StepStatus { return h.mirror(ctx).Status.PlanStatus["deploy"].Phases[0].Steps }).Should(HaveExactElements(
			HaveField("Status", kudo.Complete), HaveField("Status", kudo.Complete), HaveField("Status", kudo.InProgress), HaveField("Status", kudo.Pending)),
			"it is recorded if it does not continue")
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.plan(ctx, "deploy").UID).To(Equal(before.Status.Execution.UID))
		app := &appsv1.Deployment{}
		Expect(h.local(ctx, "-app", app)).To(BeTrue())
		Expect(app.Generation).To(Equal(int64(1)), "applying it again changes nothing")
		h.finish(ctx)
	})

	It("that failed before it applied an object does not leave that object missing", func(ctx context.Context) {
		DeferCleanup(runAgent())
		h := newInstance(ctx, steps("a", "b", "c"), nil)
		Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
		h.foreign(ctx, "-a")
		h.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.FatalError))
		Expect(h.get(ctx).Status.Inventory).To(HaveEach(HaveField("Pending", true)))
		Expect(h.inventoryOf(ctx)).To(ConsistOf("ConfigMap "+h.namespace+"/"+h.name+"-b", "ConfigMap "+h.namespace+"/"+h.name+"-c"))

		next := steps("b")
		next.Version = "2.0.0"
		push(ctx, h.name+"-2.0.0", next)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.get(ctx).Status.Inventory).To(ConsistOf(And(HaveField("Name", h.name+"-b"), HaveField("Pending", false))))
		h.finish(ctx)
	})

	It("does not adopt an object that appeared between listing and applying it", func(ctx context.Context) {
		var h *hubPart
		name := func() string {
			if h == nil {
				return ""
			}
			return h.name + "-a"
		}
		DeferCleanup(runAgentWith(agentOnHub, withRequestHook(agentLocally, once(http.MethodPatch, name, func() {
			h.foreign(ctx, "-b")
		}))))
		h = newInstance(ctx, steps("a", "b"), nil)
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring("was not created by this Instance"))))
		Expect(h.config(ctx, "-b")).To(Equal("foreign"))
		h.finish(ctx)
		Expect(managed.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name + "-b"}})).To(Succeed())
	})

	It("requests a child in the write that records the step before", func(ctx context.Context) {
		requests := &journal{}
		DeferCleanup(runAgentWith(agentOnHub, requests.of(agentLocally), withSlowPace))
		spec, bring := steps("a", "b"), task("child", kudo.TaskKudoOperator)
		bring.Spec.Package = "child"
		spec.Tasks = append(spec.Tasks, bring)
		spec.Plans["deploy"] = serial("a", "b", "child")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		Eventually(func() []kudo.PhaseStatus { return h.plan(ctx, "deploy").Phases }).Should(
			HaveExactElements(HaveField("Steps", HaveExactElements(
				HaveField("Status", kudo.Complete), HaveField("Status", kudo.Complete), HaveField("Status", kudo.InProgress)))))
		signature, status := "PUT instances/"+h.name, "PUT instances/"+h.name+"/status"
		writes := slices.DeleteFunc(requests.about("instances/"+h.name), func(r string) bool { return strings.HasPrefix(r, "GET") })
		Expect(writes).To(Equal([]string{signature, status, status}))
		child := h.bear(ctx, "child", configOnly())
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		child.finish(ctx)
		h.finish(ctx)
	})

	It("requests a child in the write that records the child before", func(ctx context.Context) {
		var (
			name   atomic.Value
			mutex  sync.Mutex
			stored []string
		)
		name.Store("")
		DeferCleanup(runAgentWith(agentOnHub, withRequestHook(agentLocally, func(request *http.Request) {
			if request.Method != http.MethodPut || !strings.HasSuffix(request.URL.Path, "/instances/"+name.Load().(string)+"/status") {
				return
			}
			defer GinkgoRecover()
			body, err := request.GetBody()
			Expect(err).NotTo(HaveOccurred())
			var written kudo.Instance
			Expect(json.NewDecoder(body).Decode(&written)).To(Succeed())
			var states []string
			for _, step := range written.Status.PlanStatus["deploy"].Phases[0].Steps {
				states = append(states, string(step.Status))
			}
			mutex.Lock()
			defer mutex.Unlock()
			stored = append(stored, strings.Join(states, " "))
		})))
		spec := steps("a")
		for _, child := range []string{"first", "second"} {
			bring := task(child, kudo.TaskKudoOperator)
			bring.Spec.Package = child
			spec.Tasks = append(spec.Tasks, bring)
		}
		spec.Plans["deploy"] = serial("first", "second", "a")
		h := newInstance(ctx, spec, nil)
		name.Store(h.name)
		h.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.step(ctx, 0) }).Should(Equal(kudo.InProgress))
		first := h.bear(ctx, "first", configOnly())
		Eventually(func() kudo.ExecutionStatus { return h.step(ctx, 1) }).Should(Equal(kudo.InProgress))
		second := h.bear(ctx, "second", configOnly())
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		mutex.Lock()
		states := slices.Compact(slices.Clone(stored))
		mutex.Unlock()
		Expect(states).To(Equal([]string{
			"PENDING PENDING PENDING", "IN_PROGRESS PENDING PENDING", "COMPLETE IN_PROGRESS PENDING",
			"COMPLETE COMPLETE PENDING", // before the next step applies anything
			"COMPLETE COMPLETE COMPLETE",
		}))
		for _, instance := range []*hubPart{first, second, h} {
			instance.finish(ctx)
		}
	})

	It("has its OperatorVersion read on the hub once, until the hub resolves the Instance again", func(ctx context.Context) {
		var name atomic.Value
		name.Store("")
		var reads atomic.Int32
		DeferCleanup(runAgentWith(withRequestHook(agentOnHub, func(request *http.Request) {
			if request.Method == http.MethodGet && path.Base(request.URL.Path) == name.Load() {
				reads.Add(1)
			}
		}), agentLocally))
		h := newInstance(ctx, steps("a", "b"), nil)
		name.Store(h.name + "-1.0.0")
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(reads.Load()).To(BeNumerically("<=", 2), "the second one if the cache lacks the mirrored OperatorVersion")
		before := reads.Load()
		h.tamper(ctx, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "two"} })
		Eventually(func() map[string]string { return h.mirror(ctx).Spec.Parameters }).Should(BeEmpty(), "the mirror is put back")
		Expect(reads.Load()).To(Equal(before))

		h.report(ctx, func(i *kudo.Instance) {
			meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionResolved).Status = metav1.ConditionFalse
		})
		h.resolve(ctx)
		Eventually(reads.Load).Should(Equal(before+1), "another OperatorVersion may have its name")
		h.finish(ctx)
	})
})

// siblings creates more Instances like this one, and resolves all of them. It returns that number of Instances.
func (h *hubPart) siblings(ctx context.Context, count int) []*hubPart {
	GinkgoHelper()
	all := []*hubPart{h}
	for i := 1; i < count; i++ {
		another := &hubPart{name: fmt.Sprintf("%s-%d", h.name, i), namespace: h.namespace}
		instance := another.onHub()
		instance.Finalizers, instance.Spec = []string{kudo.Finalizer}, h.get(ctx).Spec
		Expect(hub.Create(ctx, instance)).To(Succeed())
		all = append(all, another)
	}
	for _, each := range all {
		each.resolve(ctx)
	}
	return all
}

var _ = Describe("Instances that change at the same time", func() {
	AfterEach(func(ctx context.Context) { Expect(invariants.Violations(ctx, hub)).To(BeEmpty()) })

	It("share the reads of their OperatorVersion and of the cluster's namespace on the hub", func(ctx context.Context) {
		first := newInstance(ctx, configOnly(), nil)
		all := first.siblings(ctx, 20)
		reads := func(name string) (func() []time.Time, *rest.Config) {
			var (
				mutex sync.Mutex
				times []time.Time
			)
			config := withRequestHook(agentOnHub, func(request *http.Request) {
				if request.Method == http.MethodGet && path.Base(request.URL.Path) == name {
					mutex.Lock()
					defer mutex.Unlock()
					times = append(times, time.Now())
				}
			})
			return func() []time.Time {
				mutex.Lock()
				defer mutex.Unlock()
				return slices.Clone(times)
			}, config
		}
		versions, toHub := reads(first.name + "-1.0.0")
		stop := runAgentWith(toHub, agentLocally)
		for _, h := range all {
			h.completes(ctx, "deploy", kudo.PlanStatus{})
		}
		stop()
		Expect(len(versions())).To(BeNumerically("<=", mirror.Workers), "at most one for each worker")

		for _, h := range all {
			Expect(hub.Delete(ctx, h.onHub())).To(Succeed())
		}
		namespaces, toHub := reads(clusterName)
		DeferCleanup(runAgentWith(toHub, agentLocally))
		for _, h := range all {
			h.finish(ctx)
		}
		times := namespaces()
		Expect(times).NotTo(BeEmpty())
		whole := int(times[len(times)-1].Sub(times[0]) / time.Second)
		Expect(len(times)).To(BeNumerically("<=", (1+whole)*mirror.Workers), "at most one a second for each worker: %v", times)
	})
})

var _ = Describe("The objects of an Instance that is removed", func() {
	AfterEach(func(ctx context.Context) { Expect(invariants.Violations(ctx, hub)).To(BeEmpty()) })

	It("take one request each", func(ctx context.Context) {
		requests := &journal{}
		DeferCleanup(runAgentWith(agentOnHub, requests.of(agentLocally)))
		h := newInstance(ctx, steps("a", "b"), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before := len(requests.about("configmaps/" + h.name))
		h.finish(ctx)
		Expect(requests.about("configmaps/" + h.name)[before:]).To(ConsistOf("DELETE configmaps/"+h.name+"-a", "DELETE configmaps/"+h.name+"-b"))
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(BeNil())
		Consistently(func() []string {
			return slices.DeleteFunc(requests.about("instances/"+h.name), func(r string) bool { return !strings.HasPrefix(r, http.MethodDelete) })
		}).WithTimeout(time.Second).Should(HaveLen(1), "the mirror is deleted once")
	})

	It("take one request each, also if the garbage collector has to delete what they own", func(ctx context.Context) {
		requests := &journal{}
		DeferCleanup(runAgentWith(agentOnHub, requests.of(agentLocally)))
		spec := steps("a")
		spec.Templates["job.yaml"] = `apiVersion: batch/v1
kind: CronJob
metadata: {name: "{{ .Name }}"}
spec:
  schedule: "@daily"
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: job, image: job}]}
`
		spec.Tasks = append(spec.Tasks, task("job", kudo.TaskApply, "job.yaml"))
		spec.Plans["deploy"] = serial("a", "job")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		job, config := len(requests.about("cronjobs/"+h.name)), len(requests.about("configmaps/"+h.name))
		h.finish(ctx)
		Expect(requests.about("cronjobs/" + h.name)[job:]).To(ConsistOf("DELETE cronjobs/" + h.name))
		Expect(requests.about("configmaps/" + h.name)[config:]).To(ConsistOf("DELETE configmaps/" + h.name + "-a"))
	})

	It("stay if they are taken over before they are deleted", func(ctx context.Context) {
		var h *hubPart
		name := func() string {
			if h == nil {
				return ""
			}
			return h.name + "-a"
		}
		DeferCleanup(runAgentWith(agentOnHub, withRequestHook(agentLocally, once(http.MethodDelete, name, func() {
			Expect(environment.Edit(ctx, managed, h.object(ctx, "-a"), func(c *corev1.ConfigMap) { delete(c.Labels, kudo.LabelInstance) })).To(Succeed())
		}))))
		h = newInstance(ctx, steps("a", "b"), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
		Expect(h.config(ctx, "-a")).To(Equal("one"))
		Expect(h.config(ctx, "-b")).To(BeEmpty())
		Expect(managed.Delete(ctx, h.object(ctx, "-a"))).To(Succeed())
	})
})
