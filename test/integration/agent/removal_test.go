package agent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// refusal is an API server that refuses all requests of a method for a resource while it is on.
type refusal struct {
	atomic.Bool
	method, resource string
}

// through returns a copy of config whose clients' requests are refused.
func (r *refusal) through(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return sender(func(request *http.Request) (*http.Response, error) {
			name, folder := path.Base(request.URL.Path), path.Base(path.Dir(request.URL.Path))
			if !r.Load() || request.Method != r.method || name != r.resource && folder != r.resource {
				return next.RoundTrip(request)
			}
			const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"%s of %s is refused"}`
			return &http.Response{
				StatusCode: http.StatusForbidden, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(bytes.NewBufferString(fmt.Sprintf(status, r.method, r.resource))),
			}, nil
		})
	})
	return config
}

// deadGroup registers an API service that nothing serves, until the returned function is called.
func deadGroup(ctx context.Context, group string) (revive func()) {
	GinkgoHelper()
	service := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(15), "insecureSkipTLSVerify": true,
		"service": map[string]any{"namespace": "default", "name": "dead"},
	}}}
	service.SetAPIVersion("apiregistration.k8s.io/v1")
	service.SetKind("APIService")
	service.SetName("v1." + group)
	Expect(managed.Create(ctx, service)).To(Succeed())
	revive = func() {
		Expect(client.IgnoreNotFound(managed.Delete(context.Background(), service))).To(Succeed())
	}
	DeferCleanup(revive)
	return revive
}

// eventsOf returns the notes of the events of that reason on the managed cluster about the Instance.
func (h *hubPart) eventsOf(ctx context.Context, reason string) []string {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(managed.List(ctx, list, client.InNamespace(h.namespace))).To(Succeed())
	var notes []string
	for _, e := range list.Items {
		if e.Reason == reason && e.Regarding.Name == h.name {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

var _ = Describe("Removal reads what must be readable", func() {
	AfterEach(func(ctx context.Context) { Expect(invariants.Violations(ctx, hub)).To(BeEmpty()) })

	It("and is not complete while volume claims cannot be listed", func(ctx context.Context) {
		lists := &refusal{method: http.MethodGet, resource: "persistentvolumeclaims"}
		DeferCleanup(runAgentWith(agentOnHub, lists.through(agentLocally)))
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		claim := h.claim("data-" + h.name + "-set-0")
		Expect(managed.Create(ctx, claim)).To(Succeed())
		lists.Store(true)
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonRemoving, "listing PersistentVolumeClaim"))
		Expect(managed.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		Consistently(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonRemoving))
		lists.Store(false)
		h.finish(ctx)
		Expect(client.IgnoreNotFound(managed.Get(ctx, client.ObjectKeyFromObject(claim), claim))).To(Succeed())
		Expect(h.local(ctx, "", claim)).To(BeFalse())
	})

	It("and is not complete while the group of a kind that the version renders cannot be discovered", func(ctx context.Context) {
		DeferCleanup(runAgent())
		const group = "rendered.tandem.test"
		spec := configOnly()
		spec.Templates["widget.yaml"] = "apiVersion: " + group + "/v1beta1\nkind: Widget\nmetadata: {name: x}"
		spec.Tasks = append(spec.Tasks, task("widget", kudo.TaskApply, "widget.yaml"))
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		revive := deadGroup(ctx, group)
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonRemoving, group))
		Consistently(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonRemoving))
		revive()
		h.finish(ctx)
	})

	It("and holds up no other Instance meanwhile", func(ctx context.Context) {
		var held atomic.Bool
		released := make(chan struct{})
		config := rest.CopyConfig(agentLocally)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return sender(func(request *http.Request) (*http.Response, error) {
				if held.Load() && path.Base(request.URL.Path) == "persistentvolumeclaims" {
					<-released
				}
				return next.RoundTrip(request)
			})
		})
		DeferCleanup(runAgentWith(agentOnHub, config))
		release := sync.OnceFunc(func() { close(released) })
		DeferCleanup(release) // before the agent is stopped
		leaving := make([]*hubPart, mirror.Workers)
		for i := range leaving {
			leaving[i] = newInstance(ctx, configOnly(), nil)
			leaving[i].resolve(ctx)
			leaving[i].completes(ctx, "deploy", kudo.PlanStatus{})
		}
		held.Store(true)
		for _, h := range leaving {
			Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		}
		for _, h := range leaving {
			Eventually(func() string { return h.config(ctx, "-config") }).Should(BeEmpty())
		}
		other := newInstance(ctx, configOnly(), nil)
		other.resolve(ctx)
		other.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(released).NotTo(BeClosed())
		for _, h := range leaving {
			Expect(h.mirror(ctx)).NotTo(BeNil(), "no removal is complete before the search")
		}
		release()
		for _, h := range append(leaving, other) {
			h.finish(ctx)
		}
	})

	It("and deletes what only a search finds without another search for it", func(ctx context.Context) {
		var searches atomic.Int32
		h := newInstance(ctx, configOnly(), nil)
		DeferCleanup(runAgentWith(agentOnHub, withRequestHook(agentLocally, func(request *http.Request) {
			query := request.URL.Query()
			selector := query.Get("labelSelector")
			if path.Base(request.URL.Path) == "persistentvolumeclaims" && strings.Contains(selector, kudo.LabelInstance) &&
				strings.Contains(selector, h.name) && !query.Has("watch") {
				searches.Add(1)
			}
		})))
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		claim := h.claim("data-" + h.name + "-set-0")
		Expect(managed.Create(ctx, claim)).To(Succeed())
		h.finish(ctx)
		Expect(apierrors.IsNotFound(managed.Get(ctx, client.ObjectKeyFromObject(claim), claim))).To(BeTrue())
		Expect(searches.Load()).To(BeEquivalentTo(2), "one that finds the claim, and one after its deletion")
	})

	It("and is not held up by a dead API service of another kind, which an event reports", func(ctx context.Context) {
		DeferCleanup(runAgent())
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		deadGroup(ctx, "another.tandem.test")
		h.finish(ctx)
		Eventually(func() []string { return h.eventsOf(ctx, "SearchIncomplete") }).Should(
			ConsistOf(ContainSubstring("another.tandem.test")))
	})
})

var _ = Describe("An older Instance in a restored hub", func() {
	It("that is being deleted does not remove the one that the mirror belongs to", func(ctx context.Context) {
		stop := runAgent()
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		backup := h.get(ctx)
		stop()
		h.lose(ctx)
		h.restore(ctx, backup)
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		DeferCleanup(runAgent())
		Eventually(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonRemoved), "nothing here belongs to it")
		Expect(h.mirror(ctx)).To(HaveField("Annotations", And(HaveKey(kudo.AnnotationOrphaned), Not(HaveKey(kudo.AnnotationHubDeleted)))))
		Consistently(func() string { return h.config(ctx, "-config") }).Should(Equal("one"))

		By("taking over the mirror for the next of its name")
		h.release(ctx)
		h.again(ctx, backup)
		h.resolve(ctx)
		Eventually(func() metav1.ConditionStatus { return h.ready(ctx).Status }).Should(Equal(metav1.ConditionTrue))
		h.finish(ctx)
		Expect(h.config(ctx, "-config")).To(BeEmpty())
	})
})

var _ = Describe("The removal of a parent", func() {
	It("waits for no object that only claims to be its child", func(ctx context.Context) {
		DeferCleanup(runAgent())
		spec := configOnly()
		spec.Tasks = append(spec.Tasks, task("child", kudo.TaskKudoOperator))
		spec.Plans["more"] = serial("child")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		claims, _ := forgeMirror(h.namespace, h.name+".child")
		claims.Annotations[kudo.AnnotationParent] = h.name
		Expect(managed.Create(ctx, claims)).To(Succeed())
		Expect(environment.EditStatus(ctx, managed, claims, func(i *kudo.Instance) {
			i.Status.Inventory = []kudo.InventoryEntry{{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "gadgets.tandem.test", Task: "x"}}
		})).To(Succeed())
		h.finish(ctx)
	})
})

var _ = Describe("An orphaned mirror", func() {
	It("carries no finalizer, so that it does not block the deletion of its namespace", func(ctx context.Context) {
		stop := runAgent()
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		lost := h.lose(ctx)
		orphaned := And(HaveField("Annotations", HaveKey(kudo.AnnotationOrphaned)), HaveField("Finalizers", BeEmpty()))
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(orphaned)

		By("finding an orphan with the finalizer of an earlier agent")
		stop()
		h.tamper(ctx, func(i *kudo.Instance) { i.Finalizers = []string{kudo.Finalizer} })
		stop = runAgent()
		DeferCleanup(func() { stop() })
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(orphaned)

		By("returning to the hub")
		h.again(ctx, lost)
		h.resolve(ctx)
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(HaveField("Finalizers", ConsistOf(kudo.Finalizer)))
		h.lose(ctx)
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(orphaned)
		Expect(managed.Delete(ctx, h.onCluster())).To(Succeed(), "as with its namespace")
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(BeNil())
	})
})

var _ = Describe("An object of another owner with the name of one to delete", func() {
	BeforeEach(func() { DeferCleanup(runAgent()) })

	// withForeign returns an Instance in whose namespace a ConfigMap of that suffix belongs to another owner.
	withForeign := func(ctx context.Context, suffix string, spec kudo.OperatorVersionSpec) *hubPart {
		GinkgoHelper()
		h := newInstance(ctx, spec, nil)
		Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
		h.foreign(ctx, suffix)
		h.resolve(ctx)
		return h
	}

	DescribeTable("counts as deleted, and is kept", func(ctx context.Context, change func(*kudo.OperatorVersionSpec)) {
		spec := configOnly()
		spec.Plans["deploy"] = serial("config", "feature")
		change(&spec)
		h := withForeign(ctx, "-feature", spec)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.config(ctx, "-feature")).To(Equal("foreign"))
		Expect(h.inventoryOf(ctx)).NotTo(ContainElement(ContainSubstring("-feature")))
		h.finish(ctx)
		Expect(h.config(ctx, "-feature")).To(Equal("foreign"))
	},
		Entry("by a Toggle that is off", func(*kudo.OperatorVersionSpec) {}),
		Entry("by a Delete task", func(spec *kudo.OperatorVersionSpec) { spec.Tasks[2] = task("feature", kudo.TaskDelete, "feature.yaml") }),
	)
})

var _ = Describe("A cancelled removal", func() {
	It("does not lead to the deletion of volume claims that it has found", func(ctx context.Context) {
		deletions := &refusal{method: http.MethodDelete, resource: "persistentvolumeclaims"}
		DeferCleanup(runAgentWith(agentOnHub, deletions.through(agentLocally)))
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		lost, before := h.get(ctx), h.plan(ctx, "deploy")
		claim := h.claim("data-" + h.name + "-set-0")
		Expect(managed.Create(ctx, claim)).To(Succeed())
		Eventually(func() error {
			return environment.EditStatus(ctx, managed, claim, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound })
		}).Should(Succeed())
		deletions.Store(true)
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonRemoving, "DELETE of persistentvolumeclaims is refused"))
		h.force(ctx)
		Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).Should(HaveKey(kudo.AnnotationOrphaned))
		h.release(ctx)

		By("enabling it again")
		h.again(ctx, lost)
		h.resolve(ctx)
		deletions.Store(false)
		h.completes(ctx, "deploy", before)
		Consistently(func(g Gomega) {
			g.Expect(managed.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
			g.Expect(claim.DeletionTimestamp).To(BeNil())
		}).Should(Succeed())
		Expect(h.inventoryOf(ctx)).NotTo(ContainElement(ContainSubstring("PersistentVolumeClaim")))
		h.finish(ctx)
		Expect(h.local(ctx, "", claim)).To(BeFalse())
	})
})

var _ = Describe("An Instance whose objects would have the labels of another's", func() {
	It("is not installed beside its orphan", func(ctx context.Context) {
		DeferCleanup(runAgent())
		orphan := newInstance(ctx, configOnly(), nil)
		orphan.rename(ctx, strings.Replace(orphan.name, "-", ".", 1))
		orphan.resolve(ctx)
		label := strings.Replace(orphan.name, ".", "-", 1)
		value := func() string {
			config := &corev1.ConfigMap{}
			if err := managed.Get(ctx, client.ObjectKey{Namespace: orphan.namespace, Name: label + "-config"}, config); err != nil {
				return err.Error()
			}
			return config.Data["value"]
		}
		orphan.completes(ctx, "deploy", kudo.PlanStatus{})
		orphan.lose(ctx)
		Eventually(func() map[string]string { return orphan.mirror(ctx).Annotations }).Should(HaveKey(kudo.AnnotationOrphaned))

		h := &hubPart{name: label, namespace: orphan.namespace}
		push(ctx, h.name+"-2.0.0", configOnly())
		Expect(hub.Create(ctx, &kudo.Instance{
			ObjectMeta: metav1.ObjectMeta{Name: h.name, Namespace: clusterName, Finalizers: []string{kudo.Finalizer}},
			Spec: kudo.InstanceSpec{OperatorVersion: corev1.ObjectReference{Namespace: packages, Name: h.name + "-2.0.0"},
				Parameters: map[string]string{"VALUE": "theirs"}, InstallNamespace: h.namespace},
		})).To(Succeed())
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonNotMirrored, `has Instance "`+orphan.name+`"`))
		Expect(value()).To(Equal("one"))
		h.finish(ctx)
		Expect(value()).To(Equal("one"))

		By("deleting the orphan")
		Expect(managed.Delete(ctx, orphan.onCluster())).To(Succeed())
		Eventually(func() *kudo.Instance { return orphan.mirror(ctx) }).Should(BeNil())
	})
})

// rename replaces the Instance on the hub, which is not resolved yet, by one of another name.
func (h *hubPart) rename(ctx context.Context, name string) {
	GinkgoHelper()
	lost := h.lose(ctx)
	h.name = name
	h.again(ctx, lost, func(i *kudo.Instance) { i.Name = name })
}
