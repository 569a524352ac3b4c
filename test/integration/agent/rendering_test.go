package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent"
	"github.com/tandem-addons/tandem/pkg/agent/rendering"
	"github.com/tandem-addons/tandem/pkg/core/release"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("What a chart has rendered", func() {
	var key rendering.Key
	var unused int
	BeforeEach(func(ctx context.Context) {
		namespace := &corev1.Namespace{}
		namespace.Name = agent.DefaultNamespace
		Expect(client.IgnoreAlreadyExists(managed.Create(ctx, namespace))).To(Succeed())
		unused++
		key = rendering.Key{Instance: types.UID(fmt.Sprintf("rendering-%d-%d", GinkgoParallelProcess(), unused)), Task: "chart/Web", Execution: "1"}
		DeferCleanup(func(ctx context.Context) { Expect(newRenderings().Forget(ctx, key.Instance)).To(Succeed()) })
	})
	secrets := func(ctx context.Context) []corev1.Secret {
		GinkgoHelper()
		list := &corev1.SecretList{}
		Expect(managed.List(ctx, list, client.InNamespace(agent.DefaultNamespace), client.MatchingLabels{"kudo.dev/rendering-of": string(key.Instance)})).To(Succeed())
		return list.Items
	}
	isLost := func(ctx context.Context, key rendering.Key, digest string) *rendering.LossError {
		GinkgoHelper()
		lost := &rendering.LossError{}
		_, err := newRenderings().Load(ctx, key, digest)
		Expect(err).To(BeAssignableToTypeOf(lost))
		return err.(*rendering.LossError) //nolint:errorlint // the line above checks it
	}
	keep := func(ctx context.Context, key rendering.Key, r release.Rendering) string {
		GinkgoHelper()
		digest, err := newRenderings().Keep(ctx, key, r)
		Expect(err).NotTo(HaveOccurred())
		return digest
	}

	It("is kept in one Secret, and read by another process", func(ctx context.Context) {
		wanted := rendered(10)
		digest := keep(ctx, key, wanted)
		Expect(digest).To(HavePrefix("sha256:"))
		found := secrets(ctx)
		Expect(found).To(HaveLen(1))
		Expect(found[0].Annotations["kubernetes.io/description"]).To(Equal(`What the chart of task "chart/Web" of an Instance rendered in execution 1; part 1 of 1`))
		Expect(newRenderings().Load(ctx, key, digest)).To(Equal(wanted))
		Expect(keep(ctx, key, wanted)).To(Equal(digest), "the digest depends on the content only")
		Expect(secrets(ctx)).To(HaveLen(1))
	})

	It("is kept in parts if it is large, with the index last", func(ctx context.Context) {
		wanted := rendered(3 << 20)
		digest := keep(ctx, key, wanted)
		found := secrets(ctx)
		Expect(len(found)).To(BeNumerically(">", 2))
		index := slices.IndexFunc(found, func(s corev1.Secret) bool { return s.Data["digest"] != nil })
		for i := range found {
			Expect(len(found[i].Data["rendering.json.gz"])).To(BeNumerically("<=", 900<<10))
		}
		Expect(newRenderings().Load(ctx, key, digest)).To(Equal(wanted))

		By("losing a part")
		part := found[(index+1)%len(found)]
		Expect(managed.Delete(ctx, &part)).To(Succeed())
		Expect(isLost(ctx, key, digest).Error()).To(Equal(fmt.Sprintf(
			`what the chart of task "chart/Web" rendered is lost: Secret %s/%s does not exist on the managed cluster`, part.Namespace, part.Name)))
		By("keeping it again")
		Expect(keep(ctx, key, wanted)).To(Equal(digest))
		Expect(newRenderings().Load(ctx, key, digest)).To(Equal(wanted))
	})

	DescribeTable("is not used if it was altered", func(ctx context.Context, alter func(*corev1.Secret), problem string) {
		wanted := rendered(10)
		digest := keep(ctx, key, wanted)
		found := secrets(ctx)[0]
		Expect(environment.Edit(ctx, managed, &found, alter)).To(Succeed())
		lost := isLost(ctx, key, digest)
		Expect(lost.Altered).To(BeTrue())
		Expect(lost.Error()).To(ContainSubstring(`what the chart of task "chart/Web" rendered was altered in Secret tandem-system/` + found.Name))
		Expect(lost.Error()).To(ContainSubstring(problem))
		Expect(keep(ctx, key, wanted)).To(Equal(digest))
		Expect(newRenderings().Load(ctx, key, digest)).To(Equal(wanted))
	},
		Entry("another digest", func(s *corev1.Secret) { s.Data["digest"] = []byte("sha256:0") }, `it has digest "sha256:0" instead of`),
		Entry("no part", func(s *corev1.Secret) { delete(s.Data, "rendering.json.gz") }, "EOF"),
		Entry("a part that is not compressed", func(s *corev1.Secret) { s.Data["rendering.json.gz"] = []byte("{}") }, "EOF"),
		Entry("too many parts", func(s *corev1.Secret) { s.Data["parts"] = []byte("1000000") }, `it has "1000000" parts`),
		Entry("no number of parts", func(s *corev1.Secret) { s.Data["parts"] = []byte("x") }, `it has "x" parts`),
		Entry("another rendering", func(s *corev1.Secret) {
			other := rendering.Key{Instance: key.Instance, Task: "other", Execution: "1"}
			digest, err := newRenderings().Keep(context.Background(), other, rendered(11))
			Expect(err).NotTo(HaveOccurred())
			list := &corev1.SecretList{}
			Expect(managed.List(context.Background(), list, client.InNamespace(s.Namespace))).To(Succeed())
			for _, from := range list.Items {
				if string(from.Data["digest"]) == digest {
					s.Data["rendering.json.gz"] = from.Data["rendering.json.gz"]
				}
			}
		}, `it has digest "sha256:`),
	)

	It("is not found with the digest of another Instance", func(ctx context.Context) {
		store := newRenderings()
		digest, err := store.Keep(ctx, key, rendered(10))
		Expect(err).NotTo(HaveOccurred())
		other := rendering.Key{Instance: "other", Task: key.Task, Execution: key.Execution}
		_, err = store.Load(ctx, other, digest)
		Expect(err).To(MatchError(ContainSubstring("is lost")))
		_, err = store.Load(ctx, key, "")
		Expect(err).To(MatchError(ContainSubstring("is lost")))
	})

	It("is deleted with later executions, and with its Instance", func(ctx context.Context) {
		before := keep(ctx, key, rendered(10))
		again := keep(ctx, key, rendered(11)) // a random value
		Expect(newRenderings().Load(ctx, key, before)).To(Equal(rendered(10)), "the status may have its digest")
		next, other := key, key
		next.Execution, other.Task = "2", "other"
		now, others := keep(ctx, next, rendered(10)), keep(ctx, other, rendered(10))
		Expect(now).To(Equal(before))
		Expect(newRenderings().Tidy(ctx, next, now)).To(Succeed())
		Expect(secrets(ctx)).To(HaveLen(2))
		for _, digest := range []string{before, again} {
			Expect(isLost(ctx, key, digest).Altered).To(BeFalse())
		}
		Expect(newRenderings().Load(ctx, next, now)).To(Equal(rendered(10)))
		Expect(newRenderings().Load(ctx, other, others)).To(Equal(rendered(10)))
		Expect(newRenderings().Forget(ctx, "some-other")).To(Succeed())
		Expect(secrets(ctx)).To(HaveLen(2))
		Expect(newRenderings().Forget(ctx, key.Instance)).To(Succeed())
		Expect(secrets(ctx)).To(BeEmpty())
		Expect(newRenderings().Forget(ctx, "a,b")).To(MatchError(ContainSubstring(`the uid "a,b" of an Instance is no value of a label`)))
	})

	It("is deleted once the Instance exists neither on the hub nor on the cluster", func(ctx context.Context) {
		keep(ctx, key, rendered(10))
		runAgentWith(agentOnHub, agentLocally, func(o *agent.Options) { o.SweepInterval = 100 * time.Millisecond })
		Eventually(ctx, secrets).WithArguments(ctx).Should(BeEmpty())
	})
})

// newRenderings returns the store of a new process.
func newRenderings() *rendering.Store { return rendering.New(agent.DefaultNamespace, managed, managed) }

// rendered returns a rendering with a number of random bytes, the same for each number.
func rendered(size int) release.Rendering {
	object := func(name, value string) release.Object {
		return release.Object{Source: "web/templates/" + name, Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"value": value, "<&>": int64(1) << 60, "half": 0.5},
		}}}
	}
	random := rand.NewChaCha8([32]byte{byte(size)})
	value := make([]byte, size)
	for i := range value {
		value[i] = 'A' + byte(random.Uint64()%58)
	}
	return release.Rendering{
		Definitions: []release.Object{object("definition", "")},
		Hooks:       []release.Hook{{Object: object("hook", ""), Events: []release.Event{release.PreInstall}, Weight: 3, DeletePolicies: []release.DeletePolicy{release.HookFailed}}},
		Objects:     []release.Object{object("a", string(value)), object("b", "{{ x }}\n")},
		Warnings:    []string{"something"},
	}
}
