package agent

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	kubecontent "github.com/tandem-addons/tandem/pkg/kube/content"
)

// withLargeTemplate returns a package of an Instance whose last step applies a template of 3 MB, after it has waited for a Deployment. An agent does not
// miss content that another Instance has, so that Instances of several specs must not share it.
func withLargeTemplate(instance string) kudo.OperatorVersionSpec {
	spec := standard()
	line := fmt.Sprintf("# %-97s\n", instance)
	spec.Templates["large.yaml"] = strings.Repeat(line, 3<<20/len(line)) + fmt.Sprintf(configTemplate, "large")
	spec.Tasks = append(spec.Tasks, task("large", kudo.TaskApply, "large.yaml"))
	spec.Plans = map[string]kudo.Plan{"deploy": serial("app", "large"), "update": serial("large")}
	return spec
}

// newLargeInstance creates an Instance of withLargeTemplate, and the content of its OperatorVersion on the hub, which it returns.
func newLargeInstance(ctx context.Context) (*hubPart, []*kudo.OperatorContent) {
	GinkgoHelper()
	whole := &kudo.OperatorVersion{Spec: withLargeTemplate(fmt.Sprintf("app-%d", made+1))}
	stored, files := pack.Divide(whole)
	h := newInstance(ctx, stored.Spec, nil)
	version := &kudo.OperatorVersion{}
	Expect(hub.Get(ctx, client.ObjectKey{Namespace: packages, Name: h.name + "-1.0.0"}, version)).To(Succeed())
	var parts []*kudo.OperatorContent
	for _, part := range content.Split(files["large.yaml"]) {
		parts = append(parts, content.New(version, part))
	}
	Expect(parts).To(HaveLen(4))
	return h, parts
}

// store creates OperatorContents.
func store(ctx context.Context, c client.Client, parts ...*kudo.OperatorContent) {
	GinkgoHelper()
	for _, part := range parts {
		Expect(c.Create(ctx, part.DeepCopy())).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(c.Delete(ctx, part.DeepCopy()))).To(Succeed()) })
	}
}

// contents returns the content in the Instance's namespace on the managed cluster, by its digests.
func (h *hubPart) contents(ctx context.Context) map[string]kudo.OperatorContent {
	GinkgoHelper()
	list := &kudo.OperatorContentList{}
	Expect(managed.List(ctx, list, client.InNamespace(h.namespace))).To(Succeed())
	found := map[string]kudo.OperatorContent{}
	for _, part := range list.Items {
		found[part.Digest] = part
	}
	return found
}

// hasContent waits until the managed cluster has exactly these parts, owned by the mirrored OperatorVersion.
func (h *hubPart) hasContent(ctx context.Context, parts []*kudo.OperatorContent) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		versions := &kudo.OperatorVersionList{}
		g.Expect(managed.List(ctx, versions, client.InNamespace(h.namespace))).To(Succeed())
		g.Expect(versions.Items).To(HaveLen(1))
		owner, found := &versions.Items[0], h.contents(ctx)
		g.Expect(found).To(HaveLen(len(parts)))
		for _, part := range parts {
			local := found[part.Digest]
			data, err := content.Unpack(&local)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(content.DigestOf(data)).To(Equal(part.Digest))
			g.Expect(local.Name).To(Equal(content.Name(owner.Name, part.Digest)))
			g.Expect(local.OwnerReferences).To(Equal([]metav1.OwnerReference{content.OwnerOf(owner)}))
		}
	}).Should(Succeed())
}

// readCounter counts reads of objects.
type readCounter struct {
	client.Reader
	count atomic.Int32
}

func (r *readCounter) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	r.count.Add(1)
	return r.Reader.Get(ctx, key, object, options...)
}

var _ = Describe("A template that is too large for its OperatorVersion", func() {
	It("is applied, also by an agent that restarts while the hub is away", func(ctx context.Context) {
		toHub := &link{}
		stop := runAgentWith(toHub.through(agentOnHub), agentLocally)
		h, parts := newLargeInstance(ctx)
		store(ctx, hub, parts...)
		h.resolve(ctx)
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("Deployment"))
		h.hasContent(ctx, parts)
		Expect(h.config(ctx, "-large")).To(BeEmpty())

		By("reading it as a file")
		versions := &kudo.OperatorVersionList{}
		Expect(managed.List(ctx, versions, client.InNamespace(h.namespace))).To(Succeed())
		reads := &readCounter{Reader: managed}
		files := kubecontent.NewFiles(reads, time.Hour)
		readTwice := func() (requests int32) {
			before := reads.count.Load()
			for range 2 {
				text, err := files.File(ctx, &versions.Items[0], "large.yaml")
				Expect(err).NotTo(HaveOccurred())
				Expect(string(text)).To(Equal(withLargeTemplate(h.name).Templates["large.yaml"]))
			}
			return reads.count.Load() - before
		}
		Expect(readTwice()).To(BeEquivalentTo(len(parts)), "requests of the first two times")
		Expect(readTwice()).To(BeZero(), "requests later")
		_, err := files.File(ctx, &versions.Items[0], "chart.tgz")
		Expect(err).To(MatchError(ContainSubstring(`has no file "chart.tgz" in its content`)))

		By("restarting")
		stop()
		toHub.cut()
		runAgentWith(toHub.through(agentOnHub), agentLocally)
		h.rollOut(ctx)
		Eventually(func() string { return h.config(ctx, "-large") }).Should(Equal("one"))
		toHub.mend()
	})

	It("is fetched again if its content is lost or altered on the managed cluster", func(ctx context.Context) {
		stop := runAgent()
		h, parts := newLargeInstance(ctx)
		store(ctx, hub, parts...)
		h.resolve(ctx)
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("Deployment"))

		By("losing a part while the agent runs")
		lost := h.contents(ctx)[parts[1].Digest]
		Expect(managed.Delete(ctx, &lost)).To(Succeed())
		h.hasContent(ctx, parts)

		By("altering a part, and giving another the owner of an earlier mirror, while it does not")
		stop()
		found := h.contents(ctx)
		altered, foreign := found[parts[2].Digest], found[parts[3].Digest]
		Expect(managed.Delete(ctx, altered.DeepCopy())).To(Succeed())
		altered.ResourceVersion, altered.UID = "", ""
		altered.Data = content.New(&kudo.OperatorVersion{}, []byte("another")).Data
		Expect(managed.Create(ctx, &altered)).To(Succeed())
		foreign.OwnerReferences[0].UID = "another"
		Expect(managed.Update(ctx, &foreign)).To(Succeed())
		runAgent()
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.hasContent(ctx, parts)
		Expect(h.config(ctx, "-large")).To(Equal("one"))
	})

	It("says that its content is lost while the hub is away, and recovers by itself", func(ctx context.Context) {
		toHub := &link{}
		stop := runAgentWith(toHub.through(agentOnHub), agentLocally)
		h, parts := newLargeInstance(ctx)
		store(ctx, hub, parts...)
		h.resolve(ctx)
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("Deployment"))
		h.hasContent(ctx, parts)
		stop()
		toHub.cut()
		lost := h.contents(ctx)[parts[1].Digest]
		Expect(managed.Delete(ctx, &lost)).To(Succeed())
		runAgentWith(toHub.through(agentOnHub), agentLocally)
		DeferCleanup(func(ctx context.Context) { // other specs count writes
			toHub.mend()
			if h.get(ctx) != nil {
				h.finish(ctx)
			}
		})
		Eventually(func() *metav1.Condition {
			return meta.FindStatusCondition(h.mirror(ctx).Status.Conditions, kudo.ConditionReady)
		}).Should(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", kudo.ReasonContentIncomplete), HaveField("Message", And(
			ContainSubstring("part 2 of 4 ("+parts[1].Digest+`) of file "large.yaml"`), ContainSubstring("is missing in namespace \""+h.namespace),
			ContainSubstring("the agent fetches it from the hub, as soon as that can be reached")))))
		Expect(h.mirror(ctx).Status.PlanStatus["deploy"].Status).To(Equal(kudo.InProgress), "the plan waits")

		toHub.mend()
		h.hasContent(ctx, parts)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.config(ctx, "-large")).To(Equal("one"))
		h.finish(ctx)
	})

	It("is not applied while its content on the hub is incomplete or altered, and is once it is complete", func(ctx context.Context) {
		runAgent()
		h, parts := newLargeInstance(ctx)
		store(ctx, hub, parts[:2]...)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(
			HaveField("Reason", kudo.ReasonNotMirrored), HaveField("Message", And(ContainSubstring(`file "large.yaml" (`),
				ContainSubstring("part 3 of 4 ("+parts[2].Digest+")"), ContainSubstring(`is missing in namespace "addon-packages"`)))))
		Expect(h.mirror(ctx)).To(BeNil())

		By("storing another content in its place")
		bomb := parts[2].DeepCopy()
		bomb.Data = content.New(&kudo.OperatorVersion{}, []byte("another")).Data
		store(ctx, hub, bomb, parts[3])
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("is altered in namespace \"addon-packages\": it is " +
			content.DigestOf([]byte("another"))))

		By("correcting it")
		Expect(hub.Delete(ctx, bomb)).To(Succeed())
		store(ctx, hub, parts[2])
		h.hasContent(ctx, parts)
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).ShouldNot(BeNil())
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.config(ctx, "-large")).To(Equal("one"))
	})

	It("does not delay the removal of its Instance when its content is lost everywhere", func(ctx context.Context) {
		stop := runAgent()
		h, parts := newLargeInstance(ctx)
		store(ctx, hub, parts...)
		h.resolve(ctx)
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("Deployment"))
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		for _, c := range []client.Client{hub, managed} {
			for _, namespace := range []string{packages, h.namespace} {
				Expect(c.DeleteAllOf(ctx, &kudo.OperatorContent{}, client.InNamespace(namespace))).To(Succeed())
			}
		}
		runAgent()
		h.finish(ctx)
		Eventually(func() bool { return h.local(ctx, "-large", &corev1.ConfigMap{}) }).Should(BeFalse())
	})
})
