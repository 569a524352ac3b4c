package agent

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
	"github.com/tandem-addons/tandem/test/faults/proxy"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("An agent that loses the event of a deletion", func() {
	It("completes the removal of an object whose definition was deleted, too", func(ctx context.Context) {
		var to *proxy.Proxy
		to = startProxy(agentLocally, func(w *proxy.Write) proxy.Fault {
			if w.Verb == "delete" && w.Resource == "gadgets" {
				return proxy.Fault{Meanwhile: func() { to.Freeze("") }}
			}
			return proxy.Fault{}
		})
		runAgentWith(agentOnHub, through(to))

		spec := configOnly()
		spec.Templates["definition.yaml"], spec.Templates["gadget.yaml"] = definitionTemplate, gadgetTemplate
		spec.Tasks = append(spec.Tasks, task("gadgets", kudo.TaskApply, "definition.yaml", "gadget.yaml"))
		spec.Plans["deploy"] = serial("config", "gadgets")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})

		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func(g Gomega) {
			definition := blank("apiextensions.k8s.io/v1 CustomResourceDefinition")
			g.Expect(apierrors.IsNotFound(managed.Get(ctx, client.ObjectKey{Name: "gadgets.tandem.test"}, definition))).To(BeTrue())
		}).Should(Succeed())
		to.Thaw(true)
		h.finish(ctx)
	})

	It("completes the removal of an object that it may no longer list", func(ctx context.Context) {
		var to *proxy.Proxy
		var refuses atomic.Bool
		to = startProxy(agentLocally, func(w *proxy.Write) proxy.Fault {
			if w.Verb == "delete" && w.Resource == "gadgets" {
				return proxy.Fault{Meanwhile: func() { to.Freeze(""); refuses.Store(true) }}
			}
			return proxy.Fault{}
		})
		runAgentWith(agentOnHub, refusing(through(to), "/apis/tandem.test/v1/gadgets", &refuses))

		spec := configOnly()
		spec.Templates["definition.yaml"] = definitionTemplate
		spec.Templates["gadget.yaml"] = strings.Replace(gadgetTemplate, "metadata: {", "metadata: {finalizers: ["+hold+"], ", 1)
		spec.Tasks = append(spec.Tasks, task("gadgets", kudo.TaskApply, "definition.yaml", "gadget.yaml"))
		spec.Plans["deploy"] = serial("config", "gadgets")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})

		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(refuses.Load).Should(BeTrue())
		gadget := blank("tandem.test/v1 Gadget")
		Eventually(func(g Gomega) {
			g.Expect(h.local(ctx, "-gadget", gadget)).To(BeTrue())
			g.Expect(gadget.GetDeletionTimestamp()).NotTo(BeNil())
		}).Should(Succeed())
		Expect(removeFinalizers(ctx, gadget)).To(Succeed())
		to.Thaw(true)
		h.finish(ctx)
	})
})

// refusing returns a copy of config whose requests to list or watch a resource are forbidden once refuses is true.
func refusing(config *rest.Config, resource string, refuses *atomic.Bool) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return sender(func(request *http.Request) (*http.Response, error) {
			if !refuses.Load() || request.Method != http.MethodGet || request.URL.Path != resource {
				return next.RoundTrip(request)
			}
			const status = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`
			return &http.Response{
				StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(status)), Request: request,
			}, nil
		})
	})
	return config
}

var _ = Describe("A removal on a managed cluster that is restored from a backup", func() {
	It("deletes what exists again", func(ctx context.Context) {
		folder := GinkgoT().TempDir()
		server, err := environment.Start(environment.Restorable(folder))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		other := managed
		DeferCleanup(func() { managed = other })
		managed = clientOf(server.Config)
		runAgentWith(agentOnHub, server.Config)
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(server.Backup(folder + "/backup")).To(Succeed())
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonRemoved))

		Expect(server.Restore(folder + "/backup")).To(Succeed())
		config := client.ObjectKey{Namespace: h.namespace, Name: h.name + "-config"}
		Eventually(func() bool { return apierrors.IsNotFound(managed.Get(ctx, config, &corev1.ConfigMap{})) }).WithTimeout(2 * timeout).Should(BeTrue())
		h.finish(ctx)
	})
})

// startProxy returns a proxy to an API server that is stopped after the spec.
func startProxy(to *rest.Config, decide func(*proxy.Write) proxy.Fault) *proxy.Proxy {
	GinkgoHelper()
	link, err := proxy.Start(to, decide)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(link.Stop)
	return link
}

// versionWrites returns the verbs of the writes by way of a proxy that changed an OperatorVersion in the Instance's namespace.
func versionWrites(link *proxy.Proxy, h *hubPart) []string {
	var verbs []string
	for _, w := range link.Journal() {
		if w.Resource == "operatorversions" && w.Namespace == h.namespace && w.IsSuccess() {
			verbs = append(verbs, w.Verb)
		}
	}
	return verbs
}

// through returns the configuration of the connection to the managed cluster by way of a proxy.
func through(link *proxy.Proxy) *rest.Config {
	GinkgoHelper()
	kubeconfig, err := link.Kubeconfig()
	Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	return config
}

var _ = Describe("An agent that gets no answer to the creation of a mirrored OperatorVersion", func() {
	It("keeps the OperatorVersion that was created", func(ctx context.Context) {
		var unanswered sync.Once
		link := startProxy(agentLocally, func(w *proxy.Write) proxy.Fault {
			var fault proxy.Fault
			if w.Verb == "create" && w.Resource == "operatorversions" {
				unanswered.Do(func() {
					fault.After = func() { // the agent sees the OperatorVersion before the creation fails
						defer GinkgoRecover()
						created := client.ObjectKey{Namespace: w.Namespace, Name: w.Name}
						Consistently(managed.Get).WithArguments(ctx, created, &kudo.OperatorVersion{}).WithTimeout(300 * time.Millisecond).Should(Succeed())
					}
				})
			}
			return fault
		})
		runAgentWith(agentOnHub, through(link))

		h := newInstance(ctx, configOnly(), nil)
		Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(versionWrites(link, h)).To(Equal([]string{"create"}))
	})
})

var _ = Describe("An agent that does not see its own write yet", func() {
	It("mirrors the status of a child that is the same as before that write", func(ctx context.Context) {
		none := func(*proxy.Write) proxy.Fault { return proxy.Fault{} }
		toHub, toCluster := startProxy(agentOnHub, none), startProxy(agentLocally, none)
		runAgentWith(through(toHub), through(toCluster))
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		acknowledge := func(generation int64) {
			h.report(ctx, func(i *kudo.Instance) {
				i.Status.Children = []kudo.ChildStatus{{Task: "child", Instance: "child", State: kudo.ChildApplied, Generation: generation}}
			})
		}
		mirrored := func() int64 {
			if children := h.mirror(ctx).Status.Children; len(children) > 0 {
				return children[0].Generation
			}
			return 0
		}
		acknowledge(2)
		Eventually(mirrored).Should(BeEquivalentTo(2))
		Eventually(toCluster.Idle).WithArguments(250 * time.Millisecond).Should(BeTrue())
		toCluster.Freeze("")
		acknowledge(1)
		Eventually(mirrored).Should(BeEquivalentTo(1))
		acknowledge(2)
		Eventually(toHub.Idle).WithArguments(500 * time.Millisecond).Should(BeTrue())
		toCluster.Thaw(false)
		Eventually(mirrored).Should(BeEquivalentTo(2))

		By("not waiting for long if the watch hangs")
		Eventually(toCluster.Idle).WithArguments(250 * time.Millisecond).Should(BeTrue())
		toCluster.Freeze("")
		acknowledge(3)
		Eventually(mirrored).Should(BeEquivalentTo(3))
		acknowledge(2)
		Eventually(mirrored).Should(BeEquivalentTo(2))
		toCluster.Thaw(false)
		h.finish(ctx)
	})
})

var _ = Describe("An agent whose hub has missed that an OperatorVersion was replaced", func() {
	It("runs the other one after a new transition of condition Resolved", func(ctx context.Context) {
		runAgent()
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		reference := h.get(ctx).Spec.OperatorVersion
		Expect(hub.Delete(ctx, &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: reference.Namespace, Name: reference.Name}})).To(Succeed())
		other := configOnly()
		other.Templates["config.yaml"] = strings.Replace(other.Templates["config.yaml"], "{{ .Params.VALUE }}", "another", 1)
		push(ctx, reference.Name, other)
		h.report(ctx, func(i *kudo.Instance) {
			resolved := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionResolved)
			resolved.LastTransitionTime = metav1.NewTime(resolved.LastTransitionTime.Add(time.Second))
		})
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("another"))
		h.finish(ctx)
	})
})

var _ = Describe("An agent that gets no answer to the record of a completed task", func() {
	It("does not run the task again", func(ctx context.Context) {
		var to *proxy.Proxy
		var unanswered sync.Once
		to = startProxy(agentLocally, func(w *proxy.Write) proxy.Fault {
			var fault proxy.Fault
			if w.Verb == "update" && w.Kind() == "instances/status" && strings.Contains(string(w.Raw), string(kudo.Complete)) {
				unanswered.Do(func() {
					fault = proxy.Fault{Meanwhile: func() { to.Freeze("") }, Replace: http.StatusGatewayTimeout}
				})
			}
			return fault
		})
		runAgentWith(agentOnHub, through(to))
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		Eventually(func(g Gomega) {
			mirror := h.mirror(ctx)
			g.Expect(mirror).NotTo(BeNil())
			g.Expect(mirror.Status.PlanStatus["deploy"].Status).To(Equal(kudo.Complete))
		}).Should(Succeed())
		Eventually(to.Idle).WithArguments(500 * time.Millisecond).Should(BeTrue())
		to.Thaw(false)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		applied := 0
		for _, w := range to.Journal() {
			if w.Verb == "apply" && w.Resource == "configmaps" && w.Namespace == h.namespace {
				applied++
			}
		}
		Expect(applied).To(Equal(1))
	})
})

var _ = Describe("An agent that starts", func() {
	It("deletes a mirrored OperatorVersion that it could not delete before it stopped, although no Instance is left", func(ctx context.Context) {
		left := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{
			Name: "left", Namespace: "default", Annotations: map[string]string{kudo.AnnotationHubUID: "gone"},
		}, Spec: configOnly()}
		Expect(managed.Create(ctx, left)).To(Succeed())
		Expect(signer(ctx).Sign(left)).To(Succeed()) // with the defaults of its definition
		Expect(managed.Update(ctx, left)).To(Succeed())
		runAgent()
		Eventually(func() bool {
			return apierrors.IsNotFound(managed.Get(ctx, client.ObjectKeyFromObject(left), &kudo.OperatorVersion{}))
		}).Should(BeTrue())
	})

	It("keeps a mirrored OperatorVersion whose Instance it had not mirrored before it stopped", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		reference := h.get(ctx).Spec.OperatorVersion
		original := &kudo.OperatorVersion{}
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}, original)).To(Succeed())
		Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
		created := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{
			Namespace: h.namespace, Name: mirror.VersionName(corev1.ObjectReference{Name: original.Name, UID: original.UID}),
			Annotations: map[string]string{
				kudo.AnnotationHubUID: string(original.UID), kudo.AnnotationHubOperatorVersion: client.ObjectKeyFromObject(original).String(),
			},
		}, Spec: original.Spec}
		Expect(signer(ctx).Sign(created)).To(Succeed())
		Expect(managed.Create(ctx, created)).To(Succeed())
		link := startProxy(agentLocally, func(*proxy.Write) proxy.Fault { return proxy.Fault{} })
		runAgentWith(agentOnHub, through(link))
		Eventually(link.Idle).WithArguments(250 * time.Millisecond).Should(BeTrue())
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(versionWrites(link, h)).To(BeEmpty())
	})

	DescribeTable("does not undo a removal because its first view of the hub is stale", func(ctx context.Context, deleted, dropped bool) {
		stop := runAgent()
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		view := h.get(ctx).ResourceVersion
		if deleted {
			stop()
		}
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		if deleted { // and not reported as removed yet
			view = h.get(ctx).ResourceVersion
			stop = runAgent()
		}
		Eventually(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonRemoved))
		if dropped {
			h.release(ctx)
			Eventually(h.mirror).WithArguments(ctx).Should(BeNil())
		}
		stop()

		link := startProxy(agentOnHub, func(*proxy.Write) proxy.Fault { return proxy.Fault{} })
		link.Freeze(view)
		runAgentWith(through(link), agentLocally)
		Eventually(link.Watches).Should(BeNumerically(">", 1))
		Consistently(func() bool { // the reports of the stale view are conflicts, and repeated
			kept := h.mirror(ctx)
			return (kept == nil) == dropped && (dropped || kept.IsRemoving())
		}).WithTimeout(time.Second).Should(BeTrue())
		if !dropped {
			h.release(ctx)
		}
		link.Thaw(false)
		Eventually(h.mirror).WithArguments(ctx).Should(BeNil())
	},
		Entry("before the deletion, of a mirror that waits for the hub", false, false),
		Entry("before the deletion, of a mirror that is deleted", false, true),
		Entry("before the report of the removal, of a mirror that is deleted", true, true),
	)

	It("keeps a request to cancel a plan that its first view of the hub lacks", func(ctx context.Context) {
		stop := runAgent()
		h := runningByHand(ctx)
		view := h.get(ctx).ResourceVersion
		h.edit(ctx, func(i *kudo.Instance) { i.Spec.PlanExecution.Cancel = true }) // which the hub has not resolved yet
		Eventually(func() bool { return h.mirror(ctx).Spec.PlanExecution.Cancel }).Should(BeTrue())
		stop()
		generation := h.mirror(ctx).Generation

		link := startProxy(agentOnHub, func(*proxy.Write) proxy.Fault { return proxy.Fault{} })
		link.Freeze(view)
		runAgentWith(through(link), agentLocally)
		Eventually(link.Watches).Should(BeNumerically(">", 1))
		Consistently(func() int64 { return h.mirror(ctx).Generation }).Should(Equal(generation))
		link.Thaw(false)
		h.finish(ctx)
	})

	It("runs the cleanup plan of a version that its first view of the cluster lacks", func(ctx context.Context) {
		var before kudo.OperatorVersionList
		Expect(managed.List(ctx, &before, client.Limit(1))).To(Succeed())
		stop := runAgent()
		spec := configOnly()
		spec.Templates["farewell.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}-farewell\n"
		spec.Tasks = append(spec.Tasks, task("farewell", kudo.TaskApply, "farewell.yaml"))
		spec.Plans["cleanup"] = serial("farewell")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())

		locally, current := rest.CopyConfig(agentLocally), make(chan struct{})
		environment.MakeStale(locally, "operatorversions", before.ResourceVersion, current)
		stop = runAgentWith(agentOnHub, locally)
		Eventually(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonRemoved))
		Expect(h.plan(ctx, "cleanup").Status).To(Equal(kudo.Complete))
		close(current)
		h.release(ctx)
		Eventually(h.mirror).WithArguments(ctx).Should(BeNil())
		stop()
	})

	DescribeTable("keeps the objects of a released Instance, although its first view of the hub is stale", func(ctx context.Context, deleted bool) {
		stop := runAgent()
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		view := h.get(ctx).ResourceVersion
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		if deleted {
			view = h.get(ctx).ResourceVersion
		}
		h.release(ctx)
		stop = runAgent()
		Eventually(func() bool { return h.mirror(ctx).IsOrphaned() }).Should(BeTrue())
		stop()

		link := startProxy(agentOnHub, func(*proxy.Write) proxy.Fault { return proxy.Fault{} })
		link.Freeze(view)
		runAgentWith(through(link), agentLocally)
		Eventually(link.Watches).Should(BeNumerically(">", 1))
		Consistently(func() bool { return h.mirror(ctx).IsOrphaned() }).WithTimeout(time.Second).Should(BeTrue())
		Expect(managed.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: h.name + "-config"}, &corev1.ConfigMap{})).To(Succeed())
	},
		Entry("from before its deletion", false),
		Entry("from before its release", true),
	)
})
