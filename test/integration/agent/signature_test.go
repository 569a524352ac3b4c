package agent

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent"
	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/faults/proxy"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// mirrorKey returns the Secret with the key of mirrors, without its data.
func mirrorKey() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: "tandem-mirror-key"}}
}

// signer returns what the agent signs mirrors with. No agent is running.
func signer(ctx context.Context) *mirror.Signer {
	GinkgoHelper()
	makeAgentNamespace(ctx)
	key := mirrorKey()
	key.Data = map[string][]byte{"key": []byte("0123456789abcdef0123456789abcdef")}
	Expect(client.IgnoreAlreadyExists(managed.Create(ctx, key))).To(Succeed())
	Expect(managed.Get(ctx, client.ObjectKeyFromObject(key), key)).To(Succeed())
	return mirror.NewSigner(key.Data["key"], key.CreationTimestamp)
}

// unsign makes all mirrors those of a release that did not sign them: without signatures, and older than the key. No agent is running.
func (h *hubPart) unsign(ctx context.Context) {
	GinkgoHelper()
	h.tamper(ctx, func(i *kudo.Instance) { delete(i.Annotations, kudo.AnnotationSignature) })
	for _, name := range h.versions(ctx) {
		version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}}
		Expect(environment.Edit(ctx, managed, version, func(v *kudo.OperatorVersion) { delete(v.Annotations, kudo.AnnotationSignature) })).To(Succeed())
	}
	Eventually(func(g Gomega) {
		g.Expect(client.IgnoreNotFound(managed.Delete(ctx, mirrorKey()))).To(Succeed())
		g.Expect(signer(ctx).Predates(h.mirror(ctx))).To(BeTrue())
	}).Should(Succeed())
}

// isSigned returns whether the mirror and its OperatorVersions have valid signatures.
func (h *hubPart) isSigned(ctx context.Context) bool {
	GinkgoHelper()
	s := signer(ctx)
	for _, name := range h.versions(ctx) {
		version := &kudo.OperatorVersion{}
		Expect(managed.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: name}, version)).To(Succeed())
		if !s.IsSigned(version) {
			return false
		}
	}
	return s.IsSigned(h.mirror(ctx))
}

// forgeMirror returns a namespace's Instance and OperatorVersion that look like mirrors.
func forgeMirror(namespace, name string) (*kudo.Instance, *kudo.OperatorVersion) {
	version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name + "-1.0.0-0a1b2c3d",
		Annotations: map[string]string{
			kudo.AnnotationHubUID: "0a1b2c3d-0000-0000-0000-000000000000", kudo.AnnotationHubOperatorVersion: packages + "/" + name + "-1.0.0",
		},
	}, Spec: configOnly()}
	instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Annotations: map[string]string{kudo.AnnotationHubUID: "1", kudo.AnnotationHubGeneration: "1"},
	}}
	instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: namespace, Name: version.Name}
	instance.Spec.InstallNamespace = namespace
	return instance, version
}

var _ = Describe("An object that claims to be a mirror", func() {
	It("runs nothing, however often its annotations are changed, and says so", func(ctx context.Context) {
		runAgent()
		made++
		h := &hubPart{name: fmt.Sprintf("forged-%d", made), namespace: fmt.Sprintf("tenant-%d", made)}
		Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
		instance, version := forgeMirror(h.namespace, h.name)
		Expect(managed.Create(ctx, version)).To(Succeed())
		Expect(managed.Create(ctx, instance)).To(Succeed())
		for round := range 300 {
			h.tamper(ctx, func(i *kudo.Instance) {
				delete(i.Annotations, kudo.AnnotationOrphaned)
				i.Annotations[kudo.AnnotationHubGeneration] = strconv.Itoa(round + 2)
			})
			Expect(h.config(ctx, "-config")).To(BeEmpty(), "the engine has executed it after %d changes", round+1)
		}
		Eventually(func() *metav1.Condition {
			return meta.FindStatusCondition(h.mirror(ctx).Status.Conditions, "Signed")
		}).Should(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "NotSigned"), HaveField("Message", ContainSubstring("on the hub"))))
		Eventually(func(g Gomega) {
			events := &eventsv1.EventList{}
			g.Expect(managed.List(ctx, events, client.InNamespace(h.namespace))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(HaveField("Reason", "NotSigned"), HaveField("Regarding.Name", h.name))))
		}).Should(Succeed())
		Expect(h.mirror(ctx).Status.Execution).To(BeNil())

		before := h.mirror(ctx).ResourceVersion
		Consistently(func() string { return h.mirror(ctx).ResourceVersion }).Should(Equal(before), "it is not written again")
		Expect(managed.Get(ctx, client.ObjectKeyFromObject(version), version)).To(Succeed(), "it belongs to another writer")
	})

	It("runs nothing as a copy of a mirror that was removed, and says so", func(ctx context.Context) {
		stop := runAgent()
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		instance, version := h.copies(ctx)
		h.finish(ctx)
		Eventually(h.mirror).WithArguments(ctx).Should(BeNil())
		Eventually(h.versions).WithArguments(ctx).Should(BeEmpty())
		stop()

		nowhere := rest.CopyConfig(agentOnHub) // else, the copy may be marked as orphaned before it runs
		nowhere.Host = "https://127.0.0.1:1"
		runAgentWith(nowhere, agentLocally)
		Expect(managed.Create(ctx, version)).To(Succeed())
		Expect(managed.Create(ctx, instance)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(h.config(ctx, "-config")).To(BeEmpty(), "the engine has executed it")
			g.Expect(meta.IsStatusConditionFalse(h.mirror(ctx).Status.Conditions, kudo.ConditionSigned)).To(BeTrue())
		}).Should(Succeed())
		Expect(h.mirror(ctx).Status.Execution).To(BeNil())
	})
})

// copies returns copies of the mirror and its OperatorVersion, as a backup has them, to be created again.
func (h *hubPart) copies(ctx context.Context) (*kudo.Instance, *kudo.OperatorVersion) {
	GinkgoHelper()
	instance, version := h.mirror(ctx), &kudo.OperatorVersion{}
	Expect(managed.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: instance.Spec.OperatorVersion.Name}, version)).To(Succeed())
	instance.ObjectMeta = metav1.ObjectMeta{Namespace: h.namespace, Name: h.name, Annotations: instance.Annotations, Finalizers: instance.Finalizers}
	version.ObjectMeta = metav1.ObjectMeta{Namespace: h.namespace, Name: version.Name, Annotations: version.Annotations}
	instance.Status = kudo.InstanceStatus{}
	copied := version.DeepCopy()
	DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(managed.Delete(ctx, copied))).To(Succeed()) })
	return instance, version
}

var _ = Describe("A mirror that is restored from a backup of the managed cluster", func() {
	It("is signed when the hub confirms it, with the status on the hub, and nothing is executed or applied again", func(ctx context.Context) {
		stop := runAgent()
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		before := h.mirror(ctx).Status.Execution
		instance, _ := h.copies(ctx)
		h.loseMirror(ctx)
		Expect(managed.Create(ctx, instance)).To(Succeed())

		link := startProxy(agentLocally, func(*proxy.Write) proxy.Fault { return proxy.Fault{} })
		runAgentWith(agentOnHub, through(link))
		Eventually(h.isSigned).WithArguments(ctx).Should(BeTrue())
		Eventually(link.Idle).WithArguments(500 * time.Millisecond).Should(BeTrue())
		Expect(h.mirror(ctx).Status.Execution).To(Equal(before))
		Expect(h.applied(link)).To(BeEmpty())
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two"} })
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("two"))
		h.finish(ctx)
	})
})

// applied returns the ConfigMaps in the Instance's namespace that were written by way of a proxy.
func (h *hubPart) applied(link *proxy.Proxy) []string {
	var names []string
	for _, w := range link.Journal() {
		if w.Namespace == h.namespace && w.Resource == "configmaps" && w.IsSuccess() {
			names = append(names, w.Verb+" "+w.Name)
		}
	}
	return names
}

var _ = Describe("A mirror of a release that did not sign mirrors", func() {
	var (
		h      *hubPart
		link   *proxy.Proxy
		before *kudo.Execution
	)
	BeforeEach(func(ctx context.Context) {
		stop := runAgent()
		h = newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		h.unsign(ctx)
		before = h.mirror(ctx).Status.Execution
		link = startProxy(agentLocally, func(*proxy.Write) proxy.Fault { return proxy.Fault{} })
	})

	isKept := func(ctx context.Context) {
		GinkgoHelper()
		h.isKept(ctx, link, before, "update operatorversions", "update instances")
	}

	It("is signed, and nothing is executed or applied again", func(ctx context.Context) {
		runAgentWith(agentOnHub, through(link))
		isKept(ctx)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two"} })
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("two"))
		h.finish(ctx)
	})

	It("is signed once, although another Instance chooses its OperatorVersion before the cache has the signature", func(ctx context.Context) {
		signing := startProxy(agentLocally, func(w *proxy.Write) proxy.Fault {
			if w.Verb != "update" || w.Kind() != "operatorversions" || w.Namespace != h.namespace {
				return proxy.Fault{}
			}
			return proxy.Fault{Meanwhile: func() { link.Freeze("") }}
		})
		link = signing
		runAgentWith(agentOnHub, through(link))
		Eventually(h.isSigned).WithArguments(ctx).Should(BeTrue())
		other := &hubPart{name: h.name + "-other", namespace: h.namespace}
		another := other.onHub()
		another.Finalizers, another.Spec = []string{kudo.Finalizer}, h.get(ctx).Spec
		Expect(hub.Create(ctx, another)).To(Succeed())
		other.resolve(ctx)
		Eventually(other.mirror).WithArguments(ctx).ShouldNot(BeNil())
		link.Thaw(false)
		other.completes(ctx, "deploy", kudo.PlanStatus{})
		var updates int
		for _, w := range link.Journal() {
			if w.Namespace == h.namespace && w.Verb+" "+w.Kind() == "update operatorversions" {
				updates++
			}
		}
		Expect(updates).To(Equal(1))
		other.finish(ctx)
		h.finish(ctx)
	})

	It("is signed although the hub has not resolved its current generation", func(ctx context.Context) {
		h.edit(ctx, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"UNKNOWN": "x"} })
		runAgentWith(agentOnHub, through(link))
		isKept(ctx)
		h.finish(ctx)
	})

	DescribeTable("is not signed with a change of another writer while the hub has not resolved its current generation",
		func(ctx context.Context, change func(*kudo.Instance)) {
			h.edit(ctx, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"UNKNOWN": "x"} })
			h.tamper(ctx, change)
			runAgentWith(agentOnHub, through(link))
			Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(HaveField("Reason", kudo.ReasonNotMirrored),
				HaveField("Message", ContainSubstring("lacks the signature of addon-agent"))))
			Expect(h.isSigned(ctx)).To(BeFalse())
			Expect(h.config(ctx, "-config")).To(Equal("one"))

			h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = nil })
			Eventually(h.isSigned).WithArguments(ctx).Should(BeTrue())
			Eventually(link.Idle).WithArguments(500 * time.Millisecond).Should(BeTrue())
			Expect(h.config(ctx, "-config")).To(Equal("one"))
			h.finish(ctx)
		},
		Entry("of a parameter", func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "theirs"} }),
		Entry("of the service account", func(i *kudo.Instance) { i.Spec.ServiceAccountName = "theirs" }),
		Entry("that requests a plan", func(i *kudo.Instance) { i.Spec.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "theirs"} }),
		Entry("that removes it", func(i *kudo.Instance) { i.Annotations[kudo.AnnotationHubDeleted] = "2026-01-01T00:00:00Z" }),
		Entry("that names a parent", func(i *kudo.Instance) { i.Annotations[kudo.AnnotationParent] = "theirs" }),
		Entry("of its generation", func(i *kudo.Instance) { i.Annotations[kudo.AnnotationHubGeneration] = "7000" }),
	)

	It("is signed although the hub no longer has its OperatorVersion", func(ctx context.Context) {
		reference := h.get(ctx).Spec.OperatorVersion
		Expect(hub.Delete(ctx, &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: reference.Namespace, Name: reference.Name}})).To(Succeed())
		h.edit(ctx, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"UNKNOWN": "x"} })
		runAgentWith(agentOnHub, through(link))
		isKept(ctx)
		h.finish(ctx)
	})

	It("is removed if its Instance was deleted in between", func(ctx context.Context) {
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		runAgentWith(agentOnHub, through(link))
		h.finish(ctx)
		Eventually(h.mirror).WithArguments(ctx).Should(BeNil())
		Expect(h.config(ctx, "-config")).To(BeEmpty())
	})

	It("is orphaned without a signature if the hub no longer has its Instance, because nothing confirms it", func(ctx context.Context) {
		lost := h.lose(ctx)
		h.tamper(ctx, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "theirs"} })
		runAgentWith(agentOnHub, through(link))
		Eventually(func() bool { return h.mirror(ctx).IsOrphaned() }).Should(BeTrue())
		Eventually(link.Idle).WithArguments(500 * time.Millisecond).Should(BeTrue())
		Expect(signer(ctx).IsSigned(h.mirror(ctx))).To(BeFalse())
		Expect(h.config(ctx, "-config")).To(Equal("one"))

		h.again(ctx, lost)
		h.resolve(ctx)
		Eventually(h.isSigned).WithArguments(ctx).Should(BeTrue())
		Expect(h.mirror(ctx).IsOrphaned()).To(BeFalse())
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("one"))
		h.finish(ctx)
	})

	It("is deleted without a signature if its removal is complete, because nothing confirms it", func(ctx context.Context) {
		h.lose(ctx)
		h.tamper(ctx, func(i *kudo.Instance) { i.Annotations[kudo.AnnotationHubDeleted] = "2026-01-01T00:00:00Z" })
		h.tamperStatus(ctx, func(i *kudo.Instance) {
			meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{Type: kudo.ConditionReady, Status: metav1.ConditionFalse, Reason: kudo.ReasonRemoved})
		})
		Expect(h.mirror(ctx).IsRemoved()).To(BeTrue())
		runAgentWith(agentOnHub, through(link))
		Eventually(h.mirror).WithArguments(ctx).Should(BeNil())
		for _, w := range link.Journal() {
			signs := w.Kind() == "instances" && w.Object() == client.ObjectKeyFromObject(h.onCluster()) && strings.Contains(string(w.Raw), kudo.AnnotationSignature)
			Expect(signs).To(BeFalse(), "%s %s", w.Verb, w.Raw)
		}
	})

	It("signs no OperatorVersion that another writer created before the key, and that the hub does not know", func(ctx context.Context) {
		_, planted := forgeMirror(h.namespace, "planted")
		Expect(managed.Create(ctx, planted)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(managed.Delete(ctx, planted))).To(Succeed()) })
		Eventually(func(g Gomega) {
			g.Expect(client.IgnoreNotFound(managed.Delete(ctx, mirrorKey()))).To(Succeed())
			g.Expect(signer(ctx).Predates(planted)).To(BeTrue())
		}).Should(Succeed())
		h.tamper(ctx, func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = planted.Name })
		h.tamperStatus(ctx, func(i *kudo.Instance) {
			i.Status.Whole.OperatorVersion = corev1.ObjectReference{Namespace: packages, Name: "planted-1.0.0", UID: types.UID(planted.Annotations[kudo.AnnotationHubUID])}
		})
		runAgentWith(agentOnHub, through(link))
		Eventually(func() bool { return signer(ctx).IsSigned(h.mirror(ctx)) }).Should(BeTrue())
		Eventually(link.Idle).WithArguments(500 * time.Millisecond).Should(BeTrue())
		Expect(h.mirror(ctx).Spec.OperatorVersion.Name).NotTo(Equal(planted.Name))
		current := &kudo.OperatorVersion{}
		if err := managed.Get(ctx, client.ObjectKeyFromObject(planted), current); !apierrors.IsNotFound(err) {
			Expect(err).NotTo(HaveOccurred())
			Expect(signer(ctx).IsSigned(current)).To(BeFalse())
		}
		h.finish(ctx)
	})

	It("runs nothing of an OperatorVersion that differs from the hub's", func(ctx context.Context) {
		name := h.versions(ctx)[0]
		version := &kudo.OperatorVersion{}
		Expect(managed.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: name}, version)).To(Succeed())
		Expect(managed.Delete(ctx, version)).To(Succeed())
		altered := &kudo.OperatorVersion{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name, Annotations: version.Annotations}, Spec: *version.Spec.DeepCopy(),
		}
		altered.Spec.Templates["config.yaml"] = strings.Replace(altered.Spec.Templates["config.yaml"], "{{ .Params.VALUE }}", "altered", 1)
		Expect(managed.Create(ctx, altered)).To(Succeed())
		runAgentWith(agentOnHub, through(link))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two"} })
		Eventually(func() string { return h.config(ctx, "-config") }).ShouldNot(Equal("one"))
		Expect(h.config(ctx, "-config")).To(Equal("two"))
		h.finish(ctx)
	})
})

// isKept waits until the mirror is signed, and checks that nothing was executed and nothing applied: only the writes are sent.
func (h *hubPart) isKept(ctx context.Context, link *proxy.Proxy, before *kudo.Execution, writes ...string) {
	GinkgoHelper()
	Eventually(h.isSigned).WithArguments(ctx).Should(BeTrue())
	Eventually(link.Idle).WithArguments(500 * time.Millisecond).Should(BeTrue())
	Expect(h.mirror(ctx).Status.Execution).To(Equal(before))
	var written []string
	for _, w := range link.Journal() {
		if w.Namespace == h.namespace && w.IsSuccess() {
			written = append(written, w.Verb+" "+w.Kind())
		}
	}
	Expect(written).To(ConsistOf(writes))
}

// formerSignature returns the signature of a mirror by a build that did not sign its uid.
func formerSignature(ctx context.Context, i *kudo.Instance) string {
	GinkgoHelper()
	key := mirrorKey()
	Expect(managed.Get(ctx, client.ObjectKeyFromObject(key), key)).To(Succeed())
	annotations := map[string]string{kudo.AnnotationHubUID: i.Annotations[kudo.AnnotationHubUID]}
	annotations[kudo.AnnotationHubGeneration] = i.Annotations[kudo.AnnotationHubGeneration]
	content, err := json.Marshal(struct {
		Kind        string            `json:"kind"`
		Namespace   string            `json:"namespace"`
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
		Spec        kudo.InstanceSpec `json:"spec"`
	}{"Instance", i.Namespace, i.Name, annotations, i.Spec})
	Expect(err).NotTo(HaveOccurred())
	mac := hmac.New(sha256.New, key.Data["key"])
	mac.Write(content)
	return "v1." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

var _ = Describe("A mirror that was signed without its uid", func() {
	var (
		h    *hubPart
		link *proxy.Proxy
	)
	BeforeEach(func(ctx context.Context) {
		stop := runAgent()
		h = newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		former := formerSignature(ctx, h.mirror(ctx))
		h.tamper(ctx, func(i *kudo.Instance) { i.Annotations[kudo.AnnotationSignature] = former })
		Expect(signer(ctx).Predates(h.mirror(ctx))).To(BeTrue())
		link = startProxy(agentLocally, func(*proxy.Write) proxy.Fault { return proxy.Fault{} })
	})

	It("is signed again when the hub confirms it, once, and nothing is executed or applied", func(ctx context.Context) {
		before := h.mirror(ctx).Status.Execution
		runAgentWith(agentOnHub, through(link))
		h.isKept(ctx, link, before, "update instances")
		h.finish(ctx)
	})

	It("is signed again although the hub has not resolved its current generation", func(ctx context.Context) {
		before := h.mirror(ctx).Status.Execution
		h.edit(ctx, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"UNKNOWN": "x"} })
		runAgentWith(agentOnHub, through(link))
		h.isKept(ctx, link, before, "update instances")
		h.finish(ctx)
	})

	It("is ignored while the hub cannot confirm it", func(ctx context.Context) {
		stop := runAgent()
		Eventually(h.isSigned).WithArguments(ctx).Should(BeTrue())
		instance, version := h.copies(ctx)
		former := h.mirror(ctx)
		former.UID = "" // of the copy
		h.finish(ctx)
		Eventually(h.versions).WithArguments(ctx).Should(BeEmpty())
		stop()

		instance.Annotations[kudo.AnnotationSignature] = formerSignature(ctx, former)
		nowhere := rest.CopyConfig(agentOnHub)
		nowhere.Host = "https://127.0.0.1:1"
		runAgentWith(nowhere, through(link))
		Expect(managed.Create(ctx, version)).To(Succeed())
		Expect(managed.Create(ctx, instance)).To(Succeed())
		Consistently(func() string { return h.config(ctx, "-config") }).Should(BeEmpty())
		Expect(h.mirror(ctx).Status.Execution).To(BeNil())
	})
})

var _ = Describe("A mirror whose signature another writer has invalidated", func() {
	It("is ignored while the hub has not resolved its Instance, which says so", func(ctx context.Context) {
		stop := runAgent()
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.edit(ctx, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"UNKNOWN": "x"} })
		stop()
		h.tamper(ctx, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "theirs"} })
		runAgent()
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonNotMirrored,
			fmt.Sprintf("the mirror of Instance %q in namespace %q of the managed cluster lacks the signature of addon-agent, which ignores it until "+
				"the hub has resolved its Instance", h.name, h.namespace)))
		Consistently(func() string { return h.config(ctx, "-config") }).Should(Equal("one"))

		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two"} })
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("two"))
		Eventually(func() *metav1.Condition {
			return meta.FindStatusCondition(h.mirror(ctx).Status.Conditions, kudo.ConditionSigned)
		}).Should(BeNil())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		h.finish(ctx)
	})

	It("is signed without annotations that the hub does not set", func(ctx context.Context) {
		stop := runAgent()
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		h.tamper(ctx, func(i *kudo.Instance) {
			i.Annotations[kudo.AnnotationParent], i.Annotations[kudo.AnnotationHubOperatorVersion] = "theirs", "theirs/1"
		})
		runAgent()
		Eventually(h.isSigned).WithArguments(ctx).Should(BeTrue())
		Expect(h.mirror(ctx).Annotations).NotTo(Or(HaveKey(kudo.AnnotationParent), HaveKey(kudo.AnnotationHubOperatorVersion)))
		h.finish(ctx)
	})

	DescribeTable("is removed as the hub has it, and nothing that the other writer has changed is signed", func(ctx context.Context, status func(*kudo.Instance)) {
		stop := runAgent()
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name + "-config"}}
		Expect(environment.Edit(ctx, managed, held, func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/held"} })).To(Succeed())
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		h.tamper(ctx, func(i *kudo.Instance) {
			i.Spec.Parameters, i.Spec.ServiceAccountName = map[string]string{"VALUE": "theirs"}, "theirs"
			i.Annotations[kudo.AnnotationSkipCleanup] = "true"
		})
		h.tamperStatus(ctx, status)
		runAgent()
		Eventually(func(g Gomega) {
			mirrored := h.mirror(ctx)
			g.Expect(mirrored.IsRemoving()).To(BeTrue())
			g.Expect(signer(ctx).IsSigned(mirrored)).To(BeTrue())
			g.Expect(mirrored.Spec.Parameters).To(Equal(h.get(ctx).Spec.Parameters))
			g.Expect(mirrored.Spec.ServiceAccountName).To(BeEmpty())
			g.Expect(mirrored.SkipsCleanup()).To(BeFalse())
		}).Should(Succeed())
		Expect(environment.Edit(ctx, managed, held, func(c *corev1.ConfigMap) { c.Finalizers = nil })).To(Succeed())
		h.finish(ctx)
		Eventually(h.mirror).WithArguments(ctx).Should(BeNil())
	},
		Entry("with its status", func(*kudo.Instance) {}),
		Entry("without its status, which the hub restores", func(i *kudo.Instance) { i.Status = kudo.InstanceStatus{} }),
	)
})
